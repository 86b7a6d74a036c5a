"""A PostgreSQL server of the tests' own, and empty databases in it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from needs import postgres_programs


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


def new_database(folder: Path) -> str:
    """The URL of an empty database."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(
        f"host={folder} user=steward dbname=postgres", autocommit=True
    ) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return f"postgresql://steward@/{name}?host={folder}"
