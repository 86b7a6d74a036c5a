"""The JSON API, version 1. It reads what was sent, calls the service, and says what came back."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse

from countwise.server import http
from countwise.server.accounts import Actor
from countwise.server.http import Caller, Changing, Services
from countwise.server.request_bodies import (
    REFUSALS,
    Id,
    IdempotencyKey,
    KeyBody,
    PasswordBody,
    PathName,
    QuestionBody,
    RehearseBody,
    SessionView,
    SignInBody,
)
from countwise.server.responses import (
    JobView,
    KeysView,
    KeyView,
    NewKeyView,
    RehearsalView,
)
from countwise.verification.exchange import BudgetState, QuestionPlan
from countwise.verification.exchange import Dataset as PublicDataset

router = APIRouter(prefix="/api/v1", responses=REFUSALS)


@router.post("/session", tags=["session"])
def sign_in(
    request: Request, response: Response, service: Services, body: SignInBody
) -> SessionView:
    """Sign in; the session is a cookie."""
    device = request.cookies.get(http.DEVICE, "")
    made = service.sign_in(body.name, body.password, http.address(request), device)
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
def password(request: Request, service: Services, actor: Changing, body: PasswordBody) -> None:
    """Change the password; all sessions and keys end."""
    service.change_password(actor, body.old, body.new, http.address(request))


@router.get("/datasets", tags=["data sets"])
def datasets(service: Services, actor: Caller) -> list[PublicDataset]:
    """The data sets open to the caller."""
    return service.datasets(actor)


@router.get("/datasets/{name}", tags=["data sets"])
def dataset(service: Services, actor: Caller, name: PathName) -> PublicDataset:
    """One data set: public schema and budget."""
    return service.dataset(actor, name)


@router.get("/datasets/{name}/synthetic", tags=["data sets"], response_class=FileResponse)
def synthetic(service: Services, actor: Caller, name: PathName) -> FileResponse:
    """The synthetic twin, as a file."""
    path = service.synthetic(actor, name)
    return FileResponse(path, filename=path.name, media_type="text/csv")


@router.get("/budget", tags=["data sets"])
def budget(service: Services, actor: Caller) -> list[BudgetState]:
    """Budgets of the caller and of projects and data sets in reach."""
    return service.budgets(actor)


@router.post("/plan", tags=["asking"])
def plan(service: Services, actor: Changing, body: QuestionBody) -> QuestionPlan:
    """What asking would cost and could tell; spends nothing."""
    return service.plan(actor, body.question())


@router.post("/rehearse", tags=["asking"])
def rehearse(service: Services, actor: Changing, body: RehearseBody) -> RehearsalView:
    """Ask the synthetic data; spends nothing."""
    return service.rehearse(actor, body.question(), body.repetitions)


@router.post("/jobs", status_code=202, tags=["asking"])
def submit(service: Services, actor: Changing, body: QuestionBody, key: IdempotencyKey) -> JobView:
    """Charge and queue a claim. Sending it again with the same key changes nothing."""
    return service.submit(actor, body.question(), key)


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
    return http.filled_json(service.answer(actor, id).to_dict())


@router.get("/jobs/{id}/receipt", tags=["asking"], response_model=dict[str, Any])
def receipt(service: Services, actor: Caller, id: Id) -> Response:
    """The signed receipt, once the answer is released; always of the same size."""
    return http.filled_json(service.receipt(actor, id))


@router.get("/key", tags=["asking"])
def key(service: Services) -> KeysView:
    """The public key that receipts are signed with, and those before it with their dates."""
    found = service.signing_keys.periods
    return KeysView(key=found[-1].key, keys=found)


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


def _session(actor: Actor) -> SessionView:
    return SessionView(
        name=actor.name,
        role=actor.role,
        scopes=sorted(actor.scopes),
        csrf=actor.csrf,
        new_password=actor.new_password,
    )
