"""A copy of the database, made while the server runs."""

import os
import shutil
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from countwise.errors import ConfigError, InputError, LedgerError, StorageError
from countwise.ledger.chain import check
from countwise.ledger.ledger import Ledger
from countwise.ledger.storage import open_engine
from countwise.server.config import Config
from countwise.server.signing_keys import KNOWN


@dataclass(frozen=True, kw_only=True)
class Backup:
    """The file that was written, and how many entries its ledger has, if it was looked at."""

    file: str
    entries: int | None


def back_up(config: Config, folder: Path) -> Backup:
    """Copy the database into a folder: SQLite by its own backup, PostgreSQL by pg_dump.

    The keys that sign receipts and the signed heads are copied too; keep the folder as secret as
    the original.
    """
    for file in (config.signing_key, config.signing_key.with_name(KNOWN), config.heads_file):
        if file.is_file():
            shutil.copy2(file, folder / file.name)
    url = sa.make_url(config.url)
    if url.get_backend_name() != "sqlite":
        return Backup(file=_dump(url, folder), entries=None)
    if not url.database or not Path(url.database).is_file():
        raise InputError(f"{url.database}: there is no such database.")
    source, copy = sqlite3.connect(url.database), sqlite3.connect(folder / "countwise.db")
    try:
        source.backup(copy)
    except sqlite3.Error:
        raise StorageError("the database could not be copied. Try again later.") from None
    finally:
        source.close()
        copy.close()
    engine = open_engine(f"sqlite:///{folder / 'countwise.db'}")
    with Ledger(engine).reading() as book:
        found = check(book.all())
    engine.dispose()
    if found.flaws:
        raise LedgerError("the ledger is not whole; countwise ledger check says where.")
    return Backup(file="countwise.db", entries=found.length)


def _dump(url: sa.URL, folder: Path) -> str:
    program = shutil.which("pg_dump")
    if program is None:
        raise ConfigError("pg_dump is not installed. To fix, install PostgreSQL's client programs.")
    public, password = _without_password(url)
    done = subprocess.run(
        [program, "--format=custom", f"--file={folder / 'countwise.dump'}", f"--dbname={public}"],
        check=False,
        capture_output=True,
        env=os.environ | ({"PGPASSWORD": password} if password else {}),
    )
    if done.returncode != 0:
        raise StorageError("pg_dump could not copy the database.")
    return "countwise.dump"


def _without_password(url: sa.URL) -> tuple[str, str]:
    """The address for a command line, which everybody on a machine sees, and the password."""
    asked = url.query.get("password", "")
    password = str(url.password or (asked if isinstance(asked, str) else asked[-1]))
    public = sa.URL.create(
        "postgresql",
        username=url.username,
        host=url.host,
        port=url.port,
        database=url.database,
        query=url.difference_update_query(["password"]).query,
    )
    return public.render_as_string(hide_password=False), password
