"""What a test needs of the machine: skipped loudly where it is missing, and never in CI."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def needs(present: bool, what: str) -> None:
    """Skip loudly where something is missing on this machine; in CI that is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"CI must have {what}")
    pytest.skip(f"NOT TESTED: {what} is missing on this machine")


def shut_in() -> None:
    """Landlock and network namespaces, by which the server's processes shut themselves in."""
    ask = "from countwise.server import sandbox as s; "
    ask += "raise SystemExit(not (s.landlock_version() and s.no_network()))"
    able = subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0
    needs(able, "Landlock (Linux 5.13 or later) and the right to make a network namespace")


def postgres_programs() -> Path:
    """The folder of PostgreSQL's server programs, on the path or where Debian puts them."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    needs(bool(folders), "PostgreSQL (Debian's package postgresql)")
    return folders[-1]


def chromium() -> str:
    """The program of the system's Chromium."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    needs(found is not None, "Chromium (Debian's package chromium)")
    return str(found)
