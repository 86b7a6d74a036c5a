"""The JSON API, version 1. It reads what was sent, calls the service, and says what came back."""

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi import Path as InPath
from fastapi.responses import FileResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from countwise.server import http
from countwise.server.http import Caller, Changing, Services, Stewardships
from countwise.server.views import (
    Ask,
    BalanceView,
    DatasetView,
    EntryView,
    EventView,
    JobView,
    KeyView,
    NewKeyView,
    PlanView,
    RehearsalView,
    UserView,
)
from countwise.verification.receipt import public_key

PADDED = 16_384

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
MaybeName = Annotated[str, StringConstraints(pattern=r"^([a-z0-9][a-z0-9._-]{0,63})?$")]
Text = Annotated[str, StringConstraints(max_length=4000, pattern=r"^[^\x00]*$")]
Word = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f]*$")]
Secret = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Id = Annotated[str, InPath(pattern=r"^[0-9a-f]{32}$")]
PathName = Annotated[str, InPath(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
Scope = Annotated[Literal["user", "dataset", "project"], InPath()]
Epsilon = Annotated[str | int | float, Field(description="Exact: text such as 0.5 or 1/3.")]


class Sent(BaseModel):
    """A body: nothing in it is passed over in silence."""

    model_config = ConfigDict(extra="forbid")


class AskBody(Sent):
    """A claim about a model of a data set, and what it may cost."""

    dataset: Name
    model: Text
    claim: Text
    epsilon: Epsilon
    partitions: Annotated[int, Field(ge=2, le=10_000)] = 50
    family: Word = "ols"
    mechanism: Word = "lattice"
    alpha: Annotated[list[float], Field(min_length=1, max_length=64)] = [1.0]
    project: MaybeName = ""

    def ask(self) -> Ask:
        """The same, as the service takes it."""
        fields = self.model_dump(exclude={"repetitions"})
        epsilon = self.epsilon if isinstance(self.epsilon, str) else repr(self.epsilon)
        return Ask(**fields | {"epsilon": epsilon[:100], "alpha": tuple(self.alpha)})


class RehearseBody(AskBody):
    """What to rehearse, and how often."""

    repetitions: Annotated[int, Field(ge=1, le=20)] = 1


class SignInBody(Sent):
    """A name and a password."""

    name: Secret
    password: Secret


class PasswordBody(Sent):
    """The old password and another."""

    old: Secret
    new: Secret


class SessionView(BaseModel):
    """Who is signed in; `csrf` goes into the header X-CSRF-Token of every change."""

    name: str
    role: str
    scopes: list[str]
    csrf: str


class KeyBody(Sent):
    """A key to be made."""

    label: Word
    scopes: Annotated[list[Word], Field(max_length=10)]
    days: float | None = None


class UserBody(Sent):
    """A user to be added."""

    name: Name
    role: Literal["analyst", "steward"]
    password: Secret


class Problem(BaseModel):
    """What a refusal looks like."""

    code: str
    message: str


class ProblemView(BaseModel):
    """A refusal; its message depends on the request and public facts only."""

    error: Problem


REFUSALS: dict[int | str, dict[str, Any]] = {
    code: {"model": ProblemView, "description": what}
    for code, what in {
        400: "Not JSON, or not HTTP as it should be",
        401: "Not signed in",
        402: "The budget does not allow it",
        403: "Not allowed",
        404: "Not there, or not for the caller to know",
        409: "Not in this state",
        413: "Too much was sent",
        415: "Not JSON",
        422: "What was sent can not be used",
        429: "Too many requests",
        503: "The database is busy, full or out of reach; nothing was changed",
    }.items()
}
router = APIRouter(prefix="/api/v1", responses=REFUSALS)


def padded(data: dict[str, Any]) -> Response:
    """JSON filled with spaces to a fixed size, so that the size says nothing."""
    body = json.dumps(data, ensure_ascii=False).encode()
    size = -(-(len(body) + 1) // PADDED) * PADDED
    return Response(body.ljust(size - 1) + b"\n", media_type="application/json")


@router.post("/session", tags=["session"])
def sign_in(
    request: Request, response: Response, service: Services, body: SignInBody
) -> SessionView:
    """Sign in; the session is a cookie."""
    made = service.sign_in(body.name, body.password, http.address(request))
    http.set_session(response, service.config, made)
    return _session(made.actor)


@router.get("/session", tags=["session"])
def session(actor: Caller) -> SessionView:
    """Who is calling."""
    return _session(actor)


@router.delete("/session", status_code=204, tags=["session"])
def sign_out(request: Request, response: Response, service: Services, actor: Changing) -> None:
    """Sign out."""
    if actor.in_session:
        service.sign_out(request.cookies[http.COOKIE])
    http.clear_session(response)


@router.put("/password", status_code=204, tags=["session"])
def password(service: Services, actor: Changing, body: PasswordBody) -> None:
    """Change the password; all sessions end."""
    service.change_password(actor, body.old, body.new)


@router.get("/datasets", tags=["data sets"])
def datasets(service: Services, actor: Caller) -> list[DatasetView]:
    """The data sets open to the caller."""
    return service.datasets(actor)


@router.get("/datasets/{name}", tags=["data sets"])
def dataset(service: Services, actor: Caller, name: PathName) -> DatasetView:
    """One data set: public schema and budget."""
    return service.dataset(actor, name)


@router.get("/datasets/{name}/synthetic", tags=["data sets"], response_class=FileResponse)
def synthetic(service: Services, actor: Caller, name: PathName) -> FileResponse:
    """The synthetic twin, as a file."""
    path = service.synthetic(actor, name)
    return FileResponse(path, filename=path.name, media_type="text/csv")


@router.get("/budget", tags=["data sets"])
def budget(service: Services, actor: Caller) -> list[BalanceView]:
    """Budgets of the caller and of projects and data sets in reach."""
    return service.budgets(actor)


@router.post("/plan", tags=["asking"])
def plan(service: Services, actor: Changing, body: AskBody) -> PlanView:
    """What asking would cost and could tell; spends nothing."""
    return service.plan(actor, body.ask())


@router.post("/rehearse", tags=["asking"])
def rehearse(service: Services, actor: Changing, body: RehearseBody) -> RehearsalView:
    """Ask the synthetic data; spends nothing."""
    return service.rehearse(actor, body.ask(), body.repetitions)


IdempotencyKey = Annotated[
    str, Header(min_length=1, max_length=100, pattern=r"^[\x21-\x7e]+$", alias="Idempotency-Key")
]


@router.post("/jobs", status_code=202, tags=["asking"])
def submit(service: Services, actor: Changing, body: AskBody, key: IdempotencyKey) -> JobView:
    """Charge and queue a claim. Sending it again with the same key changes nothing."""
    return service.submit(actor, body.ask(), key)


@router.get("/jobs", tags=["asking"])
def jobs(
    service: Services,
    actor: Caller,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: float | None = None,
) -> list[JobView]:
    """The caller's jobs, the newest first."""
    return service.jobs(actor, limit=limit, before=before)


@router.get("/jobs/{id}", tags=["asking"])
def job(service: Services, actor: Caller, id: Id) -> JobView:
    """One of the caller's jobs."""
    return service.job(actor, id)


@router.post("/jobs/{id}/cancel", tags=["asking"])
def cancel(service: Services, actor: Changing, id: Id) -> JobView:
    """Give a job up. The charge comes back only if no worker took the job yet."""
    return service.cancel(actor, id)


@router.get("/jobs/{id}/answer", tags=["asking"], response_model=dict[str, Any])
def answer(service: Services, actor: Caller, id: Id) -> Response:
    """The answer, once it is released; always of the same size."""
    return padded(service.answer(actor, id).to_dict())


@router.get("/jobs/{id}/receipt", tags=["asking"], response_model=dict[str, Any])
def receipt(service: Services, actor: Caller, id: Id) -> Response:
    """The signed receipt, once the answer is released; always of the same size."""
    return padded(service.receipt(actor, id))


@router.get("/key", tags=["asking"])
def key(service: Services) -> dict[str, str]:
    """The public key that receipts are signed for."""
    return {"key": public_key(service.signing_key)}


@router.get("/keys", tags=["keys"])
def keys(service: Services, actor: Caller) -> list[KeyView]:
    """The caller's API keys."""
    return service.keys(actor)


@router.post("/keys", status_code=201, tags=["keys"])
def new_key(service: Services, actor: Changing, body: KeyBody) -> NewKeyView:
    """A new API key; needs a session."""
    return service.new_key(actor, body.label, body.scopes, body.days)


@router.delete("/keys/{id}", status_code=204, tags=["keys"])
def revoke_key(service: Services, actor: Changing, id: Id) -> None:
    """End a key; needs a session."""
    service.revoke_key(actor, id)


def _session(actor: Any) -> SessionView:
    return SessionView(
        name=actor.name, role=actor.role, scopes=sorted(actor.scopes), csrf=actor.csrf
    )


stewards = APIRouter(prefix="/api/v1/steward", responses=REFUSALS, tags=["steward"])


@stewards.get("/datasets")
def all_datasets(steward: Stewardships, actor: Caller) -> list[DatasetView]:
    """All data sets."""
    return steward.datasets(actor)


@stewards.get("/users")
def users(steward: Stewardships, actor: Caller) -> list[UserView]:
    """All users."""
    return steward.users(actor)


@stewards.post("/users", status_code=201)
def add_user(steward: Stewardships, actor: Changing, body: UserBody) -> UserView:
    """A new user, with nothing to spend and no data set open yet."""
    return steward.add_user(actor, body.name, body.role, body.password)


@stewards.put("/users/{name}/disabled")
def set_disabled(
    steward: Stewardships, actor: Changing, name: PathName,
    disabled: Annotated[bool, Body(embed=True)],
) -> UserView:  # fmt: skip
    """Close an account, or open it again."""
    return steward.set_disabled(actor, name, disabled)


@stewards.put("/users/{name}/password", status_code=204)
def set_password(
    steward: Stewardships, actor: Changing, name: PathName,
    password: Annotated[Secret, Body(embed=True)],
) -> None:  # fmt: skip
    """Another password for a user."""
    steward.set_password(actor, name, password)


@stewards.put("/users/{name}/datasets/{dataset}")
def allow(steward: Stewardships, actor: Changing, name: PathName, dataset: PathName) -> UserView:
    """Open a data set to a user."""
    return steward.allow(actor, name, dataset)


@stewards.delete("/users/{name}/datasets/{dataset}")
def disallow(steward: Stewardships, actor: Changing, name: PathName, dataset: PathName) -> UserView:
    """Close a data set to a user."""
    return steward.allow(actor, name, dataset, allowed=False)


@stewards.put("/users/{name}/projects/{project}")
def join(steward: Stewardships, actor: Changing, name: PathName, project: PathName) -> UserView:
    """Put a user in a project."""
    return steward.join(actor, name, project)


@stewards.delete("/users/{name}/projects/{project}")
def leave(steward: Stewardships, actor: Changing, name: PathName, project: PathName) -> UserView:
    """Take a user out of a project."""
    return steward.join(actor, name, project, joined=False)


@stewards.get("/budgets")
def budgets(steward: Stewardships, actor: Caller) -> list[BalanceView]:
    """The budget of every account."""
    return steward.balances(actor)


@stewards.put("/budgets/{scope}/{name}")
def set_cap(
    steward: Stewardships, actor: Changing, scope: Scope, name: PathName,
    cap: Annotated[Word, Body(embed=True)],
) -> BalanceView:  # fmt: skip
    """What an account may spend in all."""
    return steward.set_cap(actor, scope, name, cap)


@stewards.post("/budgets/{scope}/{name}/grants")
def grant(
    steward: Stewardships, actor: Changing, scope: Scope, name: PathName,
    epsilon: Annotated[Word, Body(embed=True)],
) -> BalanceView:  # fmt: skip
    """More budget for an account."""
    return steward.grant(actor, scope, name, epsilon)


@stewards.get("/keys")
def all_keys(steward: Stewardships, actor: Caller) -> list[KeyView]:
    """All API keys."""
    return steward.keys(actor)


@stewards.delete("/keys/{id}", status_code=204)
def revoke_any_key(steward: Stewardships, actor: Changing, id: Id) -> None:
    """End anyone's key."""
    steward.revoke_key(actor, id)


@stewards.get("/jobs")
def all_jobs(
    steward: Stewardships, actor: Caller, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> list[JobView]:
    """Everyone's jobs, without their answers."""
    return steward.jobs(actor, limit=limit)


class AuditQuery(Sent):
    """Which part of the audit log."""

    by: Word = ""
    event: Word = ""
    subject: Word = ""
    since: float | None = None
    until: float | None = None
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200


@stewards.get("/audit")
def audit(
    steward: Stewardships, actor: Caller, which: Annotated[AuditQuery, Query()]
) -> list[EventView]:
    """The audit log, the newest first."""
    return steward.events(actor, **which.model_dump())


@stewards.get("/audit.csv", response_class=Response)
def audit_csv(
    steward: Stewardships, actor: Caller, which: Annotated[AuditQuery, Query()]
) -> Response:
    """The audit log as CSV."""
    return Response(steward.export(actor, **which.model_dump()), media_type="text/csv")


class EntryQuery(Sent):
    """Which entries of the ledger."""

    user: Word = ""
    dataset: Word = ""
    project: Word = ""
    kind: Word = ""
    after: Annotated[int, Field(ge=0, le=2**62)] = 0
    limit: Annotated[int, Field(ge=1, le=10_000)] = 200


@stewards.get("/ledger")
def entries(
    steward: Stewardships, actor: Caller, which: Annotated[EntryQuery, Query()]
) -> list[EntryView]:
    """Entries of the ledger in their order."""
    return steward.entries(actor, **which.model_dump())
