"""What a test needs of the machine: skipped loudly where it is missing, and never in CI."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def needs(present: bool, what: str) -> None:
    """Skip loudly where something is missing on this machine; in CI that is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have {what}")
    pytest.skip(f"NOT TESTED: {what} is missing on this machine")


def postgres_programs() -> Path:
    """The folder of PostgreSQL's server programs, on the path or where Debian puts them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    needs(bool(folders), "PostgreSQL (Debian's package postgresql)")
    return folders[-1]


@contextmanager
def postgres_server() -> Iterator[Path]:
    """A PostgreSQL server of a test's own, behind a socket in the folder; its user is steward."""
    programs = postgres_programs()
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    root = os.getuid() == 0
    if root:
        shutil.chown(folder, "postgres")

    def run(command: str) -> None:
        subprocess.run(["su", "postgres", "-c", command] if root else ["sh", "-c", command],
                       check=True, stdout=subprocess.DEVNULL, timeout=60)  # fmt: skip

    run(f"{programs}/initdb -D {folder}/data -A trust -U steward -N")
    settings = f"-k {folder} -c listen_addresses="
    run(f"{programs}/pg_ctl -D {folder}/data -w -l {folder}/log -o '{settings}' start")
    try:
        yield folder
    finally:
        run(f"{programs}/pg_ctl -D {folder}/data -m immediate stop")
        shutil.rmtree(folder)
