"""The web application: routes put together, refusals as answers, headers, logs."""

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import sqlalchemy as sa
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from countwise.errors import CountwiseError
from countwise.ledger.storage import open_engine
from countwise.server import api, monitoring, pages, steward_api
from countwise.server.calculator import Calculator
from countwise.server.config import Config
from countwise.server.logs import log, log_fault
from countwise.server.refusals import PasswordFirst, status_of
from countwise.server.service import Service
from countwise.server.stewardship import Stewardship

LARGEST_BODY = 65_536  # bytes: a question has at most some thousand characters
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


def create_app(
    config: Config, engine: sa.Engine | None = None, calculator: Calculator | None = None
) -> FastAPI:
    """The application on a database whose tables are up to date."""
    app = FastAPI(
        title="countwise",
        version=version("countwise"),
        description="Ask whether a finding holds in confidential data.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    engine = engine or open_engine(config.url, wait=config.wait_seconds)
    app.state.config, app.state.engine = config, engine
    app.state.service = Service(config, engine, calculator)
    app.state.stewardship = Stewardship(config, engine)
    app.state.requests = Counter[tuple[str, str, int]]()
    app.state.refusals = Counter[str]()
    app.state.pulse = monitoring.Pulse(engine, config)
    app.add_exception_handler(CountwiseError, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(Exception, _fault)
    app.include_router(api.router)
    app.include_router(steward_api.router)
    app.include_router(monitoring.router)
    app.include_router(pages.router)
    app.add_middleware(Envelope, requests=app.state.requests)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Connections are closed when the application ends."""
    yield
    app.state.engine.dispose()


class Envelope:
    """Around every request: a size limit, security headers, a log line, and a count."""

    def __init__(self, app: ASGIApp, requests: Counter[tuple[str, str, int]]) -> None:
        self.app, self.requests = app, requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, identity, status = time.monotonic(), uuid4().hex, 500
        private = scope["path"].startswith(("/api", "/metrics", "/health"))

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                extra = HEADERS | {"X-Request-Id": identity}
                names = {name.lower() for name, _ in message["headers"]}
                if private or b"cache-control" not in names:
                    extra |= {"Cache-Control": "no-store"}
                message["headers"] = [
                    *message["headers"],
                    *((name.lower().encode(), value.encode()) for name, value in extra.items()),
                ]
            await send(message)

        size = dict(scope["headers"]).get(b"content-length", b"0")
        if not size.isdigit() or int(size) > LARGEST_BODY:
            refusal = problem(413, "too_large", f"at most {LARGEST_BODY} bytes may be sent.")
            await refusal(scope, receive, sending)
        else:
            await self.app(scope, _limited(receive), sending)
        route = getattr(scope.get("route"), "path", "none")
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.requests[method, route, status] += 1
        log(
            "request",
            id=identity,
            method=method,
            route=route,
            status=status,
            milliseconds=round(1000 * (time.monotonic() - start), 1),
        )


def _limited(receive: Receive) -> Receive:
    """A body without a declared length is cut off where it gets too long."""
    got = 0

    async def receiving() -> Message:
        nonlocal got
        message = await receive()
        got += len(message.get("body", b""))
        if got > LARGEST_BODY:
            raise HTTPException(413, f"at most {LARGEST_BODY} bytes may be sent.")
        return message

    return receiving


def problem(status: int, code: str, message: str) -> JSONResponse:
    """A refusal as JSON."""
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status)


def _is_api(request: Request) -> bool:
    return request.url.path.startswith(("/api/", "/health", "/metrics"))


def _say(request: Request, status: int, code: str, message: str) -> Response:
    if _is_api(request):
        return problem(status, code, message)
    return pages.refused(request, status, message)


def _refused(request: Request, exception: Exception) -> Response:
    assert isinstance(exception, CountwiseError)
    status, code, message = status_of(exception)
    request.app.state.refusals[code] += 1
    if status >= 500:
        log("refused", level="error", kind=type(exception).__name__, status=status)
    if isinstance(exception, PasswordFirst) and not _is_api(request):
        return RedirectResponse("/account", status_code=303)
    response = _say(request, status, code, message)
    if status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        response.headers["Retry-After"] = "60" if status == 429 else "5"
    return response


def _invalid(request: Request, exception: Exception) -> Response:
    assert isinstance(exception, RequestValidationError)
    first: dict[str, Any] = next(iter(exception.errors()), {"loc": (), "msg": "not usable"})
    place = ".".join(str(each) for each in first["loc"][:6])[:200]
    place = place.encode("ascii", "replace").decode()
    return _say(request, 422, "input", f"{place}: {first['msg'][:300]}")


def _http(request: Request, exception: Exception) -> Response:
    assert isinstance(exception, HTTPException)
    response = _say(request, exception.status_code, "http", str(exception.detail))
    response.headers.update(exception.headers or {})
    return response


def _too_deep(request: Request, exception: Exception) -> Response:
    assert isinstance(exception, RecursionError)
    return _say(request, 422, "input", "what was sent is nested too deeply to be read.")


def _fault(request: Request, exception: Exception) -> Response:
    log_fault(exception, by="request")
    return _say(request, 500, "fault", "a fault of ours; nothing was released.")
