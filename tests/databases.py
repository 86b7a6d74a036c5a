"""A PostgreSQL server of the tests' own, and empty databases in it."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psycopg
import sqlalchemy as sa

from needs import needs, postgres_programs


@contextmanager
def postgres_server() -> Iterator[Path]:
    """A server behind a socket in a folder of its own; as root it runs as the user postgres."""
    programs = postgres_programs()
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    root = os.getuid() == 0
    if root:
        shutil.chown(folder, "postgres")

    def run(command: str) -> None:
        subprocess.run(["su", "postgres", "-c", command] if root else ["sh", "-c", command],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)  # fmt: skip

    run(f"{programs}/initdb -D {folder}/data -A trust -U steward -N")
    folder.chmod(0o755)
    settings = f"-k {folder} -c listen_addresses= -c max_connections=300"
    run(f"{programs}/pg_ctl -D {folder}/data -w -l {folder}/log -o '{settings}' start")
    try:
        yield folder
    finally:
        run(f"{programs}/pg_ctl -D {folder}/data -m immediate stop")
        shutil.rmtree(folder)


def new_database(folder: Path, how: str = "") -> str:
    """The URL of an empty database."""
    name = f"test_{uuid4().hex}"
    command(folder, f"CREATE DATABASE {name} {how}")
    return f"postgresql://steward@/{name}?host={folder}"


def command(folder: Path, text: str) -> None:
    """Run a command of the server that stands alone."""
    about = f"host={folder} user=steward dbname=postgres"
    with psycopg.connect(about, autocommit=True) as connection:
        connection.execute(text)


class SmallDisk(NamedTuple):
    """A database, and what leaves its disk next to no room from now on."""

    url: str
    squeeze: Callable[[sa.Engine], None]


def small_sqlite(folder: Path) -> SmallDisk:
    """A file that may not have more pages than it has."""

    def squeeze(engine: sa.Engine) -> None:
        engine.dispose()

        @sa.event.listens_for(engine, "connect")
        def small(connection, _):
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 2}")

    return SmallDisk(f"sqlite:///{folder}/small.db", squeeze)


@contextmanager
def small_postgres(server: Path) -> Iterator[SmallDisk]:
    """A table space on a file system of 24 MB, which is then filled but for 200 kB."""
    needs(os.getuid() == 0, "the right to mount a small file system (root)")
    disk = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk], check=True)
    space = f"space_{uuid4().hex}"

    def squeeze(_: sa.Engine) -> None:
        room = shutil.disk_usage(disk).free - 200_000
        (disk / "filler").write_bytes(b"0" * room)

    try:
        (disk / "data").mkdir()
        shutil.chown(disk / "data", "postgres")
        disk.chmod(0o755)
        command(server, f"CREATE TABLESPACE {space} LOCATION '{disk}/data'")
        url = new_database(server, f"TABLESPACE {space}")
        yield SmallDisk(url, squeeze)
        name = url.split("/")[3].split("?")[0]
        command(server, f"DROP DATABASE {name} WITH (FORCE)")
        command(server, f"DROP TABLESPACE {space}")
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        disk.rmdir()
