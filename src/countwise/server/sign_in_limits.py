"""How often a sign-in may be tried: by name and address, by address, and by name.

Only whoever fails is held up. A browser that signed in to a name before is known by a cookie, and
what strangers do to that name, or others at that address, does not hold it up: so nobody is locked
out by somebody else's wrong passwords.
"""

import secrets
import time

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from countwise.ledger.storage import counting, writing
from countwise.server.events import note
from countwise.server.refusals import TooMany
from countwise.server.secrets_kept import digest
from countwise.server.tables import devices, rates

BY_ADDRESS, BY_NAME = 5, 20
"""How often as many failures an address may have in a minute, and a name from all addresses."""


def count(connection: sa.Connection, key: str, per_minute: int) -> int:
    """Count one more in this minute, for all processes together; how many are too many."""
    minute = int(time.time() // 60)
    more = sa.case((rates.c.hits > per_minute, per_minute + 2), else_=rates.c.hits + 1)
    hits = sa.case((rates.c.minute == minute, more), else_=1)
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    counted = (
        dialect.insert(rates)
        .values(key=key, minute=minute, hits=1)
        .on_conflict_do_update(index_elements=["key"], set_={"minute": minute, "hits": hits})
        .returning(rates.c.hits)
    )
    return max(0, int(connection.scalar(counted) or 0) - per_minute)


def limit_rate(engine: sa.Engine, key: str, per_minute: int) -> None:
    """Refuse more than so many in a minute."""
    with counting(engine) as connection:
        over = count(connection, key, per_minute)
    if over:
        raise TooMany("too many requests in this minute. Try again in the next.")


def enter(engine: sa.Engine, name: str, address: str, *, per_minute: int, known: bool) -> None:
    """Count an attempt to sign in, before it is looked at; refused where there were too many."""
    _enter(engine, _keys(name, address, known=known), address, per_minute)


def enter_elsewhere(engine: sa.Engine, address: str, *, per_minute: int) -> None:
    """The same of an attempt by way of another service, which says no name."""
    _enter(engine, [_by_address(address)], address, per_minute)


def _enter(engine: sa.Engine, keys: list[tuple[str, int]], address: str, per_minute: int) -> None:
    with writing(engine) as connection:
        overs = [count(connection, key, factor * per_minute) for key, factor in keys]
        if 1 in overs:  # the first beyond; those after it are the same news
            note(connection, "", "sign-in held up", address=address[:100])
    if any(overs):
        raise TooMany("too many attempts to sign in. Try again in a minute.")


def forgive(engine: sa.Engine, name: str, address: str, *, known: bool) -> None:
    """A sign-in that was right is no failure."""
    _forgive(engine, _keys(name, address, known=known))


def forgive_elsewhere(engine: sa.Engine, address: str) -> None:
    """Nor is one by way of another service."""
    _forgive(engine, [_by_address(address)])


def _forgive(engine: sa.Engine, keys: list[tuple[str, int]]) -> None:
    with writing(engine) as connection:
        mine = rates.c.key.in_([key for key, _ in keys]) & (rates.c.hits > 0)
        connection.execute(sa.update(rates).where(mine).values(hits=rates.c.hits - 1))


def _keys(name: str, address: str, *, known: bool) -> list[tuple[str, int]]:
    whose = digest(name)
    both = [(f"sign-in:{whose}:{address}"[:200], 1)]
    if known:
        return both
    return [*both, _by_address(address), (f"name:{whose}", BY_NAME)]


def _by_address(address: str) -> tuple[str, int]:
    return f"address:{address}"[:200], BY_ADDRESS


def is_known(connection: sa.Connection, name: str, device: str) -> bool:
    """Whether a browser signed in to this name before."""
    mine = sa.select(devices.c.token).where(
        devices.c.token == digest(device), devices.c.user == name
    )
    return bool(device) and connection.execute(mine).first() is not None


def remember(connection: sa.Connection, name: str) -> str:
    """What a browser is given to be known by."""
    device = secrets.token_urlsafe(32)
    connection.execute(
        sa.insert(devices).values(token=digest(device), user=name, created=time.time())
    )
    return device
