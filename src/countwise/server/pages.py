"""The pages. Templates are in `templates`, everything a browser loads in `static`."""

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response

router = APIRouter(include_in_schema=False)


def refused(request: Request, status: int, message: str) -> Response:  # noqa: ARG001
    """A refusal outside the API, as a page."""
    return PlainTextResponse(f"{message}\n", status_code=status)
