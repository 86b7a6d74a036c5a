"""Calls over HTTP: made again when there is no answer, with refusals as errors."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from countwise.errors import BudgetError, CountwiseError, InputError

AGAIN = (429, 502, 503, 504)  # statuses of HTTP that say: not now, and nothing was done
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0  # seconds; doubled from the one to the other


class RefusedError(CountwiseError):
    """The server did not do what was asked; `status` and `code` say of which kind it is."""

    def __init__(self, message: str, *, status: int, code: str, pause: float = 0.0) -> None:
        super().__init__(message)
        self.status, self.code, self.pause = status, code, pause


class UnreachableError(CountwiseError):
    """No answer in time. With `key`, that of a submission, sending again can not pay twice."""

    def __init__(self, message: str, *, key: str | None) -> None:
        super().__init__(message)
        self.key = key


class _Here(urllib.request.HTTPRedirectHandler):
    """A key is for one server: it is never taken on to another address."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Calls:
    """A server's API, called with a key. Whatever is called may be called twice."""

    def __init__(
        self, url: str, key: str, *, timeout: float, patience: float, allow_http: bool
    ) -> None:
        place = urlsplit(url)
        if place.scheme not in ("http", "https") or not place.hostname:
            raise InputError(f"a server's address begins with https://, got {url!r}.")
        near = place.hostname in ("localhost", "127.0.0.1", "::1")
        if place.scheme == "http" and not near and not allow_http:
            raise InputError(
                "over http:// anyone on the way can read the key. To fix, use https://, or say "
                "allow_http=True on a network of your own."
            )
        self._url, self._key = url.rstrip("/"), key
        self._timeout, self._patience = timeout, patience
        self._answered = False
        self._opener = urllib.request.build_opener(_Here)

    @property
    def address(self) -> str:
        """Whom it calls; the key is not shown."""
        return self._url

    def get(self, path: str) -> Any:
        """What the server says at a place."""
        return _json(self._call(self._request("GET", path)))

    def get_file(self, path: str) -> bytes:
        """A file of the server."""
        return self._call(self._request("GET", path))

    def post(
        self, path: str, body: Mapping[str, Any] | None = None, *, key: str | None = None
    ) -> Any:
        """What the server says to a body; `key` makes it one submission, however often sent."""
        request = self._request("POST", path)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        if key is not None:
            request.add_header("Idempotency-Key", key)
        return _json(self._call(request, key=key))

    def _request(self, method: str, path: str) -> urllib.request.Request:
        request = urllib.request.Request(f"{self._url}/api/v1{path}", method=method)
        request.add_header("Authorization", f"Bearer {self._key}")
        return request

    def _call(self, request: urllib.request.Request, *, key: str | None = None) -> bytes:
        end, pause = time.monotonic() + self._patience, FIRST_PAUSE
        while True:
            try:
                with self._opener.open(request, timeout=self._timeout) as response:
                    content: bytes = response.read()
                self._answered = True
                return content
            except urllib.error.HTTPError as problem:
                self._answered = True
                refusal = _refusal(problem)
                if refusal.status not in AGAIN or time.monotonic() + refusal.pause > end:
                    raise refusal from None
                rest = max(pause, refusal.pause)
            except (OSError, HTTPException) as problem:
                first = pause == FIRST_PAUSE
                if first and not self._answered and _is_refused(problem):
                    raise UnreachableError(
                        f"nothing answers at {self._url} (connection refused). To fix, check the "
                        "address and its port, and that the server runs. Nothing was sent.",
                        key=key,
                    ) from None
                if time.monotonic() + pause > end:
                    raise UnreachableError(self._silence(problem, key), key=key) from None
                rest = pause
            time.sleep(rest)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _silence(self, problem: Exception, key: str | None) -> str:
        reason = getattr(problem, "reason", problem)
        text = f"{self._url} gave no answer within {self._patience:g} seconds ({reason})."
        if key is None:
            return text
        return (
            f"{text} Whether the question was charged is not known. To fix, submit the same "
            f"question again with key={key!r}: it is charged once at most."
        )


def _is_refused(problem: Exception) -> bool:
    """Whether nobody listens: a server that has answered before may only be starting anew."""
    return isinstance(getattr(problem, "reason", problem), ConnectionRefusedError)


def _refusal(problem: urllib.error.HTTPError) -> "RefusedError":
    with problem:
        content, pause = problem.read(), problem.headers.get("Retry-After", "")
    try:
        told = json.loads(content)["error"]
        code, message = str(told["code"]), str(told["message"])
    except (ValueError, TypeError, KeyError):
        code, message = "unknown", f"not an answer of a countwise server (HTTP {problem.code})."
    kind = {402: BudgetRefusedError, 422: InputRefusedError}.get(problem.code, RefusedError)
    seconds = float(pause) if pause.isascii() and pause.isdigit() else 0.0
    return kind(message, status=problem.code, code=code, pause=seconds)


class BudgetRefusedError(RefusedError, BudgetError):
    """The privacy budget does not allow the question."""


class InputRefusedError(RefusedError, InputError):
    """A model, claim or number that can not be used as it is."""


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        raise RefusedError(
            "not an answer of a countwise server: no JSON.", status=200, code="unknown"
        ) from None
