"""The first page, and data sets with what is public about them."""

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, Response

from countwise.server.http import Caller, Services
from countwise.server.pages.shell import show
from countwise.server.request_bodies import PathName

router = APIRouter()


@router.get("/")
def home(request: Request, service: Services, actor: Caller) -> Response:
    """Budgets, data sets and the latest questions."""
    return show(
        "home.html",
        actor,
        request=request,
        budgets=[budget for budget in service.budgets(actor) if budget.scope != "dataset"],
        datasets=service.datasets(actor),
        jobs=service.jobs(actor, limit=5),
    )


@router.get("/datasets/{name}")
def dataset(request: Request, service: Services, actor: Caller, name: PathName) -> Response:
    """A data set's public schema, budget and synthetic twin."""
    return show("dataset.html", actor, request=request, dataset=service.dataset(actor, name))


@router.get("/datasets/{name}/synthetic")
def synthetic(service: Services, actor: Caller, name: PathName) -> FileResponse:
    """The synthetic twin, to work on."""
    path = service.synthetic(actor, name)
    return FileResponse(path, filename=path.name, media_type="text/csv")
