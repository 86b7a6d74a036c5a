"""Plans for targets: the least loss at which tables stay within what was asked for."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import CountwiseError, InputError
from countwise.margins.shares import NORMAL
from countwise.release.aims import with_loss
from countwise.release.table_accuracy import table_accuracy
from countwise.release.wanted import read_wanted, targets_of
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_cells import read_crossed_domain
from countwise.tables.workload import Workload

BY = ("state", "county")
ACROSS = "age: band > year, sex"
SHAPE = {"by": BY, "across": ACROSS}
FLAGS = ("--by", "state,county", "--across", ACROSS)
TABLES = "county*age: ±20; state*band*sex: ±10; county*age*sex"


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    """A list of cells, with counts that no plan reads."""
    places = [("N", "a"), ("N", "b"), ("S", "c"), ("S", "d"), ("S", "e")]
    ages = [("young", "0-9"), ("young", "10-19"), ("old", "20-64"), ("old", "65+")]
    rows = [(*place, *age, sex, 30) for place in places for age in ages for sex in "fm"]
    names = ["state", "county", "band", "year", "sex", "n"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def space(cells: Path) -> Workload:
    return read_crossed_domain(cells, cw.Plan(**SHAPE, rho=1).variables).workload


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if isinstance(result.exception, CountwiseError):
        raise result.exception
    assert result.exit_code == code, result.output
    return result.output


def test_a_target_is_read_in_each_spelling() -> None:
    found = read_wanted("county:age: ±20; tract ±50, a*b: +-5; c:+/-1/1; d + e")
    assert [(each.by, each.within) for each in found] == [
        ("county:age", 20), ("tract", 50), ("a*b", 5), ("c", 1), ("d + e", None)
    ]  # fmt: skip
    assert read_wanted([{"by": "a", "within": 2.5}])[0].within == Fraction(5, 2)


def test_a_table_of_two_wishes_has_the_smaller_target() -> None:
    """County is named with 30 and then with the crossing's 20, which holds of it as well."""
    plan = cw.Plan(**SHAPE, rho=1, tables="county: ±30; sex: ±5; county*age*sex: ±20")
    found = {cells: int(width) for cells, width in targets_of(plan).items()}
    assert sorted(found.values()) == [5] + [20] * 7


