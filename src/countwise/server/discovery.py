"""What the identity provider says of itself: its discovery document (OpenID Connect Discovery 1.0).

It is fetched by one thread at a time, and nobody waits for that thread: the others use what is
known, or are refused at once. So a provider that does not answer holds up one thread and no page.
"""

import threading
import time

import httpx

from countwise.server.refusals import NotSignedIn

NAMES = ("authorization_endpoint", "token_endpoint", "jwks_uri")
KEPT_SECONDS, REST_SECONDS, PATIENCE_SECONDS = 3600.0, 10.0, 10.0
"""For what was found, for the next try where nothing was, and for an answer."""


class Discovery:
    """The addresses of a provider, looked up anew every hour."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._facts: dict[str, str] = {}
        self._due, self._fetching = 0.0, threading.Lock()

    def fact(self, name: str) -> str:
        """One of the addresses; refused while none is known."""
        if time.monotonic() >= self._due and self._fetching.acquire(blocking=False):
            try:
                found = self._fetch()
                self._facts = found or self._facts
                self._due = time.monotonic() + (KEPT_SECONDS if found else REST_SECONDS)
            finally:
                self._fetching.release()
        if not self._facts:
            raise NotSignedIn("the identity provider does not answer. Try again later.")
        return self._facts[name]

    def _fetch(self) -> dict[str, str]:
        """All of them; none if the provider does not answer, or not for itself."""
        where = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            said = httpx.get(where, timeout=PATIENCE_SECONDS).json()
            return (
                {name: str(said[name]) for name in NAMES} if said["issuer"] == self.issuer else {}
            )
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return {}
