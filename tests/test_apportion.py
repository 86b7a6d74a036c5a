"""The mode of a multinomial: exact, against a naive rule, brute force, and the paper's loop."""

import subprocess
import sys
from fractions import Fraction
from itertools import product
from math import lgamma, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from countwise.kernels.apportion import (
    apportion,
    compare_products,
    floor_share,
    last_ranks,
    random_ranks,
)


def share(values: list[int], m: int, ranks: np.ndarray) -> list[int]:
    out = np.empty(len(values), dtype=np.int64)
    apportion(np.array(values, dtype=np.int64), m, ranks, out)
    return out.tolist()


def unit_by_unit(values: list[int], m: int, ranks: np.ndarray) -> list[int]:
    """The definition: m times, the largest quotient v/(k+1), ties by rank."""
    values = values if any(values) else [1] * len(values)
    counts = [0] * len(values)
    for _ in range(m):
        best = min(
            (i for i, v in enumerate(values) if v),
            key=lambda i: (-Fraction(values[i], counts[i] + 1), int(ranks[i])),
        )
        counts[best] += 1
    return counts


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=8),
    st.integers(0, 60),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)
@settings(max_examples=1500, deadline=None)
def test_units_go_in_the_order_of_quotient_and_rank(
    values: list[int], m: int, key: int, last: bool
) -> None:
    size = len(values)
    ranks = last_ranks(size) if last else random_ranks(np.uint64(key), 0, size)
    assert share(values, m, ranks) == unit_by_unit(values, m, ranks)


@given(st.lists(st.integers(0, 10**15), min_size=2, max_size=30), st.integers(-40, 40))
@settings(max_examples=300, deadline=None)
def test_large_counts_keep_the_optimality_condition(values: list[int], shift: int) -> None:
    """Le Gall 2003: k is a mode iff v_i·k_j ≤ v_j·(k_i+1) for all i ≠ j."""
    total = sum(values)
    if not 0 < total <= 2 * 10**15:
        values = [v // 20 for v in values]
        total = sum(values)
    m = max(total + shift, 0)
    k = share(values, m, last_ranks(len(values)))
    assert sum(k) == m
    if total:
        for i, j in product(range(len(k)), repeat=2):
            assert i == j or values[i] * k[j] <= values[j] * (k[i] + 1)


def test_no_other_point_is_more_probable() -> None:
    """Brute force over all outcomes of small multinomials."""
    rng = np.random.default_rng(4)
    for _ in range(60):
        values = [int(v) for v in rng.integers(0, 9, 3)]
        if not any(values):
            continue
        m = int(rng.integers(1, 12))

        def log_probability(k: tuple[int, ...], values: list[int] = values) -> float:
            if any(n and not v for n, v in zip(k, values, strict=True)):
                return -np.inf
            return sum(n * log(v) - lgamma(n + 1) for n, v in zip(k, values, strict=True) if v)

        points = [k for k in product(range(m + 1), repeat=3) if sum(k) == m]
        best = max(log_probability(k) for k in points)
        chosen = tuple(share(values, m, last_ranks(3)))
        assert log_probability(chosen) == pytest.approx(best, abs=1e-9)


def finucan(v: np.ndarray, m: int) -> np.ndarray:
    """The paper's two loops (Wang & Reiter 2021, section 2.2) in exact fractions."""
    total, size = int(v.sum()), len(v)
    target = [(m + Fraction(size, 2)) * int(x) / total for x in v]
    k = [int(x) for x in target]
    f = [x - n for x, n in zip(target, k, strict=True)]
    while sum(k) < m:
        a = min(range(size), key=lambda i: (1 - f[i]) / (k[i] + 1))
        k[a], f[a] = k[a] + 1, f[a] - 1
    while sum(k) > m:
        a = min((i for i in range(size) if k[i]), key=lambda i: f[i] / k[i])
        k[a], f[a] = k[a] - 1, f[a] + 1
    return np.array(k)


def test_finucans_loops_reach_the_same_point_where_it_is_unique() -> None:
    rng = np.random.default_rng(8)
    for _ in range(200):
        v = rng.integers(1, 10**6, 12)
        m = int(v.sum() * rng.uniform(0.3, 3))
        assert share(v.tolist(), m, last_ranks(12)) == finucan(v, m).tolist()


def test_ties_are_served_by_rank() -> None:
    assert share([5, 5, 5], 14, last_ranks(3)) == [4, 5, 5]
    assert share([5, 5, 5], 14, np.array([0, 1, 2], dtype=np.uint64)) == [5, 5, 4]
    assert share([0, 0, 0], 2, last_ranks(3)) == [0, 1, 1]


def test_wide_products_are_compared_exactly() -> None:
    rng = np.random.default_rng(2)
    for a, b, c, d in rng.integers(0, 2**62, (500, 4)).tolist():
        exact = (a * b > c * d) - (a * b < c * d)
        assert compare_products(a, b, c, d) == exact
        assert compare_products(a, b, b, a) == 0
    for m, v in rng.integers(0, 10**15, (500, 2)).tolist():
        total = v + int(rng.integers(1, 10**15))
        assert floor_share(m, v, total) == m * v // total


def test_random_ranks_are_the_published_generator() -> None:
    """SplitMix64 in plain integers; ranks of a later stretch continue the same sequence."""
    key, mask = 0x71CB6DD3EB6C5963, 2**64 - 1

    def rank(node: int) -> int:
        z = (key + (node + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    assert random_ranks(np.uint64(key), 5, 20).tolist() == [rank(n) for n in range(5, 25)]


def test_kernels_work_where_no_cache_can_be_written() -> None:
    """A service account without a home still gets machine code, kept in memory."""
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "import numpy as np; from countwise.kernels.apportion import apportion, last_ranks\n"
        "out = np.empty(2, np.int64)\n"
        "apportion(np.array([1, 1]), 1, last_ranks(2), out); print(out)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[0 1]", done.stderr
