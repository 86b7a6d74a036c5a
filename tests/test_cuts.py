"""Cuts against every vector of small counts, mixtures against one problem a cut."""

from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels import coupled
from countwise.kernels.coupled_mixture import Mixture, StepLayout, mixture, mixture_draws_given
from countwise.kernels.cuts import (
    UNBOUNDED,
    Cuts,
    enumerate_cuts,
    is_equal_split,
)


def windows(cuts: Cuts, size: int) -> tuple[IntArray, IntArray]:
    """Lower and upper ends as matrices, one row a cut, one column a component."""
    ends = np.zeros((2, cuts.values.size, size), np.int64)
    current = np.zeros((2, size), np.int64)
    for c in range(cuts.values.size):
        here = slice(cuts.bounds[c], cuts.bounds[c + 1])
        current[:, cuts.changed[here]] = cuts.lows[here], cuts.highs[here]
        ends[:, c] = current
    return ends[0], ends[1]


def apportion(v: tuple[int, ...], m: int, rank: IntArray) -> tuple[int, ...]:
    """The first m units by quotient descending, rank ascending, in exact fractions."""
    counts = v if any(v) else (1,) * len(v)
    units = [
        (-Fraction(counts[i], j), int(rank[i]), i) for i in range(len(v)) for j in range(1, m + 1)
    ]
    awarded = [i for _, _, i in sorted(units)[:m]]
    return tuple(awarded.count(i) for i in range(len(v)))


def last_first(size: int) -> IntArray:
    return np.arange(size)[::-1].copy()


@pytest.mark.parametrize("order", ["last", "random", "other random"])
@pytest.mark.parametrize(
    ("size", "top", "total"),
    [(1, 8, 1), (1, 8, 5), (2, 9, 1), (2, 9, 6), (2, 9, 13), (3, 6, 1), (3, 6, 4), (3, 6, 11)],
)
def test_windows_partition_the_vectors_that_lead_to_a_release(
    size: int, top: int, total: int, order: str
) -> None:
    rng = np.random.default_rng(len(order))
    rank = last_first(size) if order == "last" else rng.permutation(size)
    outcomes: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for v in product(range(top + 1), repeat=size):
        outcomes.setdefault(apportion(v, total, rank), []).append(v)
    for k, vectors in outcomes.items():
        cuts = enumerate_cuts(np.array(k), rank, lowest_sum=0, highest_sum=size * top)
        covered: list[tuple[int, ...]] = []
        for low, high in zip(*windows(cuts, size), strict=True):
            ends = zip(low, np.minimum(high, top), strict=True)
            covered += product(*(range(a, b + 1) for a, b in ends))
        assert sorted(covered) == sorted(v for v in vectors if any(v))
        assert is_equal_split(np.array(k), rank) == ((0,) * size in vectors)


def test_every_cut_within_the_range_of_sums_is_listed_and_no_other() -> None:
    k, rank = np.array([3, 0, 5, 1]), np.array([2, 0, 3, 1])
    everything = enumerate_cuts(k, rank, lowest_sum=0, highest_sum=60)
    low, high = windows(everything, 4)
    near = (low.sum(1) <= 12) & (high.sum(1) >= 8)
    listed = enumerate_cuts(k, rank, lowest_sum=7.5, highest_sum=12.5)
    np.testing.assert_array_equal(listed.components, everything.components[near])
    np.testing.assert_array_equal(listed.values, everything.values[near])
    np.testing.assert_array_equal(windows(listed, 4), (low[near], high[near]))


