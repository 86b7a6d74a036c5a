"""Databases behind the ledger: SQLite in a file, or PostgreSQL, opened so that writers take turns.

SQLite runs in WAL mode with `synchronous=FULL`: a commit that returned survives a loss of power.
A writing transaction starts with BEGIN IMMEDIATE, so there is one writer at a time; threads of one
process queue before that, because SQLite lets waiting writers starve each other. On PostgreSQL
a writing transaction first takes one advisory lock for its length; under READ COMMITTED each
statement after it sees everything earlier writers committed. Both make writing serial.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from countwise.errors import InputError, StorageError

try:
    import sqlalchemy as sa
    from sqlalchemy import event, exc
except ImportError:
    raise InputError(
        "the ledger and the server need SQLAlchemy. To fix: pip install 'countwise[server]'"
    ) from None

LOCK = 0x636F756E74776973  # "countwis": the advisory lock of PostgreSQL that writers hold
WRITING, WAIT = "countwise_writing", "countwise_wait"
BUSY = "the database is in use by another writer and did not come free in time"
NO_DATABASE = ("file is not a database", "database disk image is malformed")
"""What SQLite says of such a file."""
WAIT_SECONDS = 15.0  # for a writer to finish: its transactions take milliseconds


def open_engine(url: str, *, wait: float = WAIT_SECONDS, pool: int = 10) -> sa.Engine:
    """An engine for sqlite:///file or postgresql://…; a writer waits its turn for `wait` s."""
    try:
        parsed = sa.make_url(url)
    except exc.ArgumentError:
        raise InputError(_not_a_url(url)) from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return _sqlite(parsed, wait)
    if kind not in ("postgresql", "postgres"):
        raise InputError(_not_a_url(parsed.render_as_string(hide_password=True)))
    try:
        return sa.create_engine(
            parsed.set(drivername="postgresql+psycopg"),
            pool_size=pool,
            max_overflow=pool,
            isolation_level="READ COMMITTED",  # whatever the database defaults to
            pool_pre_ping=True,
            hide_parameters=True,
            pool_timeout=wait,
            connect_args={
                "connect_timeout": max(2, round(wait)),
                "options": f"-c lock_timeout={round(wait * 1000)}",
            },
        )
    except ImportError:
        raise InputError(
            "PostgreSQL needs psycopg. To fix: pip install 'countwise[server]'"
        ) from None


def _not_a_url(url: str) -> str:
    return (
        f"{url!r} is not a database this can use. To fix, write sqlite:///file.db or "
        "postgresql://user@host/name."
    )


def _sqlite(url: sa.URL, wait: float) -> sa.Engine:
    if not url.database or url.database == ":memory:":
        raise InputError("a ledger must outlive the program: name a file, as in sqlite:///file.db.")
    Path(url.database).parent.mkdir(parents=True, exist_ok=True)
    engine = sa.create_engine(
        url.set(drivername="sqlite+pysqlite"),
        connect_args={"timeout": wait, "check_same_thread": False},
        pool_size=20,
        max_overflow=40,
        pool_timeout=wait,
        execution_options={WAIT: wait},
        hide_parameters=True,  # a fault must not show values
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get(WRITING, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


@contextmanager
def writing(engine: sa.Engine) -> Iterator[sa.Connection]:
    """One transaction that no other writer runs beside; all of it is stored, or none."""
    with (
        told(engine),
        _turn(engine),
        engine.connect().execution_options(**{WRITING: True}) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
        yield connection


@contextmanager
def counting(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A brief transaction of one statement that settles by itself who comes first.

    On PostgreSQL it needs no turn among writers, and what it counted may be lost with the power.
    """
    if engine.dialect.name != "postgresql":
        with writing(engine) as connection:
            yield connection
        return
    with told(engine), engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("SET LOCAL synchronous_commit TO OFF")
        yield connection


_turns: dict[str, threading.Lock] = {}
os.register_at_fork(after_in_child=_turns.clear)


@contextmanager
def _turn(engine: sa.Engine) -> Iterator[None]:
    """A place in the queue of this process's writers to a SQLite file."""
    wait = engine.get_execution_options().get(WAIT)
    if wait is None:
        yield
        return
    lock = _turns.setdefault(str(engine.url.database), threading.Lock())
    if not lock.acquire(timeout=wait):
        raise StorageError(_reason("locked"))
    try:
        yield
    finally:
        lock.release()


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A transaction that only reads."""
    with told(engine), engine.connect() as connection, connection.begin():
        yield connection


@contextmanager
def told(engine: sa.Engine) -> Iterator[None]:
    """Faults of the database in plain words; its own message could hold values."""
    try:
        yield
    except (exc.OperationalError, exc.InterfaceError, exc.TimeoutError) as problem:
        raise StorageError(_reason(str(getattr(problem, "orig", "")))) from None
    except exc.DatabaseError as problem:
        if str(problem.orig) not in NO_DATABASE:
            raise
        raise InputError(
            f"{engine.url.database}: no database of SQLite, or a damaged one; nothing in it was "
            "changed. To fix, check the name, or go back to a copy."
        ) from None


def _reason(message: str) -> str:
    for sign, words in (
        ("locked", BUSY),
        ("lock timeout", BUSY),
        ("full", "the disk of the database is full"),
        ("No space left", "the disk of the database is full"),
        ("readonly", "the database can not be written"),
        ("disk I/O", "the disk of the database can not be used"),
        ("unable to open", "the database can not be opened"),
    ):
        if sign in message:
            return f"{words}; the change was not made. Try again later."
    return "the database does not answer; the change was not made. Try again later."
