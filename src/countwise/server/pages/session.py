"""Signing in and out, and changing one's password."""

import hmac
import secrets
from typing import Annotated

from fastapi import APIRouter, Cookie, Request
from fastapi.responses import RedirectResponse, Response

from countwise.errors import CountwiseError
from countwise.server.events import note
from countwise.server.http import (
    COOKIE,
    CSRF_FIELD,
    DEVICE,
    Changing,
    Services,
    address,
    clear_session,
    set_session,
)
from countwise.server.identity_provider import (
    IdentityProvider,
    new_errand,
    read_errand,
    sign_in_with,
)
from countwise.server.pages.shell import Posted, see, show, word
from countwise.server.refusals import Forbidden, NotSignedIn, NotThere, TooMany, status_of
from countwise.server.service import Service
from countwise.server.sign_in_limits import (
    BY_ADDRESS,
    enter_elsewhere,
    forgive_elsewhere,
    limit_rate,
)

router = APIRouter()
FORM_COOKIE, ERRAND_COOKIE = "countwise_form", "countwise_errand"


@router.get("/sign-in")
def sign_in_form(service: Services, next: str = "/") -> Response:
    """The form; a cookie of its own shows later that it came from here."""
    return _form(service, next=next)


@router.post("/sign-in")
def sign_in(
    request: Request,
    service: Services,
    form: Posted,
    known: Annotated[str, Cookie(alias=FORM_COOKIE)] = "",
) -> Response:
    """Sign in, or say that it was not right, and no more."""
    name, place = word(form, "name"), word(form, "next")
    sent = word(form, CSRF_FIELD)
    if not known or not hmac.compare_digest(known.encode(), sent.encode()):
        problem: CountwiseError = Forbidden("The form was too old. Please try again.")
        return _form(service, next=place, name=name, problem=problem)
    try:
        known = request.cookies.get(DEVICE, "")
        made = service.sign_in(name, str(form.get("password", "")), address(request), known)
    except CountwiseError as caught:
        return _form(service, next=place, name=name, problem=caught)
    response = see(place if _inside(place) else "/")
    set_session(response, service.config, made)
    response.delete_cookie(FORM_COOKIE, path="/sign-in", httponly=True, samesite="strict")
    return response


def _form(
    service: Service, *, next: str, name: str = "", problem: CountwiseError | None = None
) -> Response:
    token = secrets.token_urlsafe(32)
    status, _, message = status_of(problem) if problem else (200, "", "")
    if isinstance(problem, NotSignedIn) and name:
        message = "The name or the password is wrong."
    response = show(
        "sign_in.html",
        None,
        status=status,
        token=token,
        next=next,
        name=name,
        problem=message,
        elsewhere=service.provider is not None,
    )
    response.set_cookie(
        FORM_COOKIE,
        token,
        path="/sign-in",
        httponly=True,
        samesite="strict",
        secure=service.config.secure_cookies,
    )
    return response


def _inside(place: str) -> bool:
    """Whether an address is a page of ours: one slash at its start, nothing of another host."""
    return place.startswith("/") and not place.startswith("//") and "\\" not in place


@router.get("/sign-in/office")
def go_to_provider(request: Request, service: Services, again: bool = False) -> Response:
    """On to the office's identity provider, which is to ask who it is if it long has not."""
    provider, config = _provider(service), service.config
    errand = new_errand(max(1, round(60 * config.fresh_minutes)) if again else 0)
    try:
        limit_rate(
            service.engine,
            f"to provider:{address(request)}"[:200],
            BY_ADDRESS * config.sign_ins_per_minute,
        )
        target = provider.begin(errand)
    except (NotSignedIn, TooMany) as problem:
        return _form(service, next="/", problem=problem)
    response = RedirectResponse(target, status_code=303)
    response.set_cookie(
        ERRAND_COOKIE,
        errand.to_text(),
        max_age=600,
        path="/sign-in",
        httponly=True,
        samesite="lax",  # it must come along when the provider sends the browser back
        secure=service.config.secure_cookies,
    )
    return response


@router.get("/sign-in/office/back")
def come_back(
    request: Request,
    service: Services,
    known: Annotated[str, Cookie(alias=ERRAND_COOKIE)] = "",
) -> Response:
    """Back from the provider: a session, or a refusal and no more."""
    returned = {name: value[:4000] for name, value in request.query_params.items()}
    provider, place = _provider(service), address(request)
    try:
        enter_elsewhere(service.engine, place, per_minute=service.config.sign_ins_per_minute)
        claims = provider.claims(read_errand(known), returned)
        made = sign_in_with(service.engine, service.config, provider, claims)
    except NotSignedIn as problem:
        note(service.engine, "", "sign-in failed", why="provider", address=place[:100])
        return _form(service, next="/", problem=problem)
    except TooMany as problem:
        return _form(service, next="/", problem=problem)
    forgive_elsewhere(service.engine, place)
    response = show("signed_in.html", None)  # a page of ours, so that its cookie comes along
    set_session(response, service.config, made)
    response.delete_cookie(ERRAND_COOKIE, path="/sign-in", httponly=True, samesite="lax")
    return response


def _provider(service: Service) -> IdentityProvider:
    if service.provider is None:
        raise NotThere("there is no such page.")
    return service.provider


@router.post("/sign-out")
def sign_out(request: Request, service: Services, actor: Changing) -> Response:  # noqa: ARG001
    """End the session."""
    service.sign_out(request.cookies.get(COOKIE, ""))
    response = see("/sign-in")
    clear_session(response)
    return response
