"""A steward's pages of data sets and budgets: what is left, and giving more."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from fastapi.responses import Response

from countwise.errors import InputError
from countwise.server.accounts import Actor
from countwise.server.histories import MOST_ROWS
from countwise.server.http import Caller, Changing, Stewardships
from countwise.server.pages.shell import Posted, see, show, word
from countwise.server.refusals import NotThere, Proposed
from countwise.server.request_bodies import Id, PathName, Scope
from countwise.server.stewardship import Stewardship

router = APIRouter(prefix="/steward")
SHOWN = 50  # entries on a page: a few screens; all of them in the history


@router.get("")
def overview(request: Request, steward: Stewardships, actor: Caller) -> Response:
    """Data sets, and the budget of every account."""
    return show(
        "steward.html",
        actor,
        request=request,
        datasets=steward.datasets(actor),
        budgets=steward.balances(actor),
        proposals=steward.proposals(actor),
    )


@router.get("/datasets/{name}")
def dataset(request: Request, steward: Stewardships, actor: Caller, name: PathName) -> Response:
    """What is public about a data set, open to the steward's account or not."""
    found = [each for each in steward.datasets(actor) if each.name == name]
    if not found:
        raise NotThere("there is no such data set.")
    users = [user for user in steward.users(actor) if name in user.datasets]
    return show("steward_dataset.html", actor, request=request, dataset=found[0], users=users)


@router.post("/proposals/{id}/approve")
def approve(steward: Stewardships, actor: Changing, id: Id) -> Response:
    """Approve another steward's proposal."""
    steward.decide(actor, id, approve=True)
    return see("/steward?done=approve")


@router.post("/proposals/{id}/refuse")
def refuse(steward: Stewardships, actor: Changing, id: Id) -> Response:
    """Turn a proposal down."""
    steward.decide(actor, id, approve=False)
    return see("/steward?done=refuse")


@router.get("/budgets/{scope}/{name}")
def budget(
    request: Request, steward: Stewardships, actor: Caller, scope: Scope, name: PathName
) -> Response:
    """One budget with its entries in the ledger."""
    return _page(request, steward, actor, scope, name)


@router.post("/budgets/{scope}/{name}/{how}")
def change(
    request: Request, steward: Stewardships, actor: Changing, scope: Scope, name: PathName,
    how: Annotated[Literal["grant", "cap"], InPath()], form: Posted,
) -> Response:  # fmt: skip
    """More budget, or what may be spent in all."""
    act = {"grant": steward.grant, "cap": steward.set_cap}[how]
    try:
        act(actor, scope, name, word(form, "epsilon", longest=100))
    except (InputError, Proposed) as problem:
        return _page(request, steward, actor, scope, name, errors={how: str(problem)})
    return see(f"/steward/budgets/{scope}/{name}?done={how}")


def _page(
    request: Request,
    steward: Stewardship,
    actor: Actor,
    scope: Scope,
    name: str,
    *,
    errors: Mapping[str, str] = MappingProxyType({}),
) -> Response:
    found = [e for e in steward.balances(actor) if (e.scope, e.name) == (scope, name)]
    if not found:
        raise NotThere("there is no such budget.")
    of: dict[str, Any] = {scope: name}
    return show(
        "steward_budget.html",
        actor,
        request=request,
        status=422 if errors else 200,
        budget=found[0],
        entries=steward.entries(actor, limit=MOST_ROWS, **of)[::-1][:SHOWN],
        errors=errors,
    )
