"""Every command is a thin shell around one public function with the same words."""

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

import countwise as cw

HOW = (
    "To add a command: write a public function of its name in countwise/front_door, with its "
    "options as parameters, add it to `__all__` and `_ROOMS` of countwise/__init__.py, and run "
    "python docs/front_door.py. What must differ is listed there with its reason."
)
DOOR: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[1] / "docs" / "front_door.py"), run_name="front_door"
)
LEAVES = dict(DOOR["leaves"]())


@pytest.mark.parametrize("path", LEAVES)
def test_a_command_has_a_public_function(path: str) -> None:
    name = DOOR["function_name"](path)
    assert name in cw.__all__, f"countwise {path} has no function cw.{name}. {HOW}"
    function = getattr(cw, name)
    assert function.__doc__, f"cw.{name} does not say what it does."
    assert function.__module__.startswith("countwise.front_door."), HOW


@pytest.mark.parametrize("path", LEAVES)
def test_options_and_parameters_are_the_same_words(path: str) -> None:
    function = getattr(cw, DOOR["function_name"](path))
    parameters = set(inspect.signature(function).parameters)
    taken = {parameter for _, parameter, _ in DOOR["pairs"](path, LEAVES[path]) if parameter}
    assert taken <= parameters, f"countwise {path} takes {taken - parameters} more. {HOW}"
    more = parameters - taken - set(DOOR["IN_PYTHON_ONLY"])
    assert not more, f"cw.{function.__name__} takes {more}, which countwise {path} does not. {HOW}"


def test_every_exception_is_needed_and_has_a_reason() -> None:
    for path, (name, why) in DOOR["NAMES"].items():
        assert path in LEAVES
        assert name != path.replace(" ", "_")
        assert why
    for (path, word), (_, why) in DOOR["OTHERWISE"].items():
        assert word in DOOR["options"](LEAVES[path]), (path, word)
        assert why
    assert all(DOOR["NOT_IN_PYTHON"].values())
    assert all(DOOR["IN_PYTHON_ONLY"].values())


def test_the_page_is_the_one_that_is_made() -> None:
    assert DOOR["PAGE"].read_text(encoding="utf-8") == DOOR["page"](), HOW


def test_the_command_line_computes_nothing() -> None:
    """What a command does beside parsing and printing would be missing from Python."""
    computing = {"numpy", "polars", "scipy"}
    for path in (Path(cw.__file__).parent / "cli").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = {name for name in computing if f"import {name}" in text}
        assert not found - ALLOWED.get(path.name, set()), f"{path.name} imports {found}. {HOW}"


ALLOWED = {
    "infer_command.py": {"numpy"},  # a generator is made of --seed
    "exchange_commands.py": {"polars"},  # changes are counted table by table
    "claim_commands.py": {"numpy"},  # infinities have no place in JSON
}
"""Files that may import what computes, for what they print."""
