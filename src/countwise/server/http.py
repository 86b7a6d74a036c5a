"""What routes ask for: the service, whoever is calling, and a change that was meant."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from countwise.server.accounts import Actor, SignedIn, check_csrf, key_actor, session_actor
from countwise.server.config import Config
from countwise.server.refusals import NotSignedIn
from countwise.server.service import Service
from countwise.server.stewardship import Stewardship

COOKIE, DEVICE = "countwise_session", "countwise_device"
DEVICE_DAYS = 400  # as long as browsers keep a cookie at most
FILLED = 65_536
"""Bytes: bodies are filled up to a multiple, so that their length says next to nothing."""
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf_token"


def filled(kind: str, text: str, **headers: str) -> Response:
    """A response filled with spaces to a multiple of a size, so that the size says nothing."""
    body = text.encode()
    size = -(-(len(body) + 1) // FILLED) * FILLED
    return Response(body.ljust(size - 1) + b"\n", media_type=kind, headers=headers)


def filled_json(data: Mapping[str, Any], **headers: str) -> Response:
    """JSON of a size that says nothing."""
    return filled("application/json", json.dumps(data, ensure_ascii=False), **headers)


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


def _stewardship(request: Request) -> Stewardship:
    found: Stewardship = request.app.state.stewardship
    return found


Services = Annotated[Service, Depends(_service)]
Stewardships = Annotated[Stewardship, Depends(_stewardship)]


def maybe_caller(request: Request, service: Services) -> Actor | None:
    """Whoever is calling, by API key or session; None without either."""
    kind, _, key = request.headers.get("authorization", "").partition(" ")
    if kind:
        if kind.lower() != "bearer":
            raise NotSignedIn("write the API key as: Authorization: Bearer cw_…")
        return key_actor(service.engine, key.strip())
    token = request.cookies.get(COOKIE)
    if not token:
        return None
    return session_actor(service.engine, service.config, token)


MaybeCaller = Annotated[Actor | None, Depends(maybe_caller)]


def caller(actor: MaybeCaller) -> Actor:
    """Whoever is calling, or a refusal."""
    if actor is None:
        raise NotSignedIn("sign in, or send an API key.")
    return actor


Caller = Annotated[Actor, Depends(caller)]


async def changing(request: Request, actor: Caller) -> Actor:
    """Whoever asks for a change; in a session, with the session's CSRF token."""
    token = request.headers.get(CSRF_HEADER)
    kind = request.headers.get("content-type", "")
    if token is None and kind.startswith("application/x-www-form-urlencoded"):
        field = (await request.form()).get(CSRF_FIELD)
        token = field if isinstance(field, str) else None
    check_csrf(actor, token)
    return actor


Changing = Annotated[Actor, Depends(changing)]


def set_session(response: Response, config: Config, made: SignedIn) -> None:
    """Put the session's cookie there: not for scripts, not for other sites."""
    response.set_cookie(
        COOKIE,
        made.token,
        max_age=round(3600 * config.session_hours),
        httponly=True,
        samesite="strict",
        secure=config.secure_cookies,
        path="/",
    )

    response.set_cookie(
        DEVICE,
        made.device,
        max_age=86400 * DEVICE_DAYS,
        httponly=True,
        samesite="strict",
        secure=config.secure_cookies,
        path="/",
    )


def clear_session(response: Response) -> None:
    """Take the cookie away."""
    response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")


def address(request: Request) -> str:
    """Where a call comes from."""
    return request.client.host if request.client else "unknown"
