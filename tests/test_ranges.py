"""Laws and ranges without a prior: against every combination of counts, and by coverage."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import countwise as cw
from cases import flat, tree
from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import reading
from countwise.kernels.intervals import beside_normal
from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, IntegerLaw, RoundedLaplace
from countwise.sumproduct.implied_bounds import BOUNDLESS, least_and_most
from countwise.sumproduct.measured_nodes import seen_by
from countwise.sumproduct.prior_free_laws import (
    ByMessages,
    ByNormal,
    FreeLaws,
    by_shifts,
    free_laws,
)
from countwise.sumproduct.priors import NoPrior
from countwise.sumproduct.summaries import summarise
from countwise.sumproduct.tree import solve
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

HALF, THIRD = Geometric(scale=Fraction(1, 2)), Geometric(scale=Fraction(1, 3))
NARROW, LAPLACE = DiscreteGaussian(scale=Fraction(1)), RoundedLaplace(scale=Fraction(1, 2))
FAR = 9  # counts tried around each noisy one


def measured(
    hierarchy: Hierarchy,
    laws: Sequence[IntegerLaw],
    noisy: Sequence[Sequence[int]],
    exact: Sequence[Sequence[bool]] | None = None,
) -> Measurements:
    return Measurements(
        hierarchy=hierarchy,
        laws=tuple(laws),
        noisy=tuple(np.array(each, np.int64) for each in noisy),
        exact=None if exact is None else tuple(np.array(each, np.bool_) for each in exact),
    )


def enumerated(seen: Sequence[Measurements], level: int, node: int) -> dict[int, float]:
    """The law of a node when every cell may be any whole number and the node is 0 or more."""
    hierarchy, first = seen[0].hierarchy, seen[0]
    cells = [
        [int(y)] if first.exact is not None and first.exact[-1][i] else range(y - FAR, y + FAR + 1)
        for i, y in enumerate(first.noisy[-1].tolist())
    ]
    rows = np.array(list(product(*cells)))
    levels = [rows]
    for offsets in reversed(hierarchy.offsets):
        levels.append(np.add.reduceat(levels[-1], offsets[:-1], axis=1))
    levels.reverse()
    logs = np.zeros(len(rows))
    for each in seen:
        for d, (law, noisy) in enumerate(zip(each.laws, each.noisy, strict=True)):
            free = law.logpmf(noisy - levels[d])
            if first.exact is not None:
                known = np.where(noisy == levels[d], 0.0, -np.inf)
                free = np.where(first.exact[d], known, free)
            logs += free.sum(axis=1)
    counts = levels[level][:, node]
    weights = np.exp(logs - logs.max()) * (counts >= 0)
    values, places = np.unique(counts, return_inverse=True)
    law = np.bincount(places, weights)
    return dict(zip(values.tolist(), (law / law.sum()).tolist(), strict=True))


def apart(found: FreeLaws, seen: Sequence[Measurements]) -> float:
    """The largest difference of a probability, over all nodes."""
    worst = 0.0
    for level, size in enumerate(found.hierarchy.sizes):
        for node in range(size):
            truth = enumerated(seen, level, node)
            low, law = found.law(level, node)
            mine = dict(enumerate((law / law.sum()).tolist(), start=low))
            gaps = [abs(truth.get(x, 0.0) - mine.get(x, 0.0)) for x in {*truth, *mine}]
            worst = max(worst, *gaps)
    return worst


TREES = [
    (flat(3), [THIRD, HALF], [[4], [-1, 0, 3]]),
    (flat(3), [NARROW, LAPLACE], [[4], [-2, 1, 3]]),
    (flat(1), [HALF, HALF], [[-3], [1]]),
    (tree(2, 2), [THIRD, NARROW, HALF], [[4], [1, 2], [-1, 0, 3, 2]]),
    (tree(2, 1), [HALF, THIRD, HALF], [[4], [1, 2], [-3, 2]]),
    (tree(1, 2, 2), [HALF, NARROW, HALF, THIRD], [[2], [3], [1, 2], [-1, 0, 3, 2]]),
]


@pytest.mark.parametrize("case", range(len(TREES)))
def test_laws_agree_with_enumeration(case: int) -> None:
    hierarchy, laws, noisy = TREES[case]
    seen = measured(hierarchy, laws, noisy)
    assert apart(by_shifts(seen), [seen]) < 3e-7
    solved = solve(seen_by([seen], NoPrior()))
    assert apart(ByMessages(measurements=(seen,), solved=solved), [seen]) < 3e-7


def test_several_noisy_values_of_each_count() -> None:
    hierarchy = tree(2, 2)
    laws = [HALF, THIRD, HALF]
    seen = [
        measured(hierarchy, laws, [[4], [1, 2], [-1, 0, 3, 2]]),
        measured(hierarchy, [THIRD, HALF, NARROW], [[5], [0, 3], [0, -1, 2, 1]]),
    ]
    found = free_laws(seen)
    assert found.exact
    assert apart(found, seen) < 3e-7


def test_exact_counts_and_structural_zeros() -> None:
    """An exact parent with a zero below it: the others share what it leaves."""
    hierarchy, laws = tree(2, 3), [HALF, THIRD, HALF]
    noisy = [[7], [5, 1], [0, 3, 4, 1, -1, 2]]
    exact = [[False], [True, False], [True, False, False, False, False, False]]
    seen = measured(hierarchy, laws, noisy, exact)
    found = by_shifts(seen)
    assert found.law(1, 0) == (5, pytest.approx([1.0]))
    assert found.law(2, 0) == (0, pytest.approx([1.0]))
    for node in (1, 2):
        truth = {x: p for x, p in enumerated([seen], 2, node).items() if 0 <= x <= 5}
        total = sum(truth.values())
        low, law = found.law(2, node)
        assert low == 0
        assert len(law) == 6
        for x, p in enumerate(law / law.sum()):
            assert p == pytest.approx(truth[x] / total, abs=3e-7)
    low, high = found.ranges(2, 0.95)
    assert (low >= 0).all()
    assert (high[:3] <= 5).all()


def test_what_exact_counts_leave_possible() -> None:
    hierarchy = tree(2, 3)
    values = hierarchy.sums(np.array([0, 3, 4, 1, 0, 2]))
    exact = (np.array([True]), np.array([True, False]), np.array([True, True, *[False] * 4]))
    least, most = least_and_most(hierarchy, values, exact)
    assert least[1].tolist() == [7, 0]
    assert most[1].tolist() == [7, 3]
    assert least[2].tolist() == [0, 3, 0, 0, 0, 0]
    assert most[2].tolist() == [0, 3, 4, 3, 3, 3]
    _, boundless = least_and_most(hierarchy, values, None)
    assert (boundless[2] == BOUNDLESS).all()


@pytest.mark.parametrize(
    "law", [Geometric(scale=Fraction(3)), DiscreteGaussian(scale=Fraction(4)), Exact()]
)
def test_ranges_beside_a_normal(law: IntegerLaw) -> None:
    """The kernel that walks out from the top, against sorting all probabilities."""
    rng = np.random.default_rng(7)
    count = 300
    noisy = rng.integers(-30, 60, count)
    means, variances = noisy + rng.normal(0, 8, count), rng.uniform(0.5, 200, count)
    least = np.where(rng.random(count) < 0.8, 0, 4)
    slopes = np.asarray(law.slope(np.arange(200))) if law.variance else np.empty(0)
    low, high = beside_normal(
        reading(noisy, np.int64), slopes, means, variances, reading(least, np.int64), 0.95
    )
    for i in range(count):
        x = np.arange(least[i], 400)
        if not law.variance:
            assert low[i] == high[i] == max(noisy[i], least[i])
            continue
        logs = law.logpmf(noisy[i] - x) - (x - means[i]) ** 2 / (2 * variances[i])
        p = np.exp(logs - logs.max())
        order = np.argsort(-p, kind="stable")
        held = order[: np.searchsorted(np.cumsum(p[order]), 0.95 * p.sum() * (1 - 1e-12)) + 1]
        assert (low[i], high[i]) == (x[held.min()], x[held.max()])


def simulated(
    cells: Sequence[int], law: IntegerLaw, count: int, rng: np.random.Generator
) -> list[tuple[FloatArray, FloatArray]]:
    """For total and cells of a flat table: share of ranges that hold, and what they promise."""
    hierarchy = flat(len(cells))
    true = hierarchy.sums(np.array(cells))
    inside = [np.zeros(len(each)) for each in true]
    promised = [np.zeros(len(each)) for each in true]
    for _ in range(count):
        noisy = [t + law.isf(1 - rng.random(len(t))) for t in true]
        found = cw.infer_measurements([measured(hierarchy, [law, law], noisy)])
        for level, t in enumerate(true):
            s = found.summaries(level)
            inside[level] += (s.lower <= t) & (t <= s.upper)
            promised[level] += s.chance
    return [(a / count, b / count) for a, b in zip(inside, promised, strict=True)]


@pytest.mark.parametrize(
    ("cells", "releases"),
    [([500, 80, 300, 40, 900], 400), ([0] * 36 + [3, 8, 40, 200], 400), ([0] * 30, 200)],
)
def test_ranges_cover_what_they_promise(cells: list[int], releases: int) -> None:
    """By size: where zero is out of reach exactly as much, near it as much or more."""
    law = Geometric(scale=Fraction(10, 7))
    found = simulated(cells, law, releases, np.random.default_rng(len(cells)))
    (total, total_promise), (parts, promise) = found
    for size in sorted(set(cells)):
        same = np.array(cells) == size
        error = np.sqrt(0.05 * 0.95 / (releases * same.sum()))
        gap = (parts[same] - promise[same]).mean()
        assert gap > -3.5 * error, size
        assert size < 10 or gap < 3.5 * error, size
    assert total[0] - total_promise[0] > -3.5 * np.sqrt(0.05 * 0.95 / releases)


def test_a_prior_is_not_needed_but_a_wrong_scale_is_found_out() -> None:
    """The test above has power: with noise half as wide, coverage drops by more than it allows."""
    rng = np.random.default_rng(3)
    wide, narrow = Geometric(scale=Fraction(2)), Geometric(scale=Fraction(1))
    hierarchy, cells = flat(40), np.arange(40) * 20
    true = hierarchy.sums(cells)
    inside = []
    for _ in range(40):
        noisy = [t + wide.isf(1 - rng.random(len(t))) for t in true]
        low, high = free_laws([measured(hierarchy, [narrow, narrow], noisy)]).ranges(1, 0.95)
        inside.append(np.mean((low <= cells) & (cells <= high)))
    assert np.mean(inside) < 0.9


def sparse(size: int, rng: np.random.Generator) -> IntArray:
    return rng.negative_binomial(0.02, 0.02 / 2.02, size)


@pytest.mark.parametrize(
    ("hierarchy", "scale"), [(flat(100_000), 6), (tree(28, 20, 30), 6)], ids=["flat", "tree"]
)
def test_large_sparse_tables_are_exact(hierarchy: Hierarchy, scale: int) -> None:
    """100,000 cells below one total, and 16,800 in a tree: the normal way comes close to it."""
    rng = np.random.default_rng(11)
    true = hierarchy.sums(sparse(hierarchy.cells, rng))
    law = Geometric(scale=Fraction(scale))
    noisy = [t + law.isf(1 - rng.random(len(t))) for t in true]
    seen = measured(hierarchy, [law] * len(true), noisy)
    found, near = free_laws([seen]), ByNormal(measurements=(seen,))
    assert found.exact
    assert not near.exact
    for level, t in enumerate(true):
        low, high = found.ranges(level, 0.95)
        if len(t) > 100:
            covered = np.mean((low <= t) & (t <= high))
            assert covered > 0.95 - 3.5 * np.sqrt(0.05 * 0.95 / len(t))
            ends = near.ranges(level, 0.95)
            assert np.mean(np.abs(ends[0] - low) <= 1) > 0.97
            assert np.mean(np.abs(ends[1] - high) <= 1) > 0.97


def test_counts_that_no_message_can_join_still_have_ranges() -> None:
    """e^-10000 apart: the normal way goes on where products of laws vanish."""
    law = Geometric(scale=Fraction(1, 10_000))
    post = cw.infer_measurements([measured(flat(2), [law, law], [[6], [2, 3]])])
    low, high = post.node("total").interval()
    assert 5 <= low <= high <= 6
    gaussian = DiscreteGaussian(scale=Fraction(1))
    post = cw.infer_measurements([measured(flat(2), [gaussian, gaussian], [[205], [2, 3]])])
    assert 60 < post.node("total").mean < 140
    for noisy in ([[205], [2, 3]], [[105], [2, 3]]):  # a third of what lacks goes to each
        post = cw.infer_measurements([measured(flat(2), [gaussian, gaussian], noisy)])
        third = (noisy[0][0] - 5) / 3
        found = [post.node_at(1, 0).mean, post.node_at(1, 1).mean]
        assert np.allclose(found, [2 + third, 3 + third], atol=0.1)
        assert np.allclose(post.summaries(1).mean, found)
    deep = [[400], [190, 10], [2, 3, 4, 6]]
    post = cw.infer_measurements([measured(tree(2, 2), [gaussian] * 3, deep)])
    for level in range(3):
        found = post.summaries(level)
        assert (found.lower <= found.mode).all()
        assert (found.mode <= found.upper).all()


def test_very_wide_noise_is_told_in_units() -> None:
    """Within 1/256 of the scale of what single counts say; and soon, however wide."""
    law = Geometric(scale=Fraction(600))
    seen = measured(tree(2, 2), [law] * 3, [[1300], [-300, 2200], [20, 400, 1300, -80]])
    found, single = free_laws([seen]), by_shifts(seen)
    assert "units of 2" in found.how
    assert not found.exact
    for level in range(3):
        mine = found.summaries(level, 0.95, "highest")
        truth = [summarise(laws) for laws in single.laws(level)]
        for name in ("mean", "sd", "lower", "upper"):
            whole = np.concatenate([getattr(each, name) for each in truth])
            assert np.abs(getattr(mine, name) - whole).max() < 12
    low, chances = found.law(2, 0)
    assert low == 0
    assert (chances / chances.sum()) @ np.arange(len(chances)) == pytest.approx(
        found.summaries(2, 0.95, "highest").mean[0], abs=8
    )
    law = Geometric(scale=Fraction(2_000_000))
    post = cw.infer_measurements([measured(flat(2), [law] * 2, [[10**6], [-(10**6), 3 * 10**6]])])
    assert post.summaries(1).upper[1] > 3 * 10**6
    assert post.node("total").mean == pytest.approx(post.summaries(0).mean[0], rel=1e-3)
