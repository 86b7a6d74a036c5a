"""The page on tables that cross is made from releases, and its figures are what they say."""

import sys
from copy import deepcopy
from importlib.metadata import version
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("osqp")
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import countwise as cw
from accuracy_tables import crossed
from countwise.margins.leastsquares import fit
from countwise.margins.ranges import fitted
from countwise.margins.shares import NORMAL
from countwise.release.measure import measure
from countwise.release.table_accuracy import table_accuracy
from countwise.tables.workload import Workload
from crossed import TABLES, Crossed, figures, pooled
from crossed_page import Figure, as_page, covered, influences, losses, ratio, root
from crossed_tables import every_margin, flat, gaussian, measured, tree
from provenance import in_words
from residual_planner import SIZES, closed_form, whole_margins
from top_down import top_down

BY = ("place", "age", "sex")


def small() -> Crossed:
    """24 cells of three variables."""
    cells = np.random.default_rng(5).negative_binomial(0.5, 0.03, (4, 3, 2))
    return Crossed(
        name="small",
        make=lambda: crossed(cells, by=BY, loss={}),
        variables=tuple((name,) for name in BY),
        tables="place*age*sex",
        losses=(("rho", "1/2"), ("epsilon", "1")),
    )


def test_a_tiny_run_makes_the_whole_page() -> None:
    table = small()
    found = [figures(table, unit, loss, repetitions=3) for unit, loss in table.losses]
    made = {"asked": ["--repetitions 3"], "provenance": [in_words()]}
    page = as_page([each | made for each in found])
    assert "## Where the default loses" in page
    assert "Of 16 margins" in page
    assert "`--repetitions 3`" in page
    assert f"countwise {version('countwise')} at " in page
    assert page.count("### By kind of margin, ") == page.count("### Every margin, ") == 2
    for margin in ("total", "place", "age × sex", "place × age × sex"):
        assert page.count(f"\n| {margin} | ") >= 3
    for row in (line for line in page.splitlines() if line.startswith("| cells | ")):
        assert row.count("±") == 7
    both = pooled(deepcopy([each | made for each in (*found, *found)]))
    assert [each["releases"] for each in both] == [6, 6]
    assert root(np.array(both[0]["squared"]["default"])).value == pytest.approx(
        root(np.array(found[0]["squared"]["default"])).value
    )
    for each in found:
        assert each["kinds"].count("2-way") == 3
        assert sum(size[0] for size in each["by_size"][0]) == sum(each["counts"])
        assert all(np.array(squares).shape == (3, 8) for squares in each["squared"].values())


def test_errors_of_least_squares_are_those_its_variance_says() -> None:
    table = small()
    plan = table.plan("rho", "1/2")
    release = cw.release(table.truth, plan)
    says = fitted(release.workload, release.measurements).variance
    expected = [float(np.mean(says(each))) for each in release.workload.margins]
    found = figures(table, "rho", "1/2", repetitions=60)
    signed = np.array(found["squared"]["signed least squares"]).mean(axis=0)
    assert (signed / expected).mean() == pytest.approx(1.0, rel=0.35)
    held = np.array(found["by_margin"]).sum(axis=(0, 1))
    assert 0.9 < held[1] / held[0] <= 1.0


def test_spreads_are_those_of_a_bootstrap() -> None:
    rng = np.random.default_rng(6)
    common = rng.gamma(2.0, 1.0, (300, 1))
    above, below = (common * rng.gamma(3.0, 1.0, (300, 4)) * np.arange(1, 5) for _ in range(2))
    again = rng.integers(0, 300, (2000, 300))
    logs = np.array([influences(above[each])[0] for each in again])
    others = np.array([influences(below[each])[0] for each in again])
    assert root(above).value == pytest.approx(np.exp(np.log(above.mean(axis=0)).mean() / 2))
    assert root(above).error == pytest.approx(np.exp(logs).std(), rel=0.12)
    assert ratio(above, below).error == pytest.approx(np.exp(logs - others).std(), rel=0.12)


def test_marks_say_what_is_lost_and_what_may_be_chance() -> None:
    assert Figure(1.1, 0.01, 10).mark == "**✗**"
    assert Figure(1.1, 0.05, 10).mark == "?"
    assert not Figure(1.02, 0.001, 10).mark
    assert Figure(1.1, float("nan"), 1).mark == "?"
    assert not ratio(np.zeros((3, 1)), np.ones((3, 1))).mark
    assert "**✗** (2)" in covered(
        np.array([[1000.0, 800, 2000], [1000, 810, 2000], [1000, 820, 2000]])
    )
    assert "✗" not in covered(np.array([[100.0, 95, 200], [100, 94, 200]]))
    assert "90.0% ± 5.7 (3)" in covered(np.array([[10.0, 9, 30]] * 2))


