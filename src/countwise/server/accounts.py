"""Who is asking: users and passwords, sessions, API keys, and how often they may.

Passwords are kept as argon2id hashes. Session tokens and API keys are 256 random bits, kept as
SHA-256: there is nothing to guess. Whoever may not know of a thing is told it is not there.
"""

import hashlib
import hmac
import re
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Literal, get_args
from uuid import uuid4

import sqlalchemy as sa
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from countwise.errors import InputError
from countwise.ledger.storage import reading, writing
from countwise.server.config import Config
from countwise.server.refusals import Forbidden, NotSignedIn, NotThere, TooMany
from countwise.server.tables import api_keys, rates, sessions, users

Role = Literal["analyst", "steward"]
Scope = Literal["read", "submit", "steward", "metrics"]
ROLES: tuple[Role, ...] = get_args(Role)
SCOPES: tuple[Scope, ...] = get_args(Scope)
ALLOWED: dict[str, frozenset[str]] = {
    "analyst": frozenset(("read", "submit")),
    "steward": frozenset(SCOPES),
}
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
SHORTEST_PASSWORD, LONGEST_PASSWORD = 10, 1000

_hasher = PasswordHasher()
_nobody = _hasher.hash(secrets.token_hex(16))
_hashing = threading.Semaphore(4)  # each takes 64 MiB


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Whoever makes a request: a user in a session (which has a CSRF token) or with a key."""

    name: str
    role: str
    scopes: frozenset[str]
    csrf: str = ""

    @property
    def in_session(self) -> bool:
        """Whether a person signed in, rather than a program with a key."""
        return bool(self.csrf)

    def need(self, scope: Scope) -> None:
        """Refuse unless the role and the key reach so far."""
        if scope not in self.scopes:
            raise Forbidden(f"this needs the scope {scope!r}, which you do not have.")


@dataclass(frozen=True, kw_only=True)
class SignedIn:
    """A new session: the cookie's value, and the token that forms must carry."""

    token: str
    csrf: str
    actor: Actor
    expires: float


def digest(secret: str) -> str:
    """How a random secret is kept."""
    return hashlib.sha256(secret.encode()).hexdigest()


def hash_password(password: str) -> str:
    """How a password is kept; a short one is refused."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InputError(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD:,} characters.")
    with _hashing:
        return _hasher.hash(password)


def add_user(connection: sa.Connection, name: str, role: str, password: str) -> None:
    """A new user; names are never used twice, because the ledger remembers them."""
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
            password=hash_password(password),
            created=time.time(),
            disabled=False,
        )
    )


def limit_rate(engine: sa.Engine, key: str, per_minute: int) -> None:
    """Count one more in this minute, in the database, so that all processes count together."""
    minute = int(time.time() // 60)
    with writing(engine) as connection:
        row = connection.execute(sa.select(rates).where(rates.c.key == key)).first()
        if row is None:
            connection.execute(sa.delete(rates).where(rates.c.minute < minute - 1))
            connection.execute(sa.insert(rates).values(key=key, minute=minute, hits=1))
            return
        hits = row.hits + 1 if row.minute == minute else 1
        if hits > per_minute:
            raise TooMany("too many requests in this minute. Try again in the next.")
        connection.execute(
            sa.update(rates).where(rates.c.key == key).values(minute=minute, hits=hits)
        )


def sign_in(engine: sa.Engine, config: Config, name: str, password: str, address: str) -> SignedIn:
    """A session for the right password; wrong names and wrong passwords take as long."""
    limit_rate(engine, f"address:{address}"[:200], 5 * config.sign_ins_per_minute)
    limit_rate(engine, f"sign-in:{digest(name)}", config.sign_ins_per_minute)
    with reading(engine) as connection:
        row = connection.execute(sa.select(users).where(users.c.name == name)).first()
    right = _matches(row.password if row else _nobody, password[: LONGEST_PASSWORD + 1])
    if row is None or not right or row.disabled:
        raise NotSignedIn("the name or the password is wrong.")
    token, csrf, now = secrets.token_urlsafe(32), secrets.token_urlsafe(32), time.time()
    expires = now + 3600 * config.session_hours
    with writing(engine) as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.expires < now))
        connection.execute(
            sa.insert(sessions).values(
                token=digest(token), user=name, csrf=csrf, seen=now, expires=expires
            )
        )
    actor = Actor(name=name, role=row.role, scopes=ALLOWED[row.role], csrf=csrf)
    return SignedIn(token=token, csrf=csrf, actor=actor, expires=expires)


def sign_out(engine: sa.Engine, token: str) -> None:
    """End a session."""
    with writing(engine) as connection:
        connection.execute(sa.delete(sessions).where(sessions.c.token == digest(token)))


def session_actor(engine: sa.Engine, config: Config, token: str) -> Actor:
    """Whose session it is, if it is still good."""
    now, idle = time.time(), 60 * config.session_idle_minutes
    with reading(engine) as connection:
        row = connection.execute(
            sa.select(sessions.c.seen, sessions.c.expires, sessions.c.csrf, users)
            .join(users, users.c.name == sessions.c.user)
            .where(sessions.c.token == digest(token))
        ).first()
    if row is None or row.disabled or now > row.expires or now > row.seen + idle:
        raise NotSignedIn("the session is over. Sign in again.")
    if now > row.seen + min(60, idle / 2):
        with writing(engine) as connection:
            own = sessions.c.token == digest(token)
            connection.execute(sa.update(sessions).where(own).values(seen=now))
    return Actor(name=row.name, role=row.role, scopes=ALLOWED[row.role], csrf=row.csrf)


def check_csrf(actor: Actor, token: str | None) -> None:
    """A change asked for in a session must carry the session's own token."""
    if actor.in_session and not hmac.compare_digest(actor.csrf.encode(), (token or "").encode()):
        raise Forbidden("the form is not from this session. Reload the page and try again.")


def new_key(
    connection: sa.Connection, actor: Actor, label: str, scopes: list[str], days: float | None
) -> tuple[str, str]:
    """The id of a new API key and the key itself, which is shown this once."""
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
            expires=None if days is None else now + 86400 * days,
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


def _matches(kept: str, password: str) -> bool:
    try:
        with _hashing:
            return _hasher.verify(kept, password)
    except (VerificationError, InvalidHashError):
        return False


def change_password(engine: sa.Engine, config: Config, name: str, old: str, new: str) -> None:
    """Another password for whoever knows the old one."""
    limit_rate(engine, f"sign-in:{digest(name)}", config.sign_ins_per_minute)
    with reading(engine) as connection:
        kept = connection.scalar(sa.select(users.c.password).where(users.c.name == name))
    if kept is None or not _matches(kept, old[: LONGEST_PASSWORD + 1]):
        raise Forbidden("the old password is wrong.")
    with writing(engine) as connection:
        set_password(connection, name, new)


def set_password(connection: sa.Connection, name: str, password: str) -> None:
    """Another password; all sessions of the user end."""
    own = users.c.name == name
    connection.execute(sa.update(users).where(own).values(password=hash_password(password)))
    connection.execute(sa.delete(sessions).where(sessions.c.user == name))


def revoke_key(engine: sa.Engine, key: str, *, user: str | None = None) -> None:
    """End a key, of one user or of any."""
    wanted = (api_keys.c.id == key) & api_keys.c.revoked.is_(None)
    if user is not None:
        wanted &= api_keys.c.user == user
    with writing(engine) as connection:
        done = connection.execute(sa.update(api_keys).where(wanted).values(revoked=time.time()))
        if done.rowcount == 0:
            raise NotThere("there is no such key.")
