"""Ranges of crossed tables: dense algebra and enumeration at small size, coverage at large."""

from itertools import pairwise

import numpy as np
import pytest

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.margins.boxes import Box
from countwise.margins.measurement import Measurement
from countwise.margins.ranges import fitted, margin_ranges, sum_range
from countwise.noise.laws import Exact
from countwise.tables.workload import Margin, Workload
from crossed_tables import (
    every_margin,
    flat,
    gaussian,
    geometric,
    matrix,
    measured,
    north_carolina_crossed,
    tree,
)


@pytest.fixture
def small() -> Workload:
    """Two places of unequal size by three by two: 24 cells, 12 margins."""
    variables = (tree("place", (1, 3)), flat("age", 3), flat("sex", 2))
    return Workload(variables=variables, margins=every_margin(variables))


def _rows(workload: Workload, seen: list[Measurement]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Every noisy count: its cells, its value, its variance."""
    return (
        np.vstack([matrix(workload, each.margin) for each in seen]),
        np.concatenate([each.noisy.reshape(-1).astype(float) for each in seen]),
        np.concatenate([np.full(each.noisy.size, each.law.variance) for each in seen]),
    )


def _highest(logs: FloatArray, probability: float) -> tuple[int, int]:
    weights = np.exp(logs - logs.max())
    order = np.argsort(-weights, kind="stable")
    reached = np.cumsum(weights[order]) / weights.sum()
    chosen = order[: int(np.searchsorted(reached, probability - 1e-9)) + 1]
    return int(chosen.min()), int(chosen.max())


@pytest.mark.parametrize("seed", range(3))
def test_ranges_are_own_noise_times_the_normal_of_the_rest(small: Workload, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.poisson(2.0, small.shape)
    laws = {each: geometric(0.4) for each in small.margins[:-2]} | {small.finest: gaussian(9.0)}
    seen = measured(small, true, laws, rng)
    rows, values, variances = _rows(small, seen)
    before, x = 0, np.arange(400)
    for each in seen:
        low, high = margin_ranges(small, seen, each.margin, 0.9)
        assert low.shape == small.shape_of(each.margin)
        assert low.dtype == np.int64
        for i in range(each.noisy.size):
            keep = np.arange(len(values)) != before + i
            inverse = np.linalg.inv(rows[keep].T @ (rows[keep] / variances[keep, None]))
            mean = rows[before + i] @ inverse @ (rows[keep].T @ (values[keep] / variances[keep]))
            spread = rows[before + i] @ inverse @ rows[before + i]
            logs = each.law.logpmf(each.noisy.reshape(-1)[i] - x) - (x - mean) ** 2 / 2 / spread
            assert (low.reshape(-1)[i], high.reshape(-1)[i]) == _highest(logs, 0.9)
        before += each.noisy.size


def test_unmeasured_margins_and_sums_are_normal_alone(small: Workload) -> None:
    rng = np.random.default_rng(6)
    true = rng.poisson(4.0, small.shape)
    laws = {small.finest: gaussian(9.0), Margin((1, 1, 0)): gaussian(4.0)}
    seen = measured(small, true, laws, rng)
    rows, values, variances = _rows(small, seen)
    inverse = np.linalg.inv(rows.T @ (rows / variances[:, None]))
    cells, x = inverse @ (rows.T @ (values / variances)), np.arange(400)

    def wanted(sum_: FloatArray) -> tuple[int, int]:
        return _highest(-((x - sum_ @ cells) ** 2) / 2 / (sum_ @ inverse @ sum_), 0.95)

    for margin in (Margin((0, 0, 0)), Margin((2, 0, 1))):
        low, high = margin_ranges(small, seen, margin)
        for i, row in enumerate(matrix(small, margin)):
            assert (low.reshape(-1)[i], high.reshape(-1)[i]) == wanted(row)
    for box in (
        Box(margin=small.finest, categories=(np.array([0, 2, 3]), np.array([1]), None)),
        Box(margin=Margin((1, 1, 0)), categories=(np.array([1]), np.array([0, 2]), None)),
        Box(margin=small.finest, categories=(None, None, None)),
    ):
        inside = box.inside(small, small.finest).reshape(-1).astype(float)
        assert sum_range(small, seen, box) == wanted(inside)


def test_a_box_is_the_categories_it_names(small: Workload) -> None:
    box = Box(margin=Margin((1, 1, 1)), categories=(np.array([1]), np.array([0, 2]), None))
    wanted = np.zeros(small.shape, np.int64)
    wanted[1:][:, [0, 2]] = 1
    np.testing.assert_array_equal(box.inside(small, small.finest), wanted)


def test_exact_counts_have_no_width(small: Workload) -> None:
    rng = np.random.default_rng(2)
    true = rng.poisson(4.0, small.shape)
    true[0] = 0
    laws = dict.fromkeys(small.margins, gaussian(9.0)) | {Margin((1, 0, 0)): Exact()}
    seen = measured(small, true, laws, rng)
    low, high = margin_ranges(small, seen, Margin((1, 0, 0)))
    np.testing.assert_array_equal(low, small.sums(true, Margin((1, 0, 0))))
    np.testing.assert_array_equal(high, low)
    low, high = margin_ranges(small, seen, small.finest)
    assert (high[0] == 0).all()
    assert (high[1:] > 0).all()
    total = Box(margin=Margin((1, 0, 0)), categories=(np.array([0, 1]), None, None))
    assert sum_range(small, seen, total) == (true.sum(), true.sum())


def test_what_nothing_determines_is_refused(small: Workload) -> None:
    seen = measured(
        small,
        np.ones(small.shape, np.int64),
        {Margin((1, 1, 0)): gaussian(4.0)},
        np.random.default_rng(1),
    )
    with pytest.raises(InputError, match="do not determine table place_low"):
        margin_ranges(small, seen, Margin((2, 0, 0)))
    box = Box(margin=small.finest, categories=(None, None, np.array([1])))
    with pytest.raises(InputError, match="do not determine sums of table sex"):
        sum_range(small, seen, box)


def test_very_wide_ranges_are_as_wide_as_the_normal(small: Workload) -> None:
    true = np.full(small.shape, 10**9)
    seen = measured(small, true, {small.finest: gaussian(1e9)}, np.random.default_rng(1))
    low, high = margin_ranges(small, seen, Margin((2, 0, 0)))
    assert np.abs((high - low) / (2 * 1.96 * 6e9**0.5) - 1).max() < 0.001


def test_ranges_cover_counts_of_every_size() -> None:
    workload, true = north_carolina_crossed()
    rng = np.random.default_rng(21)
    seen = measured(workload, true, dict.fromkeys(workload.margins, gaussian(12.0)), rng)
    estimates = fitted(workload, seen)
    sizes = np.array([0, 1, 5, 25, 100, 10**9])
    checked = 0
    for margin in workload.margins:
        counts: IntArray = workload.sums(true, margin)
        low, high = margin_ranges(workload, seen, margin, estimates=estimates)
        covered = (low <= counts) & (counts <= high)
        for least, most in pairwise(sizes):
            chosen = (counts >= least) & (counts < most)
            if chosen.sum() >= 1000:
                assert covered[chosen].mean() >= 0.93
                checked += 1
    assert checked >= 10