def test_margins_where_a_release_is_nearer_are_listed() -> None:
    found = {"table": "some table", "unit": "rho", "loss": "1", "margins": ["total", "a*b"]}
    found |= {"kinds": ["total", "cells"], "counts": [1, 9], "squared": {}}
    for name, errors in (
        ("default", [4.0, 1.0]),
        ("signed least squares", [4.0, 0.5]),
        ("tree, auto split", [9.0, 0.25]),
        ("tree, even split", [16.0, 4.0]),
    ):
        found["squared"][name] = [errors] * 10
    told = "\n".join(losses([found]))
    assert "worse than signed least squares at 1 beyond the error and at 0 that" in told
    assert "a × b 1.414 ± 0.000 **✗**" in told
    assert "ρ = 1, tree, auto split: 1 of 2: a × b (2.00)." in told
    assert "even split" not in told
    for row in found["squared"]["default"]:
        row[:] = [1.0, 0.1]
    told = "\n".join(losses([found]))
    assert "none is nearer at any margin" in told
    assert "✗" not in told


def test_tables_name_every_margin_of_at_most_two_variables() -> None:
    income, tracts, pairs = TABLES
    assert income.tables.count(",") == 10
    assert len(income.losses) == 5
    assert pairs.tables == income.tables.rpartition(", ")[0]
    assert tracts.across == {"race": ("race",), "hispanic": ("hispanic",)}


@pytest.mark.parametrize(("place", "loss"), [(1, ("rho", "1/2")), (0, ("epsilon", "1"))])
def test_plans_predict_the_errors_of_real_tables(place: int, loss: tuple[str, str]) -> None:
    """Of every table of 1,000 counts or more within 3%: 1.96 roots of mean squared errors."""
    table = TABLES[place]
    plan, space = table.plan(*loss), table.truth.space
    workload, budget = plan.workload(space), plan.budget(space)
    predicted = {each.table: each for each in table_accuracy(workload, budget)}
    large = [each for each in workload.margins if workload.size(each) >= 1000]
    true = workload.sums(table.truth.reveal().reshape(workload.shape), workload.finest)
    squares: dict[str, list[float]] = {}
    for _ in range(8):
        estimates = fit(workload, measure(table.truth, budget))
        for each in large:
            off = estimates.margin(each) - workload.sums(true, each)
            squares.setdefault(workload.name(each), []).append(float((off**2).mean()))
    assert squares
    for name, found in squares.items():
        width = NORMAL * float(np.mean(found)) ** 0.5
        assert width == pytest.approx(predicted[name].fitted, rel=0.03), name


def test_level_by_level_is_whole_and_near_where_noise_is_small() -> None:
    """Siblings add up to their parent; next to no noise gives the true cells back."""
    variables = (tree("place", (3, 4)), flat("age", 3), flat("sex", 2))
    workload = Workload(variables=variables, margins=every_margin(variables))
    rng = np.random.default_rng(9)
    cells = rng.poisson(4.0, workload.shape)
    exactly = measured(workload, cells, dict.fromkeys(workload.margins, gaussian(0.01)), rng)
    np.testing.assert_array_equal(top_down(workload, exactly), cells)
    noisy = measured(workload, cells, dict.fromkeys(workload.margins, gaussian(9.0)), rng)
    found = top_down(workload, noisy)
    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert 0 < np.abs(found - cells).mean() < 9


def test_noise_of_parts_is_never_more_than_that_of_whole_margins() -> None:
    """The closed form on one variable by hand, and the published figures."""
    n = 7
    by_hand = sqrt((sqrt(1 / n) + sqrt((n - 1) * (1 - 1 / n))) ** 2 / n)
    assert closed_form([n], (1,)) == pytest.approx(by_hand)
    for ways, said in (((1,), 1.744), ((2,), 2.035), ((3,), 2.048), ((0, 1, 2, 3), 2.276)):
        assert closed_form(SIZES, ways) == pytest.approx(said, abs=5e-4)
    assert closed_form((5, 3, 2), (1, 2)) <= whole_margins((5, 3, 2), (1, 2))
