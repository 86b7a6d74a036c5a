"""A steward's pages of what happened: audit log, ledger, questions, and everyone's keys."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response

from countwise.errors import InputError
from countwise.server.http import Caller, Changing, Stewardships
from countwise.server.pages.shell import plain, see, show
from countwise.server.request_bodies import Id

router = APIRouter(prefix="/steward")
WORDS = ("by", "event", "subject")
DATES = ("since", "until")
ENTRY_WORDS = ("user", "dataset", "project", "kind")
SHOWN = 200  # entries on a page


def _words(request: Request) -> dict[str, str]:
    """What was asked for in the address, as far as it is plain text."""
    given = {name: value.strip()[:200] for name, value in request.query_params.items()}
    if not all(map(plain, given.values())):
        raise InputError("a filter is text without control characters.")
    return given


Words = Annotated[dict[str, str], Depends(_words)]


@router.get("/audit")
def audit(request: Request, steward: Stewardships, actor: Caller, words: Words) -> Response:
    """The audit log, filtered."""
    which, problem = _which(words)
    return show(
        "steward_audit.html",
        actor,
        request=request,
        status=422 if problem else 200,
        events=steward.events(actor, **which, limit=SHOWN),
        shown=SHOWN,
        words={name: words.get(name, "") for name in (*WORDS, *DATES)},
        export=urlencode({name: words[name] for name in (*WORDS, *DATES) if words.get(name)}),
        problem=problem,
    )


@router.get("/audit.csv")
def audit_file(steward: Stewardships, actor: Caller, words: Words) -> Response:
    """The same as a file, all of it."""
    which, problem = _which(words)
    if problem:
        raise InputError(problem)
    return Response(
        steward.export(actor, **which),
        media_type="text/csv",
        headers={"Content-Disposition": 'attachment; filename="audit.csv"'},
    )


@router.get("/ledger")
def ledger(request: Request, steward: Stewardships, actor: Caller, words: Words) -> Response:
    """Entries of the ledger in their order."""
    start = words.get("after", "")
    after = int(start) if start.isascii() and start.isdigit() and len(start) < 18 else 0
    which = {name: words.get(name, "") for name in ENTRY_WORDS}
    entries = steward.entries(actor, **which, after=after, limit=SHOWN)
    more = entries[-1].seq if len(entries) == SHOWN else None
    following = urlencode({name: value for name, value in which.items() if value} | {"after": more})
    return show(
        "steward_ledger.html",
        actor,
        request=request,
        entries=entries,
        words=which,
        following=following if more else "",
    )


@router.get("/jobs")
def jobs(request: Request, steward: Stewardships, actor: Caller) -> Response:
    """Everyone's questions, without their answers."""
    found = steward.jobs(actor, limit=SHOWN)
    return show("steward_jobs.html", actor, request=request, jobs=found, shown=SHOWN)


@router.get("/keys")
def keys(request: Request, steward: Stewardships, actor: Caller) -> Response:
    """Everyone's keys."""
    return show("steward_keys.html", actor, request=request, keys=steward.keys(actor))


@router.post("/keys/{id}/revoke")
def revoke(steward: Stewardships, actor: Changing, id: Id) -> Response:
    """End anyone's key."""
    steward.revoke_key(actor, id)
    return see("/steward/keys?done=revoked")


def _which(words: dict[str, str]) -> tuple[dict[str, Any], str]:
    """The filter of the log, and what is wrong with it; days are whole, in UTC."""
    which: dict[str, Any] = {name: words.get(name, "") for name in WORDS}
    for name in DATES:
        try:
            day = date.fromisoformat(words[name]) if words.get(name) else None
        except ValueError:
            return which, "a day is written as 2026-01-31."
        if day is not None:
            start = datetime.combine(day, time(), UTC) + timedelta(days=name == "until")
            which[name] = start.timestamp()
    return which, ""
