"""The page of commands beside functions, made from both: `python docs/front_door.py` writes it.

A command's function has its name, words joined by `_`, and its options' names as parameters. What
differs stands below with its reason. A new command needs a function of that name that `countwise`
exports; then run this file.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

import countwise
from countwise.cli import app

PAGE = Path(__file__).parent / "reference" / "front-door.md"
NAMES = {
    "risk": ("risk_losses", "`countwise.risk` is a room"),
    "verify data": ("verify", "`verify DATA` is short for `verify data DATA`"),
}
"""Functions that are not called as their command is, and why."""
NOT_IN_PYTHON = {
    "json": "prints what the function returns",
    "help_all": "prints help",
}
"""Options that no function has, and why."""
OTHERWISE = {
    ("infer", "folder"): ("release", "a folder, or the release itself"),
    ("explore", "folder"): ("release", "a folder, or the release itself"),
    ("records", "folder"): ("release", "a folder, or the release itself"),
    ("convert", "folder"): ("release", "a folder, or the release itself"),
    ("infer", "from"): ("source", "`from` is a word of Python"),
    ("infer", "sum"): ("sums", "`sum` is a function of Python"),
    ("infer", "level"): ("probability", "levels are those of trees"),
    ("compare", "level"): ("probability", "levels are those of trees"),
}
"""Options that a function has by another word, and why."""
IN_PYTHON_ONLY = {
    "tell": "is called as work goes on: with a stage, and how many of its steps are done",
    "rng": "a generator of random numbers, which other calls can share, in place of a seed",
    "ready": "is called when the server listens; the command prints",
}
"""Parameters that no command has, and why."""
HEAD = """# Commands and functions

Whatever a command does, one function of `import countwise as cw` does, by the same words. Text that
a command takes (`--by region,county`, `--epsilon total=1,county=0.5`) the function takes too, or as
values of Python: a list, a mapping, a number. What the command prints the function returns.
"""


def leaves() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its words."""
    yield from _leaves("", get_command(app))


def _leaves(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if path and (below is None or getattr(command, "invoke_without_command", False)):
        yield path, command
    for name, each in (below or {}).items():
        yield from _leaves(f"{path} {name}".strip(), each)


def function_name(path: str) -> str:
    """The name of a command's function."""
    return NAMES[path][0] if path in NAMES else path.replace(" ", "_").replace("-", "_")


def options(command: Any) -> dict[str, str]:
    """What a command takes: as it is written, by its word."""
    found = {}
    for each in command.params:
        if each.param_type_name == "argument":
            found[(each.metavar or each.name).lower()] = (each.metavar or each.name).upper()
        else:
            written = max(each.opts, key=len)
            found[written.lstrip("-").replace("-", "_")] = written
    return found


def pairs(path: str, command: Any) -> list[tuple[str, str, str]]:
    """Each option or argument of a command, the parameter for it, and why they differ."""
    found = []
    for word, written in options(command).items():
        if word in NOT_IN_PYTHON:
            found.append((written, "", NOT_IN_PYTHON[word]))
        else:
            parameter, why = OTHERWISE.get((path, word), (word, ""))
            found.append((written, parameter, why))
    return found


def page() -> str:
    """The page: a table a command."""
    return "\n".join([HEAD, *(_section(path, command) for path, command in leaves())])


def _section(path: str, command: Any) -> str:
    name = function_name(path)
    why = f" ({NAMES[path][1]})" if path in NAMES else ""
    lines = [f"## countwise {path}", "", f"`cw.{name}`{why}", ""]
    lines += ["| command | function | |", "|---|---|---|"]
    known = pairs(path, command)
    lines += [f"| `{a}` | {f'`{b}`' if b else ''} | {c} |" for a, b, c in known]
    parameters = inspect.signature(getattr(countwise, name)).parameters
    for each in parameters:
        if each not in {b for _, b, _ in known}:
            lines.append(f"| | `{each}` | {IN_PYTHON_ONLY.get(each, '')} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
