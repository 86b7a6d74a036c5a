"""One's own account: password and API keys."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from countwise.errors import InputError
from countwise.server.accounts import Actor
from countwise.server.http import Caller, Changing, Services, address
from countwise.server.pages.shell import Posted, see, show, word
from countwise.server.refusals import Forbidden, TooMany
from countwise.server.request_bodies import Id
from countwise.server.responses import NewKeyView
from countwise.server.service import Service

router = APIRouter()


@router.get("/account")
def account(request: Request, service: Services, actor: Caller) -> Response:
    """Keys and the form for another password."""
    return _page(request, service, actor)


@router.post("/account/password")
def password(request: Request, service: Services, actor: Changing, form: Posted) -> Response:
    """Another password; all sessions end, this one too."""
    try:
        old, new = str(form.get("old", "")), str(form.get("new", ""))
        service.change_password(actor, old, new, address(request))
    except (InputError, Forbidden, TooMany) as problem:
        return _page(request, service, actor, password_error=str(problem), status=422)
    return see("/sign-in")


@router.post("/account/keys")
def new_key(request: Request, service: Services, actor: Changing, form: Posted) -> Response:
    """A new key, shown on this page and never again."""
    days = word(form, "days")
    try:
        good_for = float(days) if days else None
    except ValueError:
        return _page(request, service, actor, key_error="Days are a number.", status=422)
    try:
        scopes = [str(each) for each in form.getlist("scopes")]
        made = service.new_key(actor, word(form, "label"), scopes, good_for)
    except InputError as problem:
        return _page(request, service, actor, key_error=str(problem), status=422)
    return _page(request, service, actor, made=made, status=201)


@router.post("/account/keys/{id}/revoke")
def revoke(service: Services, actor: Changing, id: Id) -> Response:
    """End a key."""
    service.revoke_key(actor, id)
    return see("/account?done=revoked")


def _page(
    request: Request,
    service: Service,
    actor: Actor,
    *,
    made: NewKeyView | None = None,
    key_error: str = "",
    password_error: str = "",
    status: int = 200,
) -> Response:
    return show(
        "account.html",
        actor,
        request=request,
        status=status,
        keys=[] if actor.new_password else service.keys(actor),
        made=made,
        key_error=key_error,
        password_error=password_error,
    )
