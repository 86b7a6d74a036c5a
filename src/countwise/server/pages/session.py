"""Signing in and out, and changing one's password."""

import hmac
import secrets
from typing import Annotated

from fastapi import APIRouter, Cookie, Request
from fastapi.responses import Response

from countwise.errors import CountwiseError
from countwise.server.http import (
    COOKIE,
    CSRF_FIELD,
    Changing,
    Services,
    address,
    clear_session,
    set_session,
)
from countwise.server.pages.shell import Posted, see, show, word
from countwise.server.refusals import Forbidden, NotSignedIn, status_of

router = APIRouter()
FORM_COOKIE = "countwise_form"


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
        made = service.sign_in(name, str(form.get("password", "")), address(request))
    except CountwiseError as caught:
        return _form(service, next=place, name=name, problem=caught)
    response = see(place if _inside(place) else "/")
    set_session(response, service.config, made)
    response.delete_cookie(FORM_COOKIE, path="/sign-in", httponly=True, samesite="strict")
    return response


def _form(
    service: Services, *, next: str, name: str = "", problem: CountwiseError | None = None
) -> Response:
    token = secrets.token_urlsafe(32)
    status, _, message = status_of(problem) if problem else (200, "", "")
    if isinstance(problem, NotSignedIn):
        message = "The name or the password is wrong."
    response = show(
        "sign_in.html", None, status=status, token=token, next=next, name=name, problem=message
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


@router.post("/sign-out")
def sign_out(request: Request, service: Services, actor: Changing) -> Response:  # noqa: ARG001
    """End the session."""
    service.sign_out(request.cookies.get(COOKIE, ""))
    response = see("/sign-in")
    clear_session(response)
    return response
