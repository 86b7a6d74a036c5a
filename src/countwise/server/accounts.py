"""Who is asking: users and passwords, sessions, API keys.

Whoever may not know of a thing is told it is not there.
"""

import hmac
import re
import secrets
import time
from dataclasses import dataclass
from math import inf
from typing import Any, Literal, get_args
from uuid import uuid4

import sqlalchemy as sa

from countwise.errors import InputError
from countwise.ledger.storage import reading, writing
from countwise.server.config import Config
from countwise.server.events import note
from countwise.server.passwords import hash_password, matches
from countwise.server.refusals import Forbidden, NotSignedIn, NotThere, PasswordFirst
from countwise.server.secrets_kept import digest
from countwise.server.sign_in_limits import enter, forgive, is_known, remember
from countwise.server.tables import api_keys, devices, sessions, users

Role = Literal["analyst", "steward", "auditor"]
Scope = Literal["read", "submit", "audit", "steward", "metrics"]
ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALLOWED: dict[str, frozenset[str]] = {
    "analyst": frozenset(("read", "submit")),
    "steward": frozenset(SCOPES),
    "auditor": frozenset(("read", "audit", "metrics")),
}
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
KEY_DAYS = 365.0
"""How long a key is good of which nothing else is said."""


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Whoever makes a request: a user in a session (which has a CSRF token) or with a key.

    `since` is when a person signed in; with a `new_password` due, they may change it and no more.
    """

    name: str
    role: str
    scopes: frozenset[str]
    csrf: str = ""
    since: float = inf
    new_password: bool = False

    @property
    def in_session(self) -> bool:
        """Whether a person signed in, rather than a program with a key."""
        return bool(self.csrf)

    def need(self, scope: Scope) -> None:
        """Refuse unless the role and the key reach so far."""
        if self.new_password:
            raise PasswordFirst("change your first password, under Account, before anything else.")
        if scope not in self.scopes and not (scope == "audit" and "steward" in self.scopes):
            raise Forbidden(f"this needs the scope {scope!r}, which you do not have.")

    def need_person(self, scope: Scope, *, minutes: float) -> None:
        """Refuse unless a person with this scope signed in so lately."""
        self.need(scope)
        if not self.in_session:
            raise Forbidden("this is done by a person who signed in, not with a key.")
        if time.time() - self.since > 60 * minutes:
            raise Forbidden(
                f"this needs a sign-in of the last {minutes:g} minutes. Sign out, and in again; at "
                "the identity provider, with its question who you are."
            )


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """A new session: the cookie's value, the token that forms must carry, the browser's own."""

    token: str
    csrf: str
    actor: Actor
    expires: float
    device: str = ""


def add_user(
    connection: sa.Connection, name: str, role: str, password: str, *, first: bool = False
) -> None:
    """A new user; names are never used twice, because the ledger remembers them.

    A `first` password must be changed before anything else is done.
    """
    if not NAME.fullmatch(name):
        raise InputError(
            "a user is named with small letters, digits, '.', '-' and '_', at most 64, and begins "
            "with a letter or digit."
        )
    if role not in ROLES:
        raise InputError(f"a role is one of {', '.join(ROLES)}.")
    if connection.scalar(sa.select(users.c.name).where(users.c.name == name)):
        raise InputError(f"there is a user {name!r} already.")
    connection.execute(
        sa.insert(users).values(
            name=name,
            role=role,
            password=hash_password(password, name=name),
            created=time.time(),
            disabled=False,
            new_password=first,
        )
    )


def sign_in(
    engine: sa.Engine, config: Config, name: str, password: str, address: str, device: str = ""
) -> SignedIn:
    """A session for the right password; wrong names and wrong passwords take as long."""
    with reading(engine) as connection:
        known = is_known(connection, name, device)
    enter(engine, name, address, per_minute=config.sign_ins_per_minute, known=known)
    with reading(engine) as connection:
        row = connection.execute(sa.select(users).where(users.c.name == name)).first()
    right = matches(row.password if row else None, password)
    if row is None or not right or row.disabled:
        why = "unknown name" if row is None else "wrong password" if not right else "closed"
        note(engine, row.name if row else "", "sign-in failed", why=why, address=address[:100])
        raise NotSignedIn("the name or the password is wrong.")
    forgive(engine, name, address, known=known)
    return begin_session(engine, config, row, device=device if known else "")


def begin_session(
    engine: sa.Engine, config: Config, row: Any, *, device: str = "", since: float | None = None
) -> SignedIn:
    """A session of a user who showed who they are, now or before; a new browser gets known."""
    token, csrf, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), time.time()
    expires, since = now + 3600 * config.session_hours, now if since is None else since
    with writing(engine) as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.expires < now))
        connection.execute(
            sa.insert(sessions).values(
                token=digest(token),
                user=row.name,
                csrf=csrf,
                seen=now,
                expires=expires,
                since=since,
            )
        )
        device = device or remember(connection, row.name)
    made = _in_session(row, csrf, since)
    return SignedIn(token=token, csrf=csrf, actor=made, expires=expires, device=device)


def _in_session(row: Any, csrf: str, since: float) -> Actor:
    return Actor(
        name=row.name,
        role=row.role,
        scopes=ALLOWED[row.role],
        csrf=csrf,
        since=since,
        new_password=row.new_password,
    )


def sign_out(engine: sa.Engine, token: str) -> None:
    """End a session."""
    with writing(engine) as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.token == digest(token)))


def session_actor(engine: sa.Engine, config: Config, token: str) -> Actor:
    """Whose session it is, if it is still good."""
    now, idle = time.time(), 60 * config.session_idle_minutes
    with reading(engine) as connection:
        row = connection.execute(
            sa.select(sessions.c.seen, sessions.c.expires, sessions.c.csrf, sessions.c.since, users)
            .join(users, users.c.name == sessions.c.user)
            .where(sessions.c.token == digest(token))
        ).first()
    if row is None or row.disabled or now > row.expires or now > row.seen + idle:
        raise NotSignedIn("the session is over. Sign in again.")
    if now > row.seen + min(60, idle / 2):
        with writing(engine) as connection:
            own = sessions.c.token == digest(token)
            connection.execute(sa.update(sessions).where(own).values(seen=now))
    return _in_session(row, row.csrf, row.since)


def check_csrf(actor: Actor, token: str | None) -> None:
    """A change asked for in a session must carry the session's own token."""
    if actor.in_session and not hmac.compare_digest(actor.csrf.encode(), (token or "").encode()):
        raise Forbidden("the form is not from this session. Reload the page and try again.")


