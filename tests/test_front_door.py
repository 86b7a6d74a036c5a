"""Every command is a thin shell around one public function with the same words."""

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

import countwise as cw
from countwise.examples import BY, COUNT, clinics

TO_ADD = (
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
    assert name in cw.__all__, f"countwise {path} has no function cw.{name}. {TO_ADD}"
    function = getattr(cw, name)
    assert function.__doc__, f"cw.{name} does not say what it does."
    assert function.__module__.startswith("countwise.front_door."), TO_ADD


@pytest.mark.parametrize("path", LEAVES)
def test_options_and_parameters_are_the_same_words(path: str) -> None:
    function = getattr(cw, DOOR["function_name"](path))
    parameters = set(inspect.signature(function).parameters)
    taken = {parameter for _, parameter, _ in DOOR["pairs"](path, LEAVES[path]) if parameter}
    assert taken <= parameters, f"countwise {path} takes {taken - parameters} more. {TO_ADD}"
    more = parameters - taken - set(DOOR["IN_PYTHON_ONLY"])
    assert not more, (
        f"cw.{function.__name__} takes {more}, which countwise {path} does not. {TO_ADD}"
    )


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
    assert DOOR["PAGE"].read_text(encoding="utf-8") == DOOR["page"](), TO_ADD


def test_the_command_line_computes_nothing() -> None:
    """What a command does beside parsing and printing would be missing from Python."""
    computing = {"numpy", "polars", "scipy"}
    for path in (Path(cw.__file__).parent / "cli").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = {name for name in computing if f"import {name}" in text}
        assert not found - ALLOWED.get(path.name, set()), f"{path.name} imports {found}. {TO_ADD}"


CELLS = "region,county,n\nN,a,30\nN,b,5\nS,c,7\n"
HOW = {"by": "region,county", "count": "n", "cells_are_public": True}


def test_a_release_from_python_is_charged_before_a_row_is_read(tmp_path: Path) -> None:
    table, ledger = tmp_path / "cells.csv", f"sqlite:///{tmp_path / 'l.db'}"
    table.write_text(CELLS)
    cw.ledger_grant(ledger, dataset="people", epsilon=2)
    made = cw.release(table, **HOW, epsilon=1, ledger=ledger, dataset="people")
    assert isinstance(made, cw.Release)
    assert made.charge is not None
    assert made.charge.words == "ε = 1 of data set 'people'"
    table.write_text(CELLS.replace("7", "-7"))
    with pytest.raises(cw.InputError, match="negative"):
        cw.release(table, **HOW, epsilon=1, ledger=ledger, dataset="people")
    (account,) = cw.ledger_show(ledger).accounts
    assert account.balance.left == 0
    with pytest.raises(cw.BudgetError):
        cw.release(table, **HOW, epsilon=1, ledger=ledger, dataset="people")


def test_words_are_text_or_values_and_lie_over_a_plan(tmp_path: Path) -> None:
    table = tmp_path / "cells.csv"
    table.write_text(CELLS)
    losses = {"total": "1/4", "region": "1/4", "county": "1/2"}
    written = ",".join(f"{level}={loss}" for level, loss in losses.items())
    plan = cw.Plan(epsilon=9, by=("region", "county"), ties="last")
    for epsilon in (losses, written):
        outlook = cw.plan(table, plan, epsilon=epsilon)
        assert outlook.asked.ties == "last"
        assert outlook.budget.loss == 1
        assert outlook.to_dict()["levels"][0]["epsilon"] == "0.25"


def test_a_word_that_a_function_does_not_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="epsilom"):
        cw.plan(tmp_path / "cells.csv", epsilom=1)
    table = cw.read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    with pytest.raises(cw.InputError, match="read already"):
        cw.release(table, epsilon=1, cells_are_public=True)


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis on DuckDB 2
def test_records_are_tabulated_in_memory_and_released(tmp_path: Path) -> None:
    records, domain = tmp_path / "people.csv", tmp_path / "domain.toml"
    records.write_text("id,region\n1,N\n2,N\n3,S\n")
    domain.write_text('[columns.region]\nlevels = ["N", "S", "W"]\n')
    table = cw.tabulate(records, by="region", domain=domain, person="id", rows=1)
    made = cw.release(table, epsilon=1000, by="region", mechanism="geometric")
    assert made.table()["count"].to_list() == [3, 2, 1, 0]


ALLOWED = {
    "infer_command.py": {"numpy"},  # a generator is made of --seed
    "exchange_commands.py": {"polars"},  # changes are counted table by table
    "claim_commands.py": {"numpy"},  # infinities have no place in JSON
}
"""Files that may import what computes, for what they print."""