@pytest.mark.parametrize("largest", [40, 10**9, 10**15])
def test_windows_of_large_counts_against_whole_number_arithmetic(largest: int) -> None:
    rng = np.random.default_rng(3)
    k, rank = rng.integers(largest // 2, largest, 12), rng.permutation(12)
    k[3], k[4] = 0, k[5]
    m = int(k.sum()) if largest < 10**15 else int(k[:4].sum())
    k, rank = (k, rank) if largest < 10**15 else (k[:4], np.argsort(rank[:4]))
    cuts = enumerate_cuts(k, rank, lowest_sum=m - 30, highest_sum=m + 30)
    assert cuts.values.size > 20
    for i, x, low, high in zip(cuts.components, cuts.values, *windows(cuts, k.size), strict=True):
        for j in range(k.size):
            expected = window(k.tolist(), rank, int(i), int(x), j)
            assert (int(low[j]), int(high[j])) == expected


def window(k: list[int], rank: IntArray, i: int, x: int, j: int) -> tuple[int, int]:
    """The definition, in Python integers."""
    if i == j:
        return x, x
    before, unit = rank[j] < rank[i], k[i] + 1
    low = -(-x * k[j] // unit) if before else x * k[j] // unit + 1
    high = -(-x * (k[j] + 1) // unit) - 1 if before else x * (k[j] + 1) // unit
    return (low if k[j] else 0), high


def test_few_windows_change_from_cut_to_cut() -> None:
    k = np.random.default_rng(1).integers(0, 1000, 1000)
    m = int(k.sum())
    cuts = enumerate_cuts(k, last_first(1000), lowest_sum=m - 400, highest_sum=m + 400)
    assert cuts.values.size > 400
    assert cuts.changed.size < 1000 + 5 * cuts.values.size
    np.testing.assert_array_equal(np.sort(cuts.changed[: cuts.bounds[1]]), np.arange(1000))


def test_released_total_of_zero_leaves_everything_possible() -> None:
    cuts = enumerate_cuts(np.zeros(3, np.int64), np.arange(3), lowest_sum=0, highest_sum=9)
    low, high = windows(cuts, 3)
    assert cuts.components.tolist() == [-1]
    assert (low == 0).all()
    assert (high == UNBOUNDED).all()


def test_a_range_without_cuts_gives_none() -> None:
    cuts = enumerate_cuts(np.array([3, 4]), np.arange(2), lowest_sum=9, highest_sum=5)
    assert cuts.values.size == cuts.changed.size == 0


@pytest.mark.parametrize(
    ("k", "rank"), [([1, -1], [0, 1]), ([1, 2], [0, 0]), ([1, 2], [0]), ([2**52, 1], [0, 1])]
)
def test_what_can_not_be_apportioned_is_refused(k: list[int], rank: list[int]) -> None:
    with pytest.raises(InputError):
        enumerate_cuts(np.array(k), np.array(rank), lowest_sum=1, highest_sum=9)


class Posed(NamedTuple):
    """A mode release as a mixture: one piece a change, weights P(v in window given x)."""

    cuts: Cuts
    weights: list[FloatArray]
    lows: IntArray
    coupling: FloatArray
    coupling_low: int

    @property
    def layout(self) -> StepLayout:
        return StepLayout(self.offsets, self.lows, self.cuts.changed, self.cuts.bounds)

    @property
    def offsets(self) -> IntArray:
        return np.concatenate([[0], np.cumsum([w.size for w in self.weights])])

    def by_component(self, flat: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Component, value and marginal of every entry."""
        sizes = np.diff(self.offsets)
        x = np.arange(flat.size) + np.repeat(self.lows - self.offsets[:-1], sizes)
        return np.repeat(self.cuts.changed, sizes), x, flat


def pose(k: IntArray, rank: IntArray, epsilon: float, total_epsilon: float) -> Posed:
    m, size = int(k.sum()), k.size
    reach = int(12 * np.sqrt(2.0 * (size + 1)) / epsilon) + 5
    cuts = enumerate_cuts(k, rank, lowest_sum=m - reach, highest_sum=m + reach)
    half = int(36 / epsilon)
    lows = np.maximum(0, cuts.lows - half)
    weights = [
        chance(np.arange(start, high + half + 1), low, high, np.exp(-epsilon))
        for start, low, high in zip(lows.tolist(), cuts.lows, cuts.highs, strict=True)
    ]
    span = np.arange(-half, half + 1)
    return Posed(cuts, weights, lows, np.exp(-total_epsilon * np.abs(span)), m - half)


def chance(x: IntArray, low: int, high: int, alpha: float) -> FloatArray:
    """P(low <= max(x + noise, 0) <= high) for two-sided geometric noise, term by term."""
    n = np.arange(low, high + 1)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(n - x[:, None])
    below = alpha ** (x + 1.0) / (1 + alpha) if low == 0 else 0.0
    return law.sum(1) + below


def summary(posed: Posed, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mass, mean and standard deviation of every component."""
    who, x, p = posed.by_component(flat)
    mass = np.bincount(who, p)
    mean = np.bincount(who, p * x) / mass
    return mass, mean, np.sqrt(np.bincount(who, p * (x - mean[who]) ** 2) / mass)


def solve_mixture(posed: Posed) -> FloatArray:
    return solved(posed).marginals


def solved(posed: Posed) -> Mixture:
    weights = np.concatenate(posed.weights)
    return mixture(weights, posed.layout, posed.coupling, posed.coupling_low)


def test_three_components_have_the_known_posterior_means() -> None:
    posed = pose(np.array([4, 0, 7]), last_first(3), 1.0, 0.7)
    mass, mean, _ = summary(posed, solve_mixture(posed))
    np.testing.assert_allclose(mass, 1.0, atol=1e-13)
    np.testing.assert_allclose(mean, [4.26384, 0.54161, 6.93206], atol=6e-6)


def test_fifty_components_have_the_known_posterior() -> None:
    k = np.random.default_rng(50).integers(0, 1000, 50)
    posed = pose(k, last_first(50), 1.0, 1.0)
    mass, mean, deviation = summary(posed, solve_mixture(posed))
    np.testing.assert_allclose(mass, 1.0, atol=1e-12)
    np.testing.assert_allclose(mean[:3], [781.38708, 787.32543, 714.32011], atol=6e-6)
    np.testing.assert_allclose(deviation[:3], [1.434754, 1.439468, 1.420781], atol=6e-7)


@pytest.mark.parametrize("k", [[4, 0, 7], [9], [0, 1, 0, 0, 0], [30, 2, 2, 2, 17, 40]])
def test_mixture_is_the_sum_of_one_problem_a_cut(k: list[int]) -> None:
    posed = pose(np.array(k), np.random.default_rng(2).permutation(len(k)), 0.8, 1.0)
    found = solved(posed)
    expected, sums, logs = [np.zeros(w.size) for w in posed.weights], 0.0, []
    active = np.zeros(len(k), np.int64)
    for c in range(posed.cuts.values.size):
        here = np.arange(posed.cuts.bounds[c], posed.cuts.bounds[c + 1])
        active[posed.cuts.changed[here]] = here
        weights = [posed.weights[q] for q in active]
        offsets = np.concatenate([[0], np.cumsum([w.size for w in weights])])
        rest = {"coupling": posed.coupling, "coupling_low": posed.coupling_low}
        alone = np.concatenate(weights), offsets
        _, law, log = coupled.upward(*alone, lows=posed.lows[active], **rest)
        share = np.exp(log - found.log_normaliser)
        parts = coupled.marginals(*alone, lows=posed.lows[active], **rest) * share
        for q, part in zip(active, np.split(parts, offsets[1:-1]), strict=True):
            expected[q] += part
        sums = sums + law * share
        logs.append(log)
    np.testing.assert_allclose(found.marginals, np.concatenate(expected), atol=1e-13)
    np.testing.assert_allclose(
        found.messages * np.concatenate(posed.weights), found.marginals, atol=1e-13
    )
    np.testing.assert_allclose(found.sums, sums, atol=1e-13)
    clear = np.array(logs) > max(logs) - 20
    np.testing.assert_allclose(found.step_logs[clear], np.array(logs)[clear], atol=1e-6)
    assert found.log_normaliser == pytest.approx(np.logaddexp.reduce(logs), abs=1e-12)


def test_first_step_must_list_every_component() -> None:
    posed = pose(np.array([4, 0, 7]), last_first(3), 1.0, 0.7)
    wrong = posed.layout._replace(components=np.zeros(posed.lows.size, np.int64))
    with pytest.raises(InputError, match="first step"):
        mixture(np.concatenate(posed.weights), wrong, posed.coupling, posed.coupling_low)


def test_draws_given_the_sum_have_the_conditional_law() -> None:
    posed, count = pose(np.array([4, 0, 7]), last_first(3), 1.0, 0.7), 30_000
    sums = np.repeat([9, 14], count)
    weights = np.concatenate(posed.weights)
    rows = mixture_draws_given(sums, weights, posed.layout, rng=np.random.default_rng(5))
    np.testing.assert_array_equal(rows.sum(1), sums)
    for total, part in ((9, rows[:count]), (14, rows[count:])):
        there = posed._replace(coupling=np.ones(1), coupling_low=total)
        who, x, p = there.by_component(solve_mixture(there))
        for s in range(3):
            expected = np.bincount(x[who == s], p[who == s], minlength=20) * count
            seen = np.bincount(part[:, s], minlength=expected.size)
            assert (np.abs(seen - expected) <= 6 * np.sqrt(expected) + 6).all()
