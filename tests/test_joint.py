"""Joint noise: its law, its privacy by enumeration, and what it gains."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare

import countwise as cw
from cases import HARD_CASES, Case, flat, tree
from countwise.errors import PlanError
from countwise.noise import joint
from countwise.noise.joint import joint_noise, spans
from countwise.noise.laws import Exact, Geometric, IntegerLaw
from countwise.noise.sampling import sample, sample_magnitude
from countwise.release.document import check_counts
from countwise.sumproduct.joint_noise_law import joint_law
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy
from test_cli import run

ONE = Geometric(scale=Fraction(1))


def draws(hierarchy: Hierarchy, laws: tuple[IntegerLaw, ...], size: int) -> list[tuple]:
    return [
        hierarchy.sums(
            joint_noise(hierarchy.offsets, laws, sample=sample, magnitude=sample_magnitude)
        )
        for _ in range(size)
    ]


def log_weight(hierarchy: Hierarchy, laws: tuple[IntegerLaw, ...], cells: np.ndarray) -> float:
    """The definition: minus Σ |z|/scale over all nodes; impossible if an exact one moves."""
    total = 0.0
    for law, values in zip(laws, hierarchy.sums(cells), strict=True):
        if law.scale:
            total -= float(np.abs(values).sum() / law.scale)
        elif values.any():
            return -np.inf
    return total


TREES = [
    (flat(2), (ONE, ONE)),
    (flat(3), (Geometric(scale=Fraction(1, 2)), Geometric(scale=Fraction(3, 2)))),
    (flat(3), (Exact(), ONE)),
    (tree(2, 2), (ONE, Geometric(scale=Fraction(1, 2)), ONE)),
]


@pytest.mark.parametrize(("hierarchy", "laws"), TREES)
def test_draws_have_the_joint_law(hierarchy: Hierarchy, laws: tuple[IntegerLaw, ...]) -> None:
    """Chi-square over every small outcome against the definition, normalised by enumeration."""
    reach = 14 if hierarchy.cells < 4 else 7
    grid = np.array(list(product(range(-reach, reach + 1), repeat=hierarchy.cells)))
    weights = np.exp([log_weight(hierarchy, laws, cells) for cells in grid])
    weights /= weights.sum()
    size = 6000
    found = {tuple(cells): 0 for cells in grid}
    for noise in draws(hierarchy, laws, size):
        found[tuple(noise[-1].tolist())] = found.get(tuple(noise[-1].tolist()), 0) + 1
    likely = weights * size > 8
    observed = np.array([found[tuple(cells)] for cells in grid[likely]])
    rest = size - observed.sum()
    expected = np.append(weights[likely], 1 - weights[likely].sum()) * size
    assert chisquare(np.append(observed, rest), expected).pvalue > 1e-9


@pytest.mark.parametrize(
    ("neighbours", "move"), [("add-remove", [1, 0, 0, 0]), ("replace-one", [1, 0, -1, 0])]
)
def test_probability_ratios_of_neighbours_stay_within_epsilon(
    neighbours: str, move: list[int]
) -> None:
    """Every small outcome of a tree: the log-ratio reaches ε and never passes it."""
    hierarchy = tree(2, 2)
    budget = cw.Plan(epsilon="0.9", mechanism="joint", neighbours=neighbours).budget(hierarchy)
    assert budget.loss == Fraction(9, 10)
    worst = 0.0
    for cells in product(range(-3, 4), repeat=4):
        here = log_weight(hierarchy, budget.laws, np.array(cells))
        there = log_weight(hierarchy, budget.laws, np.array(cells) - np.array(move))
        if np.isfinite(here):
            worst = max(worst, abs(here - there))
    assert worst == pytest.approx(0.9, abs=1e-9)


def joint_variances(size: int) -> tuple[float, float]:
    """Exact variances of the total and of a component at ε = 1 on both, by convolution."""
    reach = 60
    k = np.arange(-reach, reach + 1)
    one = ONE.pmf(k)
    others = np.array([1.0])
    for _ in range(size - 1):
        others = np.convolve(others, one)
    width = len(others) // 2
    total = np.convolve(others, one)
    t = np.arange(len(total)) - len(total) // 2
    law_of_total = total * np.exp(-np.abs(t))
    cells = [one[i] * (others * np.exp(-np.abs(np.arange(-width, width + 1) + z))).sum()
             for i, z in enumerate(k)]  # fmt: skip
    law_of_cell = np.array(cells) / np.sum(cells)
    return float((t**2 * law_of_total).sum() / law_of_total.sum()), float(
        (k**2 * law_of_cell).sum()
    )


@pytest.mark.parametrize(
    ("size", "joint", "best_linear"),
    [(2, 0.6612, 1.2276), (5, 1.1398, 1.5345), (50, 1.7437, 1.8052), (200, 1.8161, 1.8322)],
)
def test_less_noise_than_the_best_linear_combination(
    size: int, joint: float, best_linear: float
) -> None:
    """At ε = 1 on the total and on the components, which then play the same part in the law."""
    variance = ONE.variance
    combined = 1 / (1 / variance + 1 / (size * variance))
    assert combined == pytest.approx(best_linear, abs=1e-4)
    exact_total, exact_component = joint_variances(size)
    assert exact_total == pytest.approx(joint, abs=1e-4)
    assert exact_component == pytest.approx(exact_total, rel=1e-9)
    assert exact_total < combined
    noise = draws(flat(size), (ONE, ONE), 8000 if size < 100 else 2000)
    totals = np.array([each[0][0] for each in noise])
    assert totals.var() == pytest.approx(exact_total, rel=0.25)
    assert np.concatenate([each[1] for each in noise]).var() == pytest.approx(
        exact_component, rel=0.25
    )


def test_the_law_of_each_level_is_known_before_anything_is_drawn() -> None:
    """Against enumeration on a small tree, and against the convolution of a flat one."""
    hierarchy, laws = TREES[3]
    reach = 9
    grid = np.array(list(product(range(-reach, reach + 1), repeat=4)))
    sums = [grid.sum(axis=1, keepdims=True), grid.reshape(-1, 2, 2).sum(axis=2), grid]
    weights = np.exp(-sum(np.abs(s).sum(axis=1) / float(law.scale)
                          for s, law in zip(sums, laws, strict=True)))  # fmt: skip
    weights /= weights.sum()
    found = joint_law(hierarchy, laws)
    assert found is not None
    for level, values in zip(found, sums, strict=True):
        assert level.variance == pytest.approx(float(weights @ (values**2).mean(axis=1)), rel=1e-3)
    for size in (2, 50):
        total, component = joint_variances(size)
        levels = joint_law(flat(size), (ONE, ONE))
        assert levels is not None
        assert [each.variance for each in levels] == pytest.approx([total, component], rel=1e-6)
    assert levels[1].margin(0.95) <= ONE.margin(0.95)
    assert joint_law(flat(2), (ONE, ONE))[0].margin(0.95) < ONE.margin(0.95)


def test_the_plan_shows_that_joint_noise_is_less(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("part\na\nb\n")
    margins = {}
    for mechanism in ("geometric", "joint"):
        done = run("plan", "cells.csv", "--by", "part", "--epsilon", "0.2", "--mechanism",
                   mechanism, "--split", "even", "--json", cwd=tmp_path)  # fmt: skip
        levels = json.loads(done.stdout)["levels"]
        margins[mechanism] = [each["error95_before"] for each in levels]
    assert all(j < 0.8 * g for j, g in zip(margins["joint"], margins["geometric"], strict=True))


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
def test_measurements_add_up_by_themselves(case: Case, neighbours: str) -> None:
    plan = case.make_plan(mechanism="joint", neighbours=neighbours)
    release = cw.release(Confidential(case.hierarchy, case.cells), plan)
    cells = release.measurements.noisy[-1]
    for level, sums in enumerate(case.hierarchy.sums(cells)):
        np.testing.assert_array_equal(release.measurements.noisy[level], sums)
    check_counts(case.hierarchy, release.counts)
    if neighbours == "replace-one":
        assert release.measurements.noisy[0][0] == case.cells.sum()


def test_trees_that_would_take_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "MOST_DRAWS", 10_000)
    with pytest.raises(PlanError, match="use mechanism geometric"):
        draws(flat(5000), (ONE, ONE), 1)
    with pytest.raises(PlanError, match="noise=exact"):
        cw.Plan(epsilon=1, mechanism="joint", noise="opendp")


def test_spans_list_their_ranges() -> None:
    assert spans(np.array([5, 0, 9]), np.array([2, 3, 1])).tolist() == [5, 6, 0, 1, 2, 9]
