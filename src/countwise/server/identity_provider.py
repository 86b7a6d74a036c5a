"""Signing in at the office's identity provider: OpenID Connect, authorization code with PKCE.

The provider says who somebody is and, in a claim, which groups they are in; settings say which
groups have which role here. A user comes into being at the first sign-in, with nothing to spend,
and gets the role anew at each; whoever has no role any more loses the account. The code is bound to
the browser by a state, a nonce and a verifier in a cookie. (OpenID Connect Core 1.0; RFC 7636.)
"""

import re
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

import httpx
import sqlalchemy as sa

from countwise.errors import ConfigError
from countwise.ledger.storage import reading, writing
from countwise.server import accounts
from countwise.server.accounts import ALLOWED, NAME, ROLES, Role, SignedIn
from countwise.server.config import Config
from countwise.server.discovery import PATIENCE_SECONDS, Discovery
from countwise.server.events import note
from countwise.server.passwords import NONE
from countwise.server.refusals import NotSignedIn, TooMany
from countwise.server.tables import users

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
LEEWAY_SECONDS = 60  # for its clock
MOST_ASKING = 8
"""How many threads may wait for it at once, of the forty that answer all pages."""
REFUSED = "the identity provider did not confirm who you are. Try again, or ask a steward."
STALE = "the identity provider did not ask anew who you are, or does not say when it last did."
NO_ROLE = "the identity provider knows you, and none of your groups has a role here."


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What a browser takes along to the provider and brings back.

    With `max_age`, the provider is to ask who somebody is if it last did more seconds ago.
    """

    state: str
    nonce: str
    verifier: str
    max_age: int = 0

    def to_text(self) -> str:
        """As it stands in a cookie."""
        return f"{self.state}.{self.nonce}.{self.verifier}.{self.max_age}"


def new_errand(max_age: int = 0) -> Errand:
    """Three random texts."""
    return Errand(
        max_age=max_age,
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
    )


def read_errand(text: str) -> Errand:
    """What `to_text` wrote."""
    parts = text.split(".")
    if len(parts) != 4 or not all(parts) or not re.fullmatch("[0-9]{1,9}", parts[3]):
        raise NotSignedIn(REFUSED)
    return Errand(state=parts[0], nonce=parts[1], verifier=parts[2], max_age=int(parts[3]))


def read_roles(text: str) -> dict[str, Role]:
    """Which group has which role: `group = role, group = role`."""
    found: dict[str, Role] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        group, _, role = (each.strip() for each in part.rpartition("="))
        if not group or role not in ROLES:
            raise ConfigError(
                f"oidc_roles: {part!r} is no group = role, with a role of {', '.join(ROLES)}."
            )
        found[group] = role
    return found


class IdentityProvider:
    """The office's provider, as its discovery document describes it."""

    def __init__(self, config: Config) -> None:
        self.config, self.roles = config, read_roles(config.oidc_roles)
        address = urlparse(config.oidc_issuer)
        if address.scheme != "https" and address.hostname not in ("127.0.0.1", "localhost"):
            raise ConfigError("oidc_issuer must be an https address.")
        self._discovery = Discovery(config.oidc_issuer)
        self._places = threading.BoundedSemaphore(MOST_ASKING)

    def begin(self, errand: Errand) -> str:
        """The address at the provider to send a browser to."""
        more = {"max_age": errand.max_age} if errand.max_age else {}
        with self._asking(), self._client() as client:
            address, _ = client.create_authorization_url(
                self._discovery.fact("authorization_endpoint"),
                state=errand.state,
                nonce=errand.nonce,
                code_verifier=errand.verifier,
                **more,
            )
        return str(address)

    def claims(self, errand: Errand, returned: Mapping[str, str]) -> dict[str, Any]:
        """What the provider says of whoever came back; refused unless it is all in order."""
        if not secrets.compare_digest(returned.get("state", "").encode(), errand.state.encode()):
            raise NotSignedIn(REFUSED)
        with self._asking():
            found = self._read(errand, returned.get("code", ""))
        if errand.max_age and signed_in_at(found) < time.time() - errand.max_age - LEEWAY_SECONDS:
            raise NotSignedIn(STALE)
        return found

    def _read(self, errand: Errand, code: str) -> dict[str, Any]:
        """The claims of the token that a code is good for, checked."""
        from authlib.common.errors import AuthlibBaseError
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        try:
            with self._client() as client:
                token = client.fetch_token(
                    self._discovery.fact("token_endpoint"), code=code, code_verifier=errand.verifier
                )
            where = self._discovery.fact("jwks_uri")
            keys = httpx.get(where, timeout=PATIENCE_SECONDS).json()
            read = jwt.decode(token["id_token"], KeySet.import_key_set(keys), algorithms=ALGORITHMS)
            jwt.JWTClaimsRegistry(
                leeway=LEEWAY_SECONDS,
                iss={"essential": True, "value": self.config.oidc_issuer},
                aud={"essential": True, "value": self.config.oidc_client},
                nonce={"essential": True, "value": errand.nonce},
                exp={"essential": True},
                sub={"essential": True},
            ).validate(read.claims)
        except (AuthlibBaseError, JoseError, httpx.HTTPError, KeyError, TypeError, ValueError):
            raise NotSignedIn(REFUSED) from None
        return dict(read.claims)

    def role_of(self, claims: Mapping[str, Any]) -> Role:
        """The most a group of theirs allows: steward before auditor before analyst."""
        said = claims.get(self.config.oidc_claim, ())
        groups = {said} if isinstance(said, str) else set(map(str, said or ()))
        found = {role for group, role in self.roles.items() if group in groups}
        order: tuple[Role, ...] = ("steward", "auditor", "analyst")
        for role in order:
            if role in found:
                return role
        raise NotSignedIn(NO_ROLE)

    def _client(self) -> Any:
        from authlib.integrations.httpx_client import OAuth2Client

        return OAuth2Client(
            client_id=self.config.oidc_client,
            client_secret=self.config.oidc_secret or None,
            redirect_uri=self.config.oidc_redirect,
            scope="openid profile " + self.config.oidc_scopes,
            code_challenge_method="S256",
            timeout=PATIENCE_SECONDS,
        )

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """A place among the few that may wait for the provider; refused at once without one."""
        if not self._places.acquire(blocking=False):
            raise TooMany("many people sign in just now. Try again in a moment.")
        try:
            yield
        finally:
            self._places.release()