WAYS: list[dict[str, Any]] = [
    {"unit": "rho"},
    {"unit": "epsilon"},
    {"unit": "rho", "rows": 3, "neighbours": "replace-one"},
    {"unit": "epsilon", "rows": 2, "neighbours": "replace-one"},
    {"unit": "rho", "exact": ("state",)},
    {"unit": "rho", "zeros": ("band=young,sex=m",)},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_least_loss_meets_every_target_and_no_less_does(
    cells: Path, way: dict[str, Any]
) -> None:
    """By the noise that the plan's budget draws, not by what the search believed of it."""
    shape = space(cells)
    plan = cw.plan_for_targets(shape, **SHAPE, **way, tables=TABLES)
    within = {shape.name(each): float(width) for each, width in targets_of(plan).items()}
    loss = plan.rho if way["unit"] == "rho" else plan.epsilon
    assert isinstance(loss, Fraction)

    def widest(plan: cw.Plan) -> float:
        found = table_accuracy(plan.workload(shape), plan.budget(shape))
        return max(each.fitted / within[each.table] for each in found if each.table in within)

    assert 0.999 < widest(plan) <= 1
    assert widest(with_loss(plan, loss * Fraction(99, 100))) > 1
    for split in ("even", "auto"):  # auto has weights of the tables without a target too
        other = cw.Plan(
            **SHAPE, **{way["unit"]: loss}, **{k: way[k] for k in way if k != "unit"},
            tables=TABLES.replace(": ±20", "").replace(": ±10", ""), split=split,
        )  # fmt: skip
        assert widest(other) > 1


def test_one_table_alone_costs_what_a_person_can_say_on_paper(cells: Path) -> None:
    """Gaussian noise of variance (20 / 1.96)² on disjoint counts costs half its inverse."""
    plan = cw.plan_for_targets(space(cells), **SHAPE, tables="county:year:sex: ±20")
    assert isinstance(plan.rho, Fraction)
    assert float(plan.rho) == pytest.approx((NORMAL / 20) ** 2 / 2, rel=1e-3)
    assert isinstance(plan.split, dict)
    assert plan.split["county*year*sex"] > Fraction(99, 100)


def test_the_table_itself_may_be_given_and_its_counts_are_not_looked_at(cells: Path) -> None:
    table = cw.read_counts(cells, by=BY, across=ACROSS, count="n", cells_are_public=True)
    assert isinstance(table, Confidential)
    plan = cw.plan_for_targets(table, **SHAPE, tables=TABLES)
    assert plan == cw.plan_for_targets(space(cells), **SHAPE, tables=TABLES)
    release = cw.release(table, plan)
    assert release.budget.loss == plan.rho


def test_the_plan_that_is_written_is_released_as_it_is(cells: Path) -> None:
    folder = cells.parent
    said = json.loads(
        run("plan", cells, *FLAGS, "--tables", TABLES, "--unit", "rho", "--json",
            "--out", folder / "plan.toml")
    )  # fmt: skip
    plan = cw.read_plan(folder / "plan.toml")
    assert plan == cw.plan_for_targets(space(cells), **SHAPE, tables=TABLES)
    assert said["rho"] == said["least_rho"] == str(float(plan.rho))  # type: ignore[arg-type]
    run("release", cells, "--count", "n", "--cells-are-public", "--plan", folder / "plan.toml",
        "--out", folder / "r")  # fmt: skip
    made = cw.read_release(folder / "r")
    assert made.budget.loss == plan.rho
    shares = {each.level: each.loss / made.budget.loss for each in made.budget.levels}
    assert shares == plan.split
    again = run("plan", cells, "--plan", folder / "plan.toml")
    assert "The targets are met at this loss and split." in again


def test_targets_of_a_plan_file_without_a_loss(cells: Path) -> None:
    text = """
by = ["state", "county"]
[variables.age]
levels = ["band", "year"]
[variables.sex]
levels = ["sex"]
[[tables]]
by = "county*age"
within = 20
[[tables]]
by = "state*band*sex"
within = "10"
[[tables]]
by = "county*age*sex"
"""
    wishes = cells.parent / "wishes.toml"
    wishes.write_text(text, encoding="utf-8")
    by_file = run("plan", cells, "--plan", wishes, "--unit", "rho", "--json")
    assert by_file == run("plan", cells, *FLAGS, "--tables", TABLES, "--unit", "rho", "--json")
    wishes.write_text('rho = "1"\n' + text, encoding="utf-8")
    with pytest.raises(InputError, match="finds its loss, and rho = 1 states one"):
        run("plan", cells, "--plan", wishes, "--unit", "rho")


def test_the_terminal_says_what_it_means(cells: Path) -> None:
    """In words: what has no target, a small count as published, and what twice the loss buys."""
    asked = ("plan", cells, *FLAGS, "--unit", "rho", "--tables")
    said = " ".join(run(*asked, "county*year: ±7; county*year*sex").split())
    data = json.loads(run(*asked, "county*year: ±7; county*year*sex", "--json"))
    tables = {each["table"]: each for each in data["tables"]}
    assert "No target bounds sex, county*sex, year*sex, county*year*sex" in said
    assert max(each["error95_fitted"] for each in tables.values()) > 50
    said = " ".join(run(*asked, "county:year:sex: ±7").split())
    assert "a true 40 is published between 33 and 47, 95 times of 100" in said
    assert "would bring county*year*sex from ±7.0 to ±4.9" in said
    assert "No target bounds" not in said
    own = tables["county*year"]
    assert own["target"] == 7 >= own["error95_fitted"] > own["error95_fitted_doubled"]
    assert "target" not in tables["county*year*sex"]


REFUSED = {
    "no such level": (["--tables", "tract: ±5", "--unit", "rho"], "there is no level 'tract'"),
    "below rounding": (["--tables", "county*age*sex: ±0.5", "--unit", "rho"], "±1 or more"),
    "negative": (["--tables", "county*age*sex: ±-5", "--unit", "rho"], "must be positive"),
    "no number": (["--tables", "county*age*sex: ±", "--unit", "rho"], "the target of table"),
    "a loss too": (["--tables", TABLES, "--unit", "rho", "--rho", "1"], "rho = 1 states one"),
    "the other loss": (
        ["--tables", TABLES, "--unit", "rho", "--epsilon", "1"], "epsilon = 1 states one",
    ),
    "a loss alone": (["--tables", TABLES, "--rho", "1"], "--tables has targets"),
    "a split": (["--tables", TABLES, "--unit", "rho", "--split", "even"], "leave out split"),
    "no target": (["--tables", "county*age*sex", "--unit", "rho"], "no table has a target"),
    "no unit": (["--tables", TABLES, "--unit", "delta"], "unit must be one of epsilon, rho"),
    "other noise": (
        ["--tables", TABLES, "--unit", "epsilon", "--mechanism", "laplace"], "mechanism, of a plan",
    ),
    "exact": (
        ["--tables", "county: ±5; county*age*sex", "--unit", "rho", "--exact", "county"],
        "published exactly, and costs nothing",
    ),
    "too wide": (["--tables", "county*age*sex: ±1000000", "--unit", "rho"], "state smaller ones"),
    "listed after": (
        ["--tables", "county*age*sex: ±20; county: ±5", "--unit", "rho"], "list it first",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "words"), REFUSED.values(), ids=REFUSED)
def test_what_can_not_be_met_is_refused(cells: Path, flags: list[str], words: str) -> None:
    out = cells.parent / "plan.toml"
    with pytest.raises(InputError, match=words):
        run("plan", cells, *FLAGS, *flags, "--out", out)
    assert not out.exists()


def test_weights_that_are_zero_are_refused(cells: Path) -> None:
    with pytest.raises(InputError, match="weight of table 'county:year:sex' must be positive"):
        cw.plan_for_targets(
            space(cells), **SHAPE, tables=[{"by": "county:year:sex", "weight": 0, "within": 5}]
        )
