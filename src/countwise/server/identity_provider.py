"""Signing in at the office's identity provider: OpenID Connect, authorization code with PKCE.

The provider says who somebody is and, in a claim, which groups they are in; settings say which
groups have which role here. A user comes into being at the first sign-in, with nothing to spend,
and gets the role anew at each. The code is bound to the browser by a state, a nonce and a verifier
in a cookie. (OpenID Connect Core 1.0; RFC 7636.)
"""

import re
import secrets
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

import httpx
import sqlalchemy as sa

from countwise.errors import ConfigError
from countwise.ledger.storage import reading, writing
from countwise.server import accounts
from countwise.server.accounts import NAME, ROLES, Role, SignedIn
from countwise.server.config import Config
from countwise.server.events import note
from countwise.server.passwords import NONE
from countwise.server.refusals import NotSignedIn
from countwise.server.tables import users

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
KEPT_SECONDS, LEEWAY_SECONDS, PATIENCE_SECONDS = 3600.0, 60, 10.0
"""For its facts, for its clock, and for its answer."""
REFUSED = "the identity provider did not confirm who you are. Try again, or ask a steward."
NO_ROLE = "the identity provider knows you, and none of your groups has a role here."


@dataclass(frozen=True, kw_only=True)
class Errand:
    """What a browser takes along to the provider and brings back."""

    state: str
    nonce: str
    verifier: str

    def to_text(self) -> str:
        """As it stands in a cookie."""
        return f"{self.state}.{self.nonce}.{self.verifier}"


def new_errand() -> Errand:
    """Three random texts."""
    return Errand(
        state=secrets.token_urlsafe(24),
        nonce=secrets.token_urlsafe(24),
        verifier=secrets.token_urlsafe(48),
    )


def read_errand(text: str) -> Errand:
    """What `to_text` wrote."""
    parts = text.split(".")
    if len(parts) != 3 or not all(parts):
        raise NotSignedIn(REFUSED)
    return Errand(state=parts[0], nonce=parts[1], verifier=parts[2])


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
        self._facts: dict[str, Any] = {}
        self._read_at, self._reading = 0.0, threading.Lock()

    def begin(self, errand: Errand) -> str:
        """The address at the provider to send a browser to."""
        with self._client() as client:
            address, _ = client.create_authorization_url(
                self._fact("authorization_endpoint"),
                state=errand.state,
                nonce=errand.nonce,
                code_verifier=errand.verifier,
            )
        return str(address)

    def claims(self, errand: Errand, returned: Mapping[str, str]) -> dict[str, Any]:
        """What the provider says of whoever came back; refused unless it is all in order."""
        from authlib.common.errors import AuthlibBaseError
        from joserfc import jwt
        from joserfc.errors import JoseError
        from joserfc.jwk import KeySet

        if not secrets.compare_digest(returned.get("state", "").encode(), errand.state.encode()):
            raise NotSignedIn(REFUSED)
        try:
            with self._client() as client:
                token = client.fetch_token(
                    self._fact("token_endpoint"),
                    code=returned.get("code", ""),
                    code_verifier=errand.verifier,
                )
            keys = httpx.get(self._fact("jwks_uri"), timeout=PATIENCE_SECONDS).json()
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

    def _fact(self, name: str) -> str:
        """An entry of the discovery document, which is read anew every hour."""
        with self._reading:
            if not self._facts or time.monotonic() > self._read_at + KEPT_SECONDS:
                where = self.config.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration"
                try:
                    found = httpx.get(where, timeout=PATIENCE_SECONDS).json()
                    right = found["issuer"] == self.config.oidc_issuer
                except (httpx.HTTPError, ValueError, KeyError, TypeError):
                    right = False
                if not right:
                    raise NotSignedIn("the identity provider does not answer. Try again later.")
                self._facts, self._read_at = found, time.monotonic()
            return str(self._facts[name])


def sign_in_with(
    engine: sa.Engine, config: Config, provider: IdentityProvider, claims: Mapping[str, Any]
) -> SignedIn:
    """A session of whom the provider named; a user of that subject, made where there is none."""
    role, subject = provider.role_of(claims), f"{claims['iss']} {claims['sub']}"[:300]
    with writing(engine) as connection:
        mine = users.c.subject == subject
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
            note(connection, row.name, "changed role", row.name, role=role, was=row.role)
    with reading(engine) as connection:
        row = connection.execute(sa.select(users).where(mine)).one()
    if row.disabled:
        note(engine, row.name, "sign-in failed", why="closed")
        raise NotSignedIn("this account is closed.")
    note(engine, row.name, "signed in", by="identity provider")
    return accounts.begin_session(engine, config, row)


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
