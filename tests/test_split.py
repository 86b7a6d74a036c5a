"""How a loss is divided and which noise is drawn where a plan leaves that open."""

from fractions import Fraction
from itertools import product

import numpy as np
import polars as pl
import pytest

import countwise as cw
from cases import flat, tree
from countwise.adjust import tree_least_squares
from countwise.noise.count_noise import geometric_variance
from countwise.noise.joint import _Trials, expected_draws
from countwise.noise.laws import Geometric
from countwise.noise.sampling import sample
from countwise.release.plan import Plan
from countwise.release.split import LEAST_SHARE, best_shares, fitted_variances
from countwise.risk.promised_margins import level_margins
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy, Shape, build
from countwise.tables.measurements import Measurements


def dense_variances(hierarchy: Hierarchy, noise: list[float]) -> list[float]:
    """Of the estimates (A'WA)⁻¹, A having a row a node of every level."""
    units = [hierarchy.sums(unit) for unit in np.eye(hierarchy.cells)]
    rows = np.concatenate([np.array(level).T for level in zip(*units, strict=True)])
    weights = np.repeat(1 / np.array(noise[: len(hierarchy.sizes)]), hierarchy.sizes)
    cells = np.linalg.inv(rows.T @ (weights[:, None] * rows))
    nodes = np.diag(rows @ cells @ rows.T)
    return [float(part.mean()) for part in np.split(nodes, np.cumsum(hierarchy.sizes)[:-1])]


@pytest.mark.parametrize("fan_out", [(5,), (2, 3), (3, 1, 4), (2, 2, 2, 2)])
def test_variances_are_those_of_dense_least_squares(fan_out: tuple[int, ...]) -> None:
    hierarchy = tree(*fan_out)
    noise = [3.0, 1.5, 8.0, 2.0, 5.0][: len(fan_out) + 1]
    direct = dense_variances(hierarchy, noise)
    np.testing.assert_allclose(fitted_variances(hierarchy.sizes, noise), direct, rtol=1e-9)


def test_variances_on_an_unbalanced_tree_are_those_of_dense_least_squares() -> None:
    sizes = [1, 4, 2, 7]
    labels = [(f"{i}", f"{j}") for i, size in enumerate(sizes) for j in range(size)]
    hierarchy, _ = build(pl.DataFrame(labels, schema=["a", "b"], orient="row"))
    laws = tuple(Geometric(scale=Fraction(scale)) for scale in (4, 1, 2))
    measured = Measurements(
        hierarchy=hierarchy, laws=laws, noisy=hierarchy.sums(np.zeros(14, dtype=np.int64))
    )
    direct = dense_variances(hierarchy, [law.variance for law in laws])
    _, upwards = tree_least_squares.upward([measured])
    fitted = tree_least_squares.fitted_variances(hierarchy, upwards)
    np.testing.assert_allclose([each.mean() for each in fitted], direct, rtol=1e-9)


def geometric_mean(sizes: tuple[int, ...], shares: np.ndarray, loss: float) -> float:
    noise = [geometric_variance(1 / (loss * share)) for share in shares]
    return float(np.log(fitted_variances(sizes, noise)).mean())


@pytest.mark.parametrize("sizes", [(1, 5), (1, 50), (1, 4, 400), (1, 100, 2672, 18704)])
@pytest.mark.parametrize("loss", [0.5, 4.0])
def test_no_split_of_a_grid_is_better(sizes: tuple[int, ...], loss: float) -> None:
    """Every split in steps of 4% that leaves each level its least, against the one found."""
    found = best_shares(sizes, (1,) * len(sizes), loss=loss, mechanism="geometric")
    assert min(found) >= Fraction(LEAST_SHARE).limit_denominator(1000)
    ours = geometric_mean(sizes, np.array([float(each) for each in found]), loss)
    steps = np.arange(LEAST_SHARE, 1, 0.04)
    for front in product(steps, repeat=len(sizes) - 1):
        last = 1 - sum(front)
        if last >= LEAST_SHARE:
            assert ours <= geometric_mean(sizes, np.array([*front, last]), loss) + 2e-3


