"""The part of the JSON API that is for stewards."""

from typing import Annotated

from fastapi import APIRouter, Body, Query, Response

from countwise.server.http import Caller, Changing, Stewardships
from countwise.server.request_bodies import (
    REFUSALS,
    AuditQuery,
    EntryQuery,
    Id,
    PathName,
    Scope,
    Secret,
    UserBody,
    Word,
)
from countwise.server.responses import (
    EntryView,
    EventView,
    JobView,
    KeyView,
    ProposalView,
    UserView,
)
from countwise.verification.exchange import BudgetState
from countwise.verification.exchange import Dataset as PublicDataset

router = APIRouter(prefix="/api/v1/steward", responses=REFUSALS, tags=["steward"])


@router.get("/datasets")
def all_datasets(steward: Stewardships, actor: Caller) -> list[PublicDataset]:
    """All data sets."""
    return steward.datasets(actor)


@router.get("/users")
def users(steward: Stewardships, actor: Caller) -> list[UserView]:
    """All users."""
    return steward.users(actor)


@router.post("/users", status_code=201)
def add_user(steward: Stewardships, actor: Changing, body: UserBody) -> UserView:
    """A new user, with nothing to spend and no data set open yet."""
    return steward.add_user(actor, body.name, body.role, body.password)


@router.put("/users/{name}/disabled")
def set_disabled(
    steward: Stewardships, actor: Changing, name: PathName,
    disabled: Annotated[bool, Body(embed=True)],
) -> UserView:  # fmt: skip
    """Close an account, or open it again."""
    return steward.set_disabled(actor, name, disabled)


@router.put("/users/{name}/password", status_code=204)
def set_password(
    steward: Stewardships, actor: Changing, name: PathName,
    password: Annotated[Secret, Body(embed=True)],
) -> None:  # fmt: skip
    """Another password for a user."""
    steward.set_password(actor, name, password)


@router.put("/users/{name}/datasets/{dataset}")
def allow(steward: Stewardships, actor: Changing, name: PathName, dataset: PathName) -> UserView:
    """Open a data set to a user."""
    return steward.allow(actor, name, dataset)


@router.delete("/users/{name}/datasets/{dataset}")
def disallow(steward: Stewardships, actor: Changing, name: PathName, dataset: PathName) -> UserView:
    """Close a data set to a user."""
    return steward.allow(actor, name, dataset, allowed=False)


@router.put("/users/{name}/projects/{project}")
def join(steward: Stewardships, actor: Changing, name: PathName, project: PathName) -> UserView:
    """Put a user in a project."""
    return steward.join(actor, name, project)


@router.delete("/users/{name}/projects/{project}")
def leave(steward: Stewardships, actor: Changing, name: PathName, project: PathName) -> UserView:
    """Take a user out of a project."""
    return steward.join(actor, name, project, joined=False)


@router.get("/budgets")
def budgets(steward: Stewardships, actor: Caller) -> list[BudgetState]:
    """The budget of every account."""
    return steward.balances(actor)


@router.put("/budgets/{scope}/{name}")
def set_cap(
    steward: Stewardships, actor: Changing, scope: Scope, name: PathName,
    cap: Annotated[Word, Body(embed=True)],
) -> BudgetState:  # fmt: skip
    """What an account may spend in all."""
    return steward.set_cap(actor, scope, name, cap)


@router.post("/budgets/{scope}/{name}/grants")
def grant(
    steward: Stewardships, actor: Changing, scope: Scope, name: PathName,
    epsilon: Annotated[Word, Body(embed=True)],
) -> BudgetState:  # fmt: skip
    """More budget for an account."""
    return steward.grant(actor, scope, name, epsilon)


@router.get("/proposals")
def proposals(steward: Stewardships, actor: Caller) -> list[ProposalView]:
    """The budgets that wait for a second steward."""
    return steward.proposals(actor)


@router.post("/proposals/{id}/approve")
def approve(steward: Stewardships, actor: Changing, id: Id) -> BudgetState:
    """Approve another steward's proposal."""
    return steward.decide(actor, id, approve=True)


@router.post("/proposals/{id}/refuse")
def refuse(steward: Stewardships, actor: Changing, id: Id) -> BudgetState:
    """Turn a proposal down."""
    return steward.decide(actor, id, approve=False)


@router.get("/keys")
def all_keys(steward: Stewardships, actor: Caller) -> list[KeyView]:
    """All API keys."""
    return steward.keys(actor)


@router.delete("/keys/{id}", status_code=204)
def revoke_any_key(steward: Stewardships, actor: Changing, id: Id) -> None:
    """End anyone's key."""
    steward.revoke_key(actor, id)


@router.get("/jobs")
def all_jobs(
    steward: Stewardships, actor: Caller, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> list[JobView]:
    """Everyone's jobs, without their answers."""
    return steward.jobs(actor, limit=limit)


@router.get("/audit")
def audit(
    steward: Stewardships, actor: Caller, which: Annotated[AuditQuery, Query()]
) -> list[EventView]:
    """The audit log, the newest first."""
    return steward.events(actor, **which.model_dump())


@router.get("/audit.csv", response_class=Response)
def audit_csv(
    steward: Stewardships, actor: Caller, which: Annotated[AuditQuery, Query()]
) -> Response:
    """The audit log as CSV."""
    return Response(steward.export(actor, **which.model_dump()), media_type="text/csv")


@router.get("/ledger")
def entries(
    steward: Stewardships, actor: Caller, which: Annotated[EntryQuery, Query()]
) -> list[EntryView]:
    """Entries of the ledger in their order."""
    return steward.entries(actor, **which.model_dump())
