"""Releases of neighbours from outside: never more than is stated, and more if noise is halved."""

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from cases import flat, tree
from countwise.arrays import IntArray
from countwise.errors import PlanError, TableError
from countwise.noise import sampling
from countwise.noise.laws import IntegerLaw
from countwise.release import measure as boundary
from countwise.release.blackbox import ProvenLoss, choose_event, prove_loss
from countwise.release.neighbours import distance, given_pair, widest_pair
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy
from test_cli import run

CONFIDENCE = 1 - 1e-6
KINDS: list[dict[str, Any]] = [
    {"epsilon": 1, "mechanism": "geometric"},
    {"epsilon": 1, "mechanism": "laplace"},
    {"epsilon": 1, "mechanism": "joint"},
    {"rho": "0.5", "mechanism": "gaussian"},
]
PEOPLE: list[dict[str, Any]] = [
    {},
    {"neighbours": "replace-one"},
    {"exact": ["total"], "rows": 3},
]
CONFIGURATIONS = [kind | people for kind in KINDS for people in PEOPLE]
RUNS = {"joint": 8_000}


def tried(plan: Plan, runs: int | None = None, **more: Any) -> ProvenLoss:
    hierarchy = flat(2)
    budget = plan.budget(hierarchy)
    pair = widest_pair(hierarchy, plan, budget)
    runs = runs or RUNS.get(plan.mechanism, 16_000)
    return prove_loss(plan, budget, pair, runs=runs, confidence=CONFIDENCE, **more)