def new_key(
    connection: sa.Connection, actor: Actor, label: str, scopes: list[str], days: float | None
) -> tuple[str, str]:
    """The id of a new API key and the key itself, which is shown this once."""
    actor.need("read")
    wanted = frozenset(scopes)
    if not wanted or not wanted <= actor.scopes:
        raise InputError(f"the scopes of a key are some of {', '.join(sorted(actor.scopes))}.")
    if not label.isprintable() or not 1 <= len(label) <= 100:
        raise InputError("the label of a key has 1 to 100 printable characters.")
    if days is not None and not 0 < days <= 3660:
        raise InputError("a key is good for more than 0 and at most 3660 days.")
    identity, secret, now = uuid4().hex, secrets.token_urlsafe(32), time.time()
    connection.execute(
        sa.insert(api_keys).values(
            id=identity,
            user=actor.name,
            label=label,
            hash=digest(secret),
            scopes=" ".join(sorted(wanted)),
            created=now,
            expires=now + 86400 * (KEY_DAYS if days is None else days),
            revoked=None,
        )
    )
    return identity, f"cw_{identity}_{secret}"


def key_actor(engine: sa.Engine, text: str) -> Actor:
    """Whose key it is, if it is good; it reaches no further than its user does today."""
    _, _, rest = text.partition("cw_")
    identity, _, secret = rest.partition("_")
    with reading(engine) as connection:
        row = connection.execute(
            sa.select(api_keys, users.c.role, users.c.disabled)
            .join(users, users.c.name == api_keys.c.user)
            .where(api_keys.c.id == identity)
        ).first()
    right = hmac.compare_digest(row.hash if row else "", digest(secret))
    over = row is not None and row.expires is not None and time.time() > row.expires
    if row is None or not right or over or row.revoked is not None or row.disabled:
        raise NotSignedIn("the API key is not good.")
    scopes = frozenset(row.scopes.split()) & ALLOWED[row.role]
    return Actor(name=row.user, role=row.role, scopes=scopes)


def change_password(
    engine: sa.Engine, config: Config, name: str, old: str, new: str, address: str = ""
) -> None:
    """Another password for whoever knows the old one."""
    enter(engine, name, address, per_minute=config.sign_ins_per_minute, known=True)
    with reading(engine) as connection:
        kept = connection.scalar(sa.select(users.c.password).where(users.c.name == name))
    if not matches(kept, old):
        raise Forbidden("the old password is wrong.")
    if old == new:
        raise InputError("the new password must be another one.")
    with writing(engine) as connection:
        set_password(connection, name, new)


def set_password(
    connection: sa.Connection, name: str, password: str, *, first: bool = False
) -> None:
    """Another password; the user's sessions and keys end. A `first` one must be changed."""
    kept = hash_password(password, name=name)
    own = users.c.name == name
    connection.execute(sa.update(users).where(own).values(password=kept, new_password=first))
    end_access(connection, name)


def end_access(connection: sa.Connection, name: str) -> None:
    """All that a user signed in with before is over: sessions, keys, known browsers."""
    for table in (sessions, devices):
        connection.execute(sa.delete(table).where(table.c.user == name))
    good = (api_keys.c.user == name) & api_keys.c.revoked.is_(None)
    connection.execute(sa.update(api_keys).where(good).values(revoked=time.time()))


def revoke_key(engine: sa.Engine, key: str, *, user: str | None = None) -> None:
    """End a key, of one user or of any."""
    wanted = (api_keys.c.id == key) & api_keys.c.revoked.is_(None)
    if user is not None:
        wanted &= api_keys.c.user == user
    with writing(engine) as connection:
        done = connection.execute(sa.update(api_keys).where(wanted).values(revoked=time.time()))
        if done.rowcount == 0:
            raise NotThere("there is no such key.")