def signed_in_at(claims: Mapping[str, Any]) -> float:
    """When the provider last asked who somebody is; never, if it does not say."""
    said, now = claims.get("auth_time"), time.time()
    if isinstance(said, bool) or not isinstance(said, int | float) or not said > 0:
        return 0.0
    return float(said) if said < now else now


def sign_in_with(
    engine: sa.Engine, config: Config, provider: IdentityProvider, claims: Mapping[str, Any]
) -> SignedIn:
    """A session of whom the provider named; a user of that subject, made where there is none."""
    subject = f"{claims['iss']} {claims['sub']}"[:300]
    mine = users.c.subject == subject
    try:
        role = provider.role_of(claims)
    except NotSignedIn:
        _close(engine, mine)
        raise
    with writing(engine) as connection:
        row = connection.execute(sa.select(users).where(mine)).first()
        if row is None:
            name = _name(connection, claims)
            connection.execute(
                sa.insert(users).values(
                    name=name,
                    role=role,
                    password=NONE,
                    created=time.time(),
                    disabled=False,
                    new_password=False,
                    subject=subject,
                )
            )
            note(connection, name, "added user", name, role=role, by="identity provider")
        elif row.role != role:
            connection.execute(sa.update(users).where(mine).values(role=role))
            if ALLOWED[row.role] - ALLOWED[role]:
                accounts.end_access(connection, row.name)
            note(connection, row.name, "changed role", row.name, role=role, was=row.role)
    with reading(engine) as connection:
        row = connection.execute(sa.select(users).where(mine)).one()
    if row.disabled:
        note(engine, row.name, "sign-in failed", why="closed")
        raise NotSignedIn("this account is closed.")
    note(engine, row.name, "signed in", by="identity provider")
    return accounts.begin_session(engine, config, row, since=signed_in_at(claims))


def _close(engine: sa.Engine, mine: sa.ColumnElement[bool]) -> None:
    """End all access of a user in whose groups nobody has a role any more."""
    with writing(engine) as connection:
        row = connection.execute(sa.select(users).where(mine)).first()
        if row is not None and not row.disabled:
            connection.execute(sa.update(users).where(mine).values(disabled=True))
            accounts.end_access(connection, row.name)
            note(connection, row.name, "closed user", row.name, by="identity provider")


def _name(connection: sa.Connection, claims: Mapping[str, Any]) -> str:
    """A name of its own for a new user; one that is taken is somebody else's."""
    said = str(claims.get("preferred_username") or claims.get("email") or claims["sub"])
    base = re.sub(r"[^a-z0-9._-]+", "-", said.lower().partition("@")[0]).strip("._-")[:50]
    base = base if NAME.fullmatch(base) else "user"
    for number in range(1, 1000):
        name = base if number == 1 else f"{base}-{number}"
        if connection.scalar(sa.select(users.c.name).where(users.c.name == name)) is None:
            return name
    raise NotSignedIn(REFUSED)