@pytest.fixture
def half_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise at half of the scale that the plan states, drawn by the same boundary."""

    def sample(law: IntegerLaw, size: int) -> IntArray:
        halved = replace(law, scale=law.scale / 2) if law.scale else law
        return sampling.sample(halved, size)

    magnitude = sampling.sample_magnitude
    monkeypatch.setitem(boundary.SAMPLERS, "exact", sample)
    monkeypatch.setattr(
        sampling, "sample_magnitude", lambda scale, size: magnitude(scale / 2, size)
    )


@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=str)
def test_no_more_than_stated_is_proved(changes: dict[str, Any]) -> None:
    found = tried(Plan(**changes))
    assert found.proved <= found.stated
    assert not found.broken
    assert found.proved > 0.2 * found.stated, "a search this weak would prove nothing"


@pytest.mark.usefixtures("half_the_noise")
@pytest.mark.parametrize("changes", CONFIGURATIONS, ids=str)
def test_half_the_noise_is_found_out(changes: dict[str, Any]) -> None:
    found = tried(Plan(**changes))
    assert found.broken
    assert found.proved > found.stated


def test_adjusted_counts_give_no_more_away() -> None:
    found = tried(Plan(epsilon=2, mechanism="geometric", adjust="mode"), runs=4000, adjusted=True)
    assert 0.2 < found.proved <= found.stated


def test_the_loss_of_an_event_is_a_bound() -> None:
    """Of true chances p and q it is above log(p/q), or the divergence, rarer than promised."""
    rng, p, q, n, confidence = np.random.default_rng(5), 0.4, 0.15, 2000, 0.9
    truth = {"epsilon": np.log(p / q),
             "rho": p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))}  # fmt: skip
    statistic = [(rng.random((400, n)) < chance).astype(float) for chance in (p, q)]
    for unit, true in truth.items():
        over = 0
        for first, second in zip(*statistic, strict=True):
            event = choose_event(first, second, unit=unit, confidence=confidence)
            assert event.hits(first) > event.hits(second)
            found = _bound(event.hits(first), event.hits(second), n, unit, confidence)
            over += found > true
        assert binom.sf(over - 1, 400, 1 - confidence) > 1e-6
        assert over < 400


def _bound(more: int, less: int, runs: int, unit: str, confidence: float) -> float:
    """By search: the smallest p and the largest q that the counts do not speak against."""
    grid, risk = np.linspace(0, 1, 20_001)[1:-1], (1 - confidence) / 2
    p = grid[binom.sf(more - 1, runs, grid) >= risk].min()
    q = grid[binom.cdf(less, runs, grid) >= risk].max()
    ratio = np.log(p / q)
    if unit == "epsilon":
        return float(ratio)
    return float(p * ratio + (1 - p) * np.log((1 - p) / (1 - q)))


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    from countwise.release.blackbox import _least_loss

    for unit in ("epsilon", "rho"):
        for hits in ((400, 150), (2000, 3), (7, 0), (1000, 999)):
            found = _least_loss(*np.array(hits), 2000, unit=unit, confidence=0.999)
            expected = max(_bound(*hits, 2000, unit, 0.999), 0.0)
            assert float(found) == pytest.approx(expected, abs=0.05)
    assert float(_least_loss(*np.array([0, 5]), 2000, unit="epsilon", confidence=0.9)) == 0


def test_low_statistics_speak_for_the_second_table() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(0, 1, 4000), rng.normal(0, 1, 4000)
    second[rng.random(4000) < 0.2] = -9
    event = choose_event(first, second, unit="epsilon", confidence=0.99)
    assert not event.above
    assert -9 <= event.threshold < -3


@pytest.mark.parametrize(
    ("changes", "moves", "loss"),
    [
        ({"epsilon": 1}, [[-1], [-1, 0], [-1, 0, 0, 0]], 1),
        ({"epsilon": 1, "rows": 3}, [[-3], [-3, 0], [-3, 0, 0, 0]], 1),
        ({"epsilon": 1, "neighbours": "replace-one"}, [[0], [-1, 1], [-1, 0, 0, 1]], 1),
        ({"epsilon": 1, "exact": ["total"]}, [[0], [-1, 1], [-1, 0, 0, 1]], 2),
        ({"epsilon": 1, "exact": ["l0=00000"]}, [[0], [0, 0], [-1, 1, 0, 0]], Fraction(2, 3)),
        ({"rho": 1, "mechanism": "gaussian", "rows": 2}, [[-2], [-2, 0], [-2, 0, 0, 0]], 1),
    ],
)
def test_the_tables_are_the_ones_that_noise_hides_least(
    changes: dict[str, Any], moves: list[list[int]], loss: float
) -> None:
    hierarchy, plan = tree(2, 2), Plan(**({"split": "even"} | changes))
    budget = plan.budget(hierarchy)
    pair = widest_pair(hierarchy, plan, budget)
    change = [(-each).tolist() for each in pair.changes()]
    if changes.get("exact") == ["l0=00000"]:
        assert distance(pair, budget) >= loss
    else:
        assert change == moves
        assert distance(pair, budget) == pytest.approx(float(loss), rel=1e-6)
    assert distance(pair, budget) <= pair.stated.amount * (1 + Fraction(1, 10**6))
    again = given_pair(hierarchy, plan, budget, pair.tables)
    assert again.stated == pair.stated


CELLS = np.array([5, 6, 7, 8])


@pytest.mark.parametrize(
    ("changes", "other", "words"),
    [
        ({}, [5, 6, 7, 8], "not neighbours"),
        ({}, [4, 6, 7, 7], "not neighbours"),
        ({}, [3, 6, 7, 8], "not neighbours"),
        ({}, [4, 7, 7, 8], "not neighbours"),
        ({"neighbours": "replace-one"}, [4, 6, 7, 8], "not neighbours"),
        ({"neighbours": "replace-one"}, [3, 8, 7, 8], "not neighbours"),
        ({"exact": ["total"]}, [4, 6, 7, 8], "differ in total"),
        ({"exact": ["l0=00000"]}, [4, 6, 8, 8], "differ in 00000"),
    ],
)
def test_tables_that_are_not_neighbours_are_refused(
    changes: dict[str, Any], other: list[int], words: str
) -> None:
    hierarchy, plan = tree(2, 2), Plan(epsilon=1, **changes)
    with pytest.raises(TableError, match=words):
        given_pair(hierarchy, plan, plan.budget(hierarchy), (CELLS, np.array(other)))


def test_a_plan_that_hides_nothing_has_nothing_to_try() -> None:
    plan = Plan(epsilon=1, neighbours="replace-one")
    hierarchy: Hierarchy = flat(1)
    with pytest.raises(PlanError, match="nothing to try"):
        widest_pair(hierarchy, plan, plan.budget(hierarchy))


def test_the_command_says_what_it_means(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("a,b\nx,p\nx,q\ny,p\ny,q\n")
    (tmp_path / "one.csv").write_text("a,b,n\nx,p,3\nx,q,4\ny,p,5\ny,q,6\n")
    (tmp_path / "two.csv").write_text("a,b,n\nx,p,3\nx,q,4\ny,p,5\ny,q,5\n")
    flags = ("audit", "release", "cells.csv", "--by", "a,b", "--epsilon", 1, "--runs", 2000)
    found = run(*flags, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    words = " ".join(found.stdout.split())
    assert "it does not prove that the loss is as small as stated" in words
    tables = ("--table", "one.csv", "--other", "two.csv", "--count", "n")
    own = run(*flags, *tables, "--json", cwd=tmp_path)
    data = json.loads(own.stdout)
    assert data["stated"] == "1"
    assert data["changed_counts"] == {"total": 1, "a": 1, "b": 1}
    assert 0 < data["proved"] <= 1
    assert not data["above_stated"]
    half = run(*flags, *tables[:2], cwd=tmp_path)
    assert half.returncode == 2
    assert "give both tables" in half.stderr
    twice = run(*flags, "--table", "one.csv", "--other", "one.csv", "--count", "n", cwd=tmp_path)
    assert twice.returncode == 2
    assert "not neighbours" in twice.stderr