def test_levels_that_cost_nothing_get_nothing() -> None:
    plan = Plan(epsilon=1, neighbours="replace-one").settled(tree(4, 5))
    assert set(plan.split) == {"l0", "l1"}
    budget = plan.budget(tree(4, 5))
    assert (budget.levels[0].loss, budget.loss) == (0, 1)
    exact = Plan(epsilon=1, exact=["l0"], by=("l0", "l1"))
    assert exact.settled(tree(4, 5)).budget(tree(4, 5)).loss == 1


def test_what_is_open_is_chosen_from_the_shape() -> None:
    hierarchy = tree(6, 30)
    settled = Plan(epsilon=1).settled(hierarchy)
    assert settled.mechanism == "joint"
    assert settled == settled.settled(hierarchy)
    assert Plan(epsilon=1).settled(Shape(by=("a", "b"), sizes=(1, 6, 180))).mechanism == "geometric"
    assert Plan(epsilon=1, noise="opendp").settled(hierarchy).mechanism == "geometric"
    assert Plan(rho="0.5").settled(hierarchy).mechanism == "gaussian"
    mode = Plan(epsilon=1, adjust="mode").settled(hierarchy)
    assert (mode.mechanism, mode.split) == ("geometric", "even")
    levels = Plan(epsilon={"total": 1, "l0": 1, "l1": 2}).settled(hierarchy)
    assert (levels.mechanism, levels.split) == ("joint", "even")


def test_a_release_records_what_was_chosen() -> None:
    release = cw.release(Confidential(tree(6, 30), np.arange(180)), cw.Plan(epsilon=1))
    plan = release.manifest()["plan"]
    assert plan["mechanism"] == "joint"
    assert set(plan["split"]) == {"total", "l0", "l1"}
    assert sum(Fraction(each) for each in plan["split"].values()) == pytest.approx(1, abs=0.003)
    assert release.budget.loss == 1


def test_draws_of_joint_noise_are_foreseen_within_a_factor() -> None:
    """As counted while noise is drawn, on trees of several shapes."""
    for hierarchy in (flat(200), tree(20, 20), tree(3, 10, 10)):
        laws = (Geometric(scale=Fraction(3)),) * len(hierarchy.sizes)
        counted = []
        for _ in range(20):
            trials = _Trials(hierarchy.offsets, laws, sample, _magnitude, None)
            trials.subtrees(0, np.zeros(1, dtype=np.int64))
            counted.append(trials.drawn)
        assert 0.15 < expected_draws(hierarchy.sizes, laws) / np.mean(counted) < 6


def _magnitude(scale: Fraction, size: int) -> np.ndarray:
    return np.random.default_rng(size).geometric(-np.expm1(-1 / float(scale)), size) - 1


def test_margins_are_those_of_repeated_fits() -> None:
    """95% of the errors of least squares, signed and unrounded, are within what the plan says."""
    hierarchy = tree(5, 8)
    budget = Plan(epsilon=1, mechanism="geometric").settled(hierarchy).budget(hierarchy)
    inside = np.zeros(3)
    margins = level_margins(hierarchy, budget)
    for _ in range(400):
        noise = tuple(sample(law, n) for law, n in zip(budget.laws, hierarchy.sizes, strict=True))
        measured = Measurements(hierarchy=hierarchy, laws=budget.laws, noisy=noise)
        up, variances = tree_least_squares.upward([measured])
        fitted = [up[0]]
        for level in (1, 2):
            first, parents = hierarchy.offsets[level - 1][:-1], hierarchy.parents(level)
            gap = (fitted[-1] - np.add.reduceat(up[level], first)) / np.add.reduceat(
                variances[level], first
            )
            fitted.append(up[level] + variances[level] * gap[parents])
        inside += [
            (np.abs(each) <= m.fitted).mean() for each, m in zip(fitted, margins, strict=True)
        ]
    np.testing.assert_allclose(inside / 400, 0.95, atol=0.03)
