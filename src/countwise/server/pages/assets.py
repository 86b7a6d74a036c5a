"""What a browser loads beside a page: one style sheet, two scripts, an icon. All from here."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from fastapi import APIRouter
from fastapi.responses import Response

from countwise.pages.page import render
from countwise.server.refusals import NotThere

router = APIRouter()
KINDS = {
    "style.css": "text/css",
    "app.js": "text/javascript",
    "htmx.min.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent, with its fingerprint."""

    kind: str
    content: bytes

    @property
    def fingerprint(self) -> str:
        """Changes when the content does, so that browsers may keep it for ever."""
        return hashlib.sha256(self.content).hexdigest()[:16]


@cache
def _asset(name: str) -> Asset:
    content = (files("countwise.server") / "static" / name).read_bytes()
    if name == "style.css":
        content = _look().encode() + content
    return Asset(kind=KINDS[name], content=content)


def _look() -> str:
    """The style of all pages, which stands in their head and may not stand in ours."""
    found = re.search(r"<style>(.*?)</style>", render("base.html", title=""), re.DOTALL)
    assert found is not None
    return found[1]


def address(name: str) -> str:
    """Where a page finds a file."""
    return f"/static/{name}?{_asset(name).fingerprint}"


@router.get("/static/{name}")
def static(name: str) -> Response:
    """One of the files."""
    if name not in KINDS:
        raise NotThere("there is no such file.")
    asset = _asset(name)
    return Response(
        asset.content,
        media_type=asset.kind,
        headers={"Cache-Control": "public, max-age=31536000, immutable"},
    )
