"""Rooms: the page that lists them has them all, and says of them what the import contract holds."""

import re
import tomllib
from pathlib import Path
from typing import Any

import countwise as cw

SOURCE = Path(cw.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
MOST_FILES = 20
FULL = ("cli", "front_door")
"""Rooms that hold a file a command and may not grow beyond what is seen at a glance."""


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def rooms() -> set[str]:
    return {path.parent.name for path in SOURCE.glob("*/__init__.py")} - {"examples"}


def test_the_page_and_the_contract_have_every_room() -> None:
    table = PAGE.partition("## Rooms")[2].partition("\n## ")[0]
    listed = {name.removesuffix(".py") for name in re.findall(r"^\| `([\w.]+)` \|", table, re.M)}
    layers = " | ".join(contracts()[0]["layers"])
    layered = set(re.findall(r"countwise\.(\w+)", layers))
    assert rooms() <= listed, rooms() - listed
    assert rooms() <= layered, rooms() - layered
    assert listed <= layered


def test_rooms_are_listed_from_the_top_down() -> None:
    table = PAGE.partition("## Rooms")[2].partition("\n## ")[0]
    listed = [name.removesuffix(".py") for name in re.findall(r"^\| `([\w.]+)` \|", table, re.M)]
    depth = {
        name: i
        for i, layer in enumerate(contracts()[0]["layers"])
        for name in re.findall(r"countwise\.(\w+)", layer)
    }
    assert [depth[each] for each in listed] == sorted(depth[each] for each in listed)


def test_what_rooms_say_they_do_not_know_is_forbidden_to_them() -> None:
    """A docstring that says so is held by a contract on imports."""
    said = {
        "noise": ("no tables, no files, no databases", "polars sqlalchemy"),
        "ledger": ("nor see a count", "numpy polars"),
        "server": ("computes nothing itself", "numpy scipy"),
        "kernels": ("Knows nothing of tables", "polars sqlalchemy"),
        "adjust": ("Must not read files", "polars pyarrow"),
    }
    for room, (words, packages) in said.items():
        text = (SOURCE / room / "__init__.py").read_text(encoding="utf-8")
        assert words in " ".join(text.split()), room
        forbidden = {
            name
            for each in contracts()
            if each["type"] == "forbidden" and f"countwise.{room}" in each["source_modules"]
            for name in each["forbidden_modules"]
        }
        assert set(packages.split()) <= forbidden, room


def test_rooms_with_a_file_a_command_can_be_looked_over() -> None:
    for room in FULL:
        for folder in {path.parent for path in (SOURCE / room).rglob("*.py")}:
            files = sorted(path.name for path in folder.glob("*.py"))
            assert len(files) <= MOST_FILES, (folder.name, files)
