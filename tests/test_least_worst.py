"""The bound of the benchmark on lone cells, against sums over all sets and all tables."""

import sys
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from countwise.noise.laws import Geometric

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from accuracy_tables import flat
from least_worst import Best, beliefs, chosen_chances, equal_cells, least_worst


def test_chances_of_sets_are_sums_over_all_of_them() -> None:
    weights = np.random.default_rng(1).gamma(1.0, size=(3, 7))
    found, ways = chosen_chances(weights, 3)
    for row in range(3):
        products = {each: weights[row, list(each)].prod() for each in combinations(range(7), 3)}
        assert ways[row] == pytest.approx(sum(products.values()))
        for item in range(7):
            inside = sum(product for each, product in products.items() if item in each)
            assert found[row, item] == pytest.approx(inside / ways[row])


def test_beliefs_are_averages_over_all_tables() -> None:
    law, size = Geometric(scale=Fraction(2)), 4
    noisy = np.array([[4, -1, 2, 0, 1]])
    logs, means = beliefs(noisy, law, size, (1, 2, 4))
    base = law.logpmf(noisy[0]).sum()
    for at, number in enumerate((1, 2, 4)):
        chosen = combinations(range(5), number)
        tables = np.array([[size // number * (i in each) for i in range(5)] for each in chosen])
        likely = np.exp(law.logpmf(noisy[0] - tables).sum(axis=1) - base)
        assert logs[0, at] == pytest.approx(np.log(likely.mean()))
        np.testing.assert_allclose(means[0, at], likely @ tables / likely.sum())


def test_the_bound_is_that_of_a_game_that_is_known() -> None:
    """Noise so wide that it tells nothing: 2 in one of n cells or 1 in two of them are alike, and
    the middle of all is the best for both. With the same best error of either, the bound is the
    ratio in the worse one, the lone cell's: its mean square is (2²/n)·(1 - 1/n)."""
    tables = equal_cells(flat([2, 0, 0, 0, 0, 0], total="1", parts="1"))
    assert [each.cells.tolist()[:2] for each in tables.values()] == [[2, 0], [1, 1]]
    alike = Best(0.01, 0.001)
    found, error = least_worst(tables, Geometric(scale=Fraction(10**5)), {1: alike, 2: alike})
    assert error == pytest.approx(found * 0.1 / 2, rel=1e-2)
    assert found == pytest.approx(np.sqrt(4 / 6 * (1 - 1 / 6) / 0.01), rel=1e-2)
