"""Documentation that is run: code blocks of the README, commands that are documented, links."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from countwise.cli import app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CELLS = "region,county,race,n\n" + "".join(
    f"{region},{county},{race},{len(region + county + race) % 7}\n"
    for region in ("North", "South")
    for county in ("A", "B")
    for race in ("x", "yy", "zzz")
)


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), flags=re.DOTALL)


def commands(page: Path) -> list[str]:
    """Shell lines that call countwise itself, comments and continued lines put right."""
    text = "\n".join(blocks(page, "sh")).replace("\\\n", " ")
    lines = [line.split("#")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line.startswith("countwise ")]


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        timeout=280,
    )  # fmt: skip


def test_the_readmes_code_runs(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text(CELLS)
    for command in commands(ROOT / "README.md"):
        done = run(["-m", *shlex.split(command)], tmp_path)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    for code in blocks(ROOT / "README.md", "python"):
        done = run(["-W", "error", "-c", code.replace('"release"', '"again"')], tmp_path)
        assert done.returncode == 0, f"{code}\n{done.stderr}"


def test_every_command_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for name in get_command(app).commands:
        assert f"countwise {name}" in text, f"countwise {name} is in no page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_room_says_what_it_owns() -> None:
    for init in (ROOT / "src" / "countwise").glob("*/__init__.py"):
        assert init.read_text().startswith('"""'), init
