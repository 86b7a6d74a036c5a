"""What is around every page: templates, what a form sent, going on to another page."""

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Annotated

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.datastructures import FormData

from countwise.errors import InputError
from countwise.server.accounts import Actor
from countwise.server.pages.assets import address

DONE = {
    "password": "The password was changed.",
    "revoked": "The key was revoked.",
    "grant": "The budget was raised.",
    "cap": "The budget was set.",
    "approve": "The proposal was approved.",
    "refuse": "The proposal was turned down.",
    "closed": "The account was closed and its sessions ended.",
    "opened": "The account is open again.",
    "access": "What the user may use was changed.",
    "cancelled": "The question was cancelled.",
}


@cache
def _environment() -> Environment:
    """Templates of the server, then those of all pages: an answer's page gets the server's base."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("countwise.server"), PackageLoader("countwise.pages")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"moment": moment, "machine_time": machine_time, "part_of": part_of}
    environment.globals |= {"asset": address, "software": version("countwise")}
    return environment


def show(
    template: str,
    actor: Actor | None,
    *,
    request: Request | None = None,
    status: int = 200,
    **values: object,
) -> HTMLResponse:
    """A page, or a piece of one; `done` in the address becomes a notice."""
    done = DONE.get(request.query_params.get("done", "")) if request else None
    given: Mapping[str, object] = {
        "actor": actor,
        "here": request.url.path if request else "",
        "done": done,
        **values,
    }
    return HTMLResponse(_environment().get_template(template).render(given), status_code=status)


def see(path: str) -> Response:
    """Go on to another page after a change."""
    return RedirectResponse(path, status_code=303)


def by_htmx(request: Request) -> bool:
    """Whether a piece of a page is wanted rather than a whole one."""
    return request.headers.get("hx-request") == "true"


async def _posted(request: Request) -> FormData:
    form = await request.form()
    for name, value in form.multi_items():
        if not isinstance(value, str) or not plain(name) or not plain(value):
            raise InputError("a form holds text, without control characters.")
    return form


def plain(text: str) -> bool:
    """Whether a text can be kept: no control characters but line ends and tabs."""
    return all(each.isprintable() or each in "\n\r\t" for each in text)


Posted = Annotated[FormData, Depends(_posted)]


def word(form: FormData, name: str, *, longest: int = 4000) -> str:
    """A field of a form, or nothing; cut where no honest value is as long."""
    return str(form.get(name, "")).strip()[:longest]


def moment(seconds: float) -> str:
    """A time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%-d %b %Y, %H:%M:%S UTC")


def machine_time(seconds: float) -> str:
    """A time for programs."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def part_of(amount: str, whole: str) -> float:
    """An amount in percent of a whole, for the width of a bar."""
    return round(min(100.0, 100 * float(amount) / float(whole)), 2) if float(whole) else 0.0
