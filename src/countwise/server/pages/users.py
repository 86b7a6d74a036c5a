"""A steward's pages of accounts: who there is, what they may use, closing and opening."""

import secrets

from fastapi import APIRouter, Request
from fastapi.responses import Response

from countwise.errors import InputError
from countwise.server.accounts import Actor
from countwise.server.http import Caller, Changing, Stewardships
from countwise.server.pages.shell import Posted, see, show, word
from countwise.server.request_bodies import PathName
from countwise.server.stewardship import Stewardship

router = APIRouter(prefix="/steward/users")


@router.get("")
def users(request: Request, steward: Stewardships, actor: Caller) -> Response:
    """All accounts, and the form for a new one."""
    return _page(request, steward, actor)


@router.post("")
def add(request: Request, steward: Stewardships, actor: Changing, form: Posted) -> Response:
    """A new account; its first password is made here and shown once."""
    name, password = word(form, "name"), secrets.token_urlsafe(12)
    try:
        steward.add_user(actor, name, word(form, "role"), password)
    except InputError as problem:
        return _page(request, steward, actor, name=name, problem=str(problem), status=422)
    return _user(request, steward, actor, name, password=password, status=201)


@router.get("/{name}")
def user(request: Request, steward: Stewardships, actor: Caller, name: PathName) -> Response:
    """One account."""
    return _user(request, steward, actor, name)


@router.post("/{name}/password")
def reset(request: Request, steward: Stewardships, actor: Changing, name: PathName) -> Response:
    """A new password for whoever forgot theirs, shown once."""
    password = secrets.token_urlsafe(12)
    steward.set_password(actor, name, password)
    return _user(request, steward, actor, name, password=password)


@router.post("/{name}/close")
def close(steward: Stewardships, actor: Changing, name: PathName) -> Response:
    """Close an account."""
    steward.set_disabled(actor, name, True)
    return see(f"/steward/users/{name}?done=closed")


@router.post("/{name}/open")
def reopen(steward: Stewardships, actor: Changing, name: PathName) -> Response:
    """Open it again."""
    steward.set_disabled(actor, name, False)
    return see(f"/steward/users/{name}?done=opened")


@router.post("/{name}/datasets")
def allow(steward: Stewardships, actor: Changing, name: PathName, form: Posted) -> Response:
    """Open the data sets that are ticked, and close the others."""
    ticked = {str(each) for each in form.getlist("datasets")}
    has = set(steward.user(actor, name).datasets)
    served = {each.name for each in steward.datasets(actor)}
    for dataset in sorted((ticked ^ has) & served):
        steward.allow(actor, name, dataset, allowed=dataset in ticked)
    return see(f"/steward/users/{name}?done=access")


@router.post("/{name}/projects")
def join(
    request: Request, steward: Stewardships, actor: Changing, name: PathName, form: Posted
) -> Response:
    """Put a user in a project."""
    try:
        steward.join(actor, name, word(form, "project"))
    except InputError as problem:
        return _user(request, steward, actor, name, problem=str(problem), status=422)
    return see(f"/steward/users/{name}?done=access")


@router.post("/{name}/projects/{project}/leave")
def leave(steward: Stewardships, actor: Changing, name: PathName, project: PathName) -> Response:
    """Take a user out of a project."""
    steward.join(actor, name, project, joined=False)
    return see(f"/steward/users/{name}?done=access")


def _page(
    request: Request,
    steward: Stewardship,
    actor: Actor,
    *,
    name: str = "",
    problem: str = "",
    status: int = 200,
) -> Response:
    return show(
        "steward_users.html",
        actor,
        request=request,
        status=status,
        users=steward.users(actor),
        name=name,
        problem=problem,
    )


def _user(
    request: Request,
    steward: Stewardship,
    actor: Actor,
    name: str,
    *,
    password: str = "",
    problem: str = "",
    status: int = 200,
) -> Response:
    return show(
        "steward_user.html",
        actor,
        request=request,
        status=status,
        user=steward.user(actor, name),
        datasets=steward.datasets(actor),
        password=password,
        problem=problem,
    )
