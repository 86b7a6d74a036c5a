"""Segmentation against all segmentations, and against the published table."""

from itertools import combinations

import numpy as np
import pytest

from countwise.arrays import FloatArray
from countwise.kernels.segmentation import run_means, segment
from segmentation_table import segment_by_table, table


def cost(values: FloatArray, starts: FloatArray, penalty: float) -> float:
    return float(((values - run_means(values, starts)) ** 2).sum()) + penalty * (len(starts) - 1)


def by_hand(values: FloatArray, penalty: float) -> float:
    """The least cost over all segmentations."""
    size = len(values)
    edges = (
        np.array([0, *cuts, size])
        for runs in range(size)
        for cuts in combinations(range(1, size), runs)
    )
    return min(cost(values, each, penalty) for each in edges)


@pytest.mark.parametrize("penalty", [0.3, 4.0, 25.0])
def test_least_cost_of_all_segmentations(penalty: float) -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 7, 10):
        for _ in range(5):
            values = rng.laplace(size=size) + rng.choice([0, 4], size)
            found = cost(values, segment(values, penalty), penalty)
            assert found == pytest.approx(by_hand(values, penalty), rel=1e-12)


def test_same_runs_as_the_table_with_its_choice_of_k() -> None:
    rng = np.random.default_rng(1)
    for trial in range(600):
        size = int(rng.integers(1, 60))
        levels = np.repeat(rng.integers(0, 30, size), rng.integers(1, 9))[:size]
        values = rng.laplace(scale=rng.choice([0.1, 1, 20]), size=size) + levels
        penalty = float(rng.choice([0.04, 4, 50, 1000]))
        assert np.array_equal(segment(values, penalty), segment_by_table(values, penalty)), trial


def test_whole_numbers_tie_often_and_ties_are_settled_as_in_the_table() -> None:
    """Fewest runs first, then the longest last run."""
    assert list(segment(np.array([0.0, 0, 2, 2]), 4.0)) == [0, 4]
    assert list(segment(np.array([0.0, 1, 2]), 0.6)) == [0, 1, 3]
    rng = np.random.default_rng(2)
    for size in (3, 12, 40):
        for row in rng.integers(-3, 4, (300, size)).astype(np.float64):
            for penalty in (1.0, 4.0):
                expected = segment_by_table(row, penalty)
                assert np.array_equal(segment(row, penalty), expected)


def test_pieces_outgrow_their_first_room() -> None:
    """A ramp keeps hundreds of parabolas; the table says the same."""
    values = np.arange(700) * 0.002
    assert np.array_equal(segment(values, 4.0), segment_by_table(values, 4.0))


@pytest.mark.parametrize(
    ("values", "penalty", "starts"),
    [
        ([3.0], 4.0, [0, 1]),
        ([0.0] * 9, 4.0, [0, 9]),
        ([0.0, 0, 0, 1e12, 0, 0], 4.0, [0, 3, 4, 6]),
        ([1.0, 2.0, 4.0], 0.0, [0, 1, 2, 3]),
        ([0.0, 10.0, 0.0], 1e9, [0, 3]),
        ([1e15, 1e15 + 8, 1e15, 1e15 + 8], 1.0, [0, 1, 2, 3, 4]),
    ],
)
def test_hard_cases(values: list[float], penalty: float, starts: list[int]) -> None:
    assert list(segment(np.array(values), penalty)) == starts


def test_one_giant_does_not_blur_the_rest() -> None:
    rng = np.random.default_rng(3)
    values = rng.laplace(size=400)
    values[200] = 1e13
    parts = [segment(values[:200], 4.0), segment(values[201:], 4.0) + 201]
    assert list(segment(values, 4.0)) == [*parts[0], *parts[1]]


def test_a_long_flat_histogram_and_a_long_ramp_are_segmented() -> None:
    rng = np.random.default_rng(4)
    assert len(segment(rng.normal(size=200_000), 2 * np.log(200_000) * 2.0)) < 10
    starts = segment(np.arange(20_000) * 0.5, 1000.0)
    assert np.diff(starts[1:-1]).std() < 1


def test_table_costs_fall_with_runs_and_end_at_zero() -> None:
    values = np.random.default_rng(6).normal(size=30)
    costs = table(values)[0][-1, 1:]
    assert (np.diff(costs) <= 1e-12).all()
    assert costs[-1] == pytest.approx(0, abs=1e-12)
    assert costs[0] == pytest.approx(((values - values.mean()) ** 2).sum(), rel=1e-12)
