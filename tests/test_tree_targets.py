"""The least loss at which the levels of a tree meet their targets, against dense algebra."""

import itertools
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.arrays import FloatArray
from countwise.cli import app
from countwise.errors import InputError, PlanError
from countwise.tables.hierarchy import Hierarchy

TRACTS = (1, 2, 5)
NORMAL = 1.959964
REPLACED = {"rows": 2, "neighbours": "replace-one"}


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    rows = [(f"c{i}", f"t{i}{j}") for i, tracts in enumerate(TRACTS) for j in range(tracts)]
    pl.DataFrame(rows, schema=["county", "tract"], orient="row").write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


@pytest.fixture
def tree(cells: Path) -> Hierarchy:
    return cw.read_domain(cells, by=["county", "tract"])


def dense_widths(noise: tuple[float, ...]) -> FloatArray:
    """Half-widths of total, counties and tracts after least squares, by inverting a matrix."""
    county = np.repeat(np.arange(len(TRACTS)), TRACTS)
    rows = [np.ones((1, len(county))), np.equal.outer(np.arange(len(TRACTS)), county) * 1.0]
    rows.append(np.eye(len(county)))
    information = sum(a.T @ a / v for a, v in zip(rows, noise, strict=True))
    covariance = np.linalg.inv(np.asarray(information))
    return np.array([NORMAL * np.mean(np.diag(a @ covariance @ a.T)) ** 0.5 for a in rows])


def least_by_grid(within: tuple[float, ...]) -> float:
    """The least ρ over a fine grid of shares: variances fall as 1/ρ."""
    best = np.inf
    for a, b in itertools.product(np.arange(0.005, 1, 0.01), repeat=2):
        if a + b < 0.999:
            shares = (a, b, 1 - a - b)
            found = dense_widths(tuple(0.5 / each for each in shares))
            best = min(best, float(((found / within) ** 2).max()))
    return best


@pytest.mark.parametrize("within", [(6.0, 5.0, 4.0), (2.0, 9.0, 9.0), (50.0, 4.0, 60.0)])
def test_the_loss_is_the_least(within: tuple[float, ...], tree: Hierarchy) -> None:
    targets = "total: ±{}; county: ±{}; tract: ±{}".format(*within)
    plan = cw.plan_for_targets(tree, tables=targets)
    assert isinstance(plan.rho, Fraction)
    assert float(plan.rho) == pytest.approx(least_by_grid(within), rel=0.01)
    noise = tuple(each.law.variance for each in plan.budget(tree).levels)
    assert (dense_widths(noise) <= np.array(within) * (1 + 1e-6)).all()


@pytest.mark.parametrize(
    "words",
    [
        {"unit": "epsilon"},
        {"unit": "epsilon", "rows": 3, "neighbours": "replace-one"},
        {"unit": "rho", "exact": ("county=c2",), "by": ("county", "tract"), **REPLACED},
    ],
)
def test_targets_are_met_and_hardly_more(words: dict[str, Any], tree: Hierarchy) -> None:
    """A loss one thousandth less misses one of them."""
    from countwise.release.aims import with_loss
    from countwise.risk.promised_margins import level_margins

    plan = cw.plan_for_targets(tree, tables="county: ±7; tract: ±12", **words)
    losses = plan.budget(tree).loss
    for loss, met in ((losses, True), (losses * Fraction(998, 1000), False)):
        fitted = level_margins(tree, with_loss(plan, loss).budget(tree))
        assert (fitted[1].fitted <= 7 and fitted[2].fitted <= 12) is met


def test_the_command_finds_it_and_its_plan_is_released(cells: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    words = ["--by", "county,tract", "--tables", "county: ±5", "--unit", "rho"]
    done = CliRunner().invoke(app, ["plan", str(cells), *words, "--out", str(plan), "--json"])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["levels"][1]["error95_fitted"] <= 5
    pl.read_csv(cells).with_columns(n=pl.lit(9)).write_csv(tmp_path / "counts.csv")
    words = [
        "--plan",
        str(plan),
        "--count",
        "n",
        "--cells-are-public",
        "--out",
        str(tmp_path / "r"),
    ]
    done = CliRunner().invoke(app, ["release", str(tmp_path / "counts.csv"), *words])
    assert done.exit_code == 0, done.exception


def test_a_plan_file_states_targets_too(cells: Path, tmp_path: Path) -> None:
    wishes = tmp_path / "wishes.toml"
    wishes.write_text('by = ["county", "tract"]\n[[tables]]\nby = "county"\nwithin = 5\n')
    asked = ["plan", str(cells), "--plan", str(wishes), "--unit", "epsilon", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.exception
    assert json.loads(done.stdout)["levels"][1]["error95_fitted"] <= 5


@pytest.mark.parametrize(
    ("tables", "words", "said"),
    [
        ("town: ±5", {}, "a level with a target must be one of total, county, tract"),
        ("county", {}, "no level has a target"),
        ("county: ±0.5", {}, "whole numbers"),
        ("county: ±5", {"mechanism": "joint", "unit": "epsilon"}, "mechanism"),
        ("total: ±5", {"neighbours": "replace-one"}, "published exactly"),
        ("county: ±5", {"rho": 1}, "finds its loss"),
    ],
)
def test_refusals(tables: str, words: dict[str, Any], said: str, tree: Hierarchy) -> None:
    with pytest.raises((PlanError, InputError), match=said):
        cw.plan_for_targets(tree, tables=tables, **words)
