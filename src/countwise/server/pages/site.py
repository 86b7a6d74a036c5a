"""All pages under one router, and refusals as pages."""

from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from countwise.server.http import clear_session
from countwise.server.pages import (
    answers,
    assets,
    budgets,
    datasets,
    history,
    keys,
    questions,
    session,
    users,
)
from countwise.server.pages.shell import by_htmx, show

router = APIRouter(include_in_schema=False)
for part in (assets, session, datasets, questions, answers, keys, users, budgets, history):
    router.include_router(part.router)

TITLES = {
    402: "The budget does not allow it",
    403: "Not allowed",
    404: "Not there",
    405: "Not this way",
    409: "Not in this state",
    413: "Too much was sent",
    422: "This can not be used as it is",
    429: "Too many requests",
    503: "Busy for the moment",
}


def refused(request: Request, status: int, message: str) -> Response:
    """A refusal outside the API, as a page; without a session, the way to sign in."""
    if status == 401:
        return _sign_in_first(request)
    if message.startswith("path.") or message == "Not Found":  # an address that is none of ours
        status, message = 404, "there is no such page."
    title = TITLES.get(status, "Something went wrong")
    if by_htmx(request):
        return show("trouble.html", None, status=status, title=title, message=message)
    return show("refused.html", None, status=status, title=title, message=message)


def _sign_in_first(request: Request) -> Response:
    place = request.url.path if request.method == "GET" and not by_htmx(request) else "/"
    target = "/sign-in" if place == "/" else f"/sign-in?next={quote(place)}"
    if by_htmx(request):
        return Response(headers={"HX-Redirect": target})
    response = RedirectResponse(target, status_code=303)
    clear_session(response)
    return response
