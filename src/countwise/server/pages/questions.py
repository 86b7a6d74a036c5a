"""Asking: the claim's form, its plan, its rehearsal on synthetic data, and sending it."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from countwise.errors import BudgetError, InputError
from countwise.reports.verification_page import charts
from countwise.server.accounts import Actor
from countwise.server.http import Caller, Changing, Services
from countwise.server.pages.claimform import (
    EMPTY,
    FAMILIES,
    MECHANISMS,
    ClaimForm,
    form_of,
    read_form,
)
from countwise.server.pages.shell import Posted, by_htmx, see, show, word
from countwise.server.refusals import Conflict, NotThere, TooMany
from countwise.server.request_bodies import MaybeName, PathName
from countwise.server.service import Service
from countwise.verification.answer import recompute
from countwise.verification.question import Question

router = APIRouter()
REPETITIONS = ("1", "5", "20")
REFUSED = (InputError, NotThere, TooMany)
CHANGED = "You changed the question after its cost was shown. Look at it again; nothing was spent."
USED = "This form was sent before, with another question. To ask this one too, send it once more."


@router.get("/ask")
def ask_form(
    request: Request,
    service: Services,
    actor: Caller,
    dataset: MaybeName = "",
    like: MaybeName = "",
) -> Response:
    """An empty form, or one filled in like an earlier question."""
    if like:
        form = form_of(service.job(actor, like).ask)
        return _page(request, service, actor, form, **_planned(service, actor, form))
    form = ClaimForm(values=EMPTY | {"dataset": dataset})
    return _page(request, service, actor, form)


@router.get("/ask/columns")
def columns(service: Services, actor: Caller, dataset: PathName) -> Response:
    """The columns of a data set, to pick from."""
    return show("ask_columns.html", actor, dataset=service.dataset(actor, dataset))


@router.post("/ask/plan")
def plan(request: Request, service: Services, actor: Changing, posted: Posted) -> Response:
    """What asking would cost and could tell."""
    form = read_form(posted)
    found = _planned(service, actor, form)
    return _page(request, service, actor, piece="ask_plan.html", **{"form": form} | found)


@router.post("/ask/rehearse")
def rehearse(request: Request, service: Services, actor: Changing, posted: Posted) -> Response:
    """Ask the synthetic data."""
    form, repetitions = read_form(posted), word(posted, "repetitions")
    often = int(repetitions) if repetitions in REPETITIONS else 1
    try:
        view = service.rehearse(actor, form.question(), often)
    except REFUSED as problem:
        form = form.wrong(problem)
        return _page(request, service, actor, form, piece="ask_rehearsal.html")
    answer = recompute(view.answer)
    found: dict[str, Any] = {
        "rehearsal": view,
        "words": answer.sentences(),
        "charts": charts(answer),
        "repetitions": str(often),
    }
    if not by_htmx(request):
        found = _planned(service, actor, form) | found
    return _page(request, service, actor, piece="ask_rehearsal.html", **{"form": form} | found)


@router.post("/ask")
def submit(request: Request, service: Services, actor: Changing, posted: Posted) -> Response:
    """Charge and queue the claim whose cost was seen, and go on to its page."""
    form, status = read_form(posted), 422
    found: Mapping[str, Any] = {}
    try:
        question = form.question()
        if word(posted, "seen") != question.fingerprint:
            found = {"notice": CHANGED, **_plan(service, actor, question)}
        else:
            return see(f"/jobs/{service.submit(actor, question, form.key).id}")
    except REFUSED as problem:
        form = form.wrong(problem)
    except BudgetError:
        status, found = 402, _planned(service, actor, form)
    except Conflict:
        form = form.with_new_key()
        status, found = 409, {"notice": USED, **_planned(service, actor, form)}
    return _page(request, service, actor, status=status, **{"form": form} | dict(found))


def _planned(service: Service, actor: Actor, form: ClaimForm) -> dict[str, Any]:
    """The plan of a form, or the form with what is wrong; and the names a claim may use."""
    found: dict[str, Any] = {"coefficients": ()}
    given = form.values
    try:
        if given["model"]:
            found["coefficients"] = service.coefficients(actor, given["dataset"], given["model"])
        if form.begun:
            found |= _plan(service, actor, form.question())
    except REFUSED as problem:
        found["form"] = form.wrong(problem)
    return found


def _plan(service: Service, actor: Actor, question: Question) -> dict[str, Any]:
    return {"plan": service.plan(actor, question), "seen": question.fingerprint}


def _page(
    request: Request,
    service: Service,
    actor: Actor,
    form: ClaimForm,
    *,
    piece: str = "",
    status: int = 200,
    **values: Any,
) -> Response:
    """The form with whatever is known of its question; for htmx only the piece that changed."""
    known = {
        "form": form,
        "plan": None,
        "seen": "",
        "rehearsal": None,
        "coefficients": (),
        "notice": "",
        "repetitions": REPETITIONS[0],
        **values,
    }
    if piece and by_htmx(request):
        return show(piece, actor, by_htmx=True, **known)
    datasets = service.datasets(actor)
    chosen = form.values["dataset"]
    return show(
        "ask.html",
        actor,
        request=request,
        status=status,
        datasets=datasets,
        dataset=next(
            (dataset for dataset in datasets if dataset.name == chosen), next(iter(datasets), None)
        ),
        projects=service.projects(actor),
        families=FAMILIES,
        mechanisms=MECHANISMS,
        often=REPETITIONS,
        **known,
    )
