"""Questions that were asked: their list, their state as it changes, and their answers."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from countwise.reports.verification_page import answer_facts
from countwise.server.accounts import Actor
from countwise.server.http import Caller, Changing, Services, filled, filled_json
from countwise.server.pages.shell import see, show
from countwise.server.request_bodies import Id
from countwise.server.responses import JobView
from countwise.server.service import Service

router = APIRouter()
PAGE = 50  # answers on a page: a few screens


@router.get("/jobs")
def history(
    request: Request, service: Services, actor: Caller, before: float | None = None
) -> Response:
    """The actor's questions, the newest first."""
    jobs = service.jobs(actor, limit=PAGE + 1, before=before)
    more = jobs[PAGE - 1].created if len(jobs) > PAGE else None
    return show("jobs.html", actor, request=request, jobs=jobs[:PAGE], more=more)


@router.get("/jobs/{id}")
def job(request: Request, service: Services, actor: Caller, id: Id) -> Response:
    """One question: its state, or its answer."""
    found = service.job(actor, id)
    if found.status == "answered":
        return _answered(request, service, actor, found)
    return show("job.html", actor, request=request, job=found)


@router.get("/jobs/{id}/status")
def status(
    service: Services, actor: Caller, id: Id, was: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """The state, for a page that watches it; nothing while it stays as it was."""
    found = service.job(actor, id)
    if found.status == was:
        return Response(status_code=204)
    if found.status == "answered":
        return Response(headers={"HX-Refresh": "true"})
    return show("job_state.html", actor, job=found, by_htmx=True)


@router.post("/jobs/{id}/cancel")
def cancel(service: Services, actor: Changing, id: Id) -> Response:
    """Give a question up."""
    service.cancel(actor, id)
    return see(f"/jobs/{id}?done=cancelled")


@router.get("/jobs/{id}/receipt")
def receipt(service: Services, actor: Caller, id: Id) -> Response:
    """The signed receipt, as a file."""
    named = {"Content-Disposition": f'attachment; filename="receipt-{id[:8]}.json"'}
    return filled_json(service.receipt(actor, id), **named)


def _answered(request: Request, service: Service, actor: Actor, job: JobView) -> Response:
    facts = answer_facts(service.answer(actor, job.id))
    budgets = [
        budget
        for budget in service.budgets(actor)
        if (budget.scope, budget.name)
        in (("user", actor.name), ("dataset", job.ask.dataset), ("project", job.ask.project))
    ]
    page = show("job_answer.html", actor, request=request, job=job, budgets=budgets, **facts)
    return filled("text/html", bytes(page.body).decode())
