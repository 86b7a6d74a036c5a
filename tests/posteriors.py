"""Posteriors by brute force: every combination of true counts and of noisy counts."""

from collections.abc import Sequence

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.apportion import apportion_children
from countwise.noise.laws import IntegerLaw


def clipped_chances(law: IntegerLaw, tops: int, reach: int) -> FloatArray:
    """P(max(N + Z, 0) = v) for N = 0..tops (rows) and v = 0..tops + reach."""
    true, v = np.arange(tops + 1)[:, None], np.arange(tops + reach + 1)
    return np.where(v == 0, law.cdf(-true), law.pmf(v - true))


def leads_to(k: Sequence[int], rank: IntArray, widths: Sequence[int]) -> FloatArray:
    """1 for every v in the grid 0..width-1 that is apportioned to k, else 0."""
    grid = np.stack(np.meshgrid(*map(np.arange, widths), indexing="ij"), axis=-1)
    rows = grid.reshape(-1, len(k))
    counts = np.empty(rows.size, np.int64)
    offsets = np.arange(0, rows.size + 1, len(k))
    parents = np.full(len(rows), sum(k))
    order = np.tile(rank, len(rows)).astype(np.uint64)
    apportion_children(offsets, parents, rows.ravel(), order, counts, 0, len(rows))
    same = (counts.reshape(rows.shape) == np.array(k)).all(axis=1)
    return same.reshape(widths).astype(np.float64)


def mode_likelihood(
    k: Sequence[int], rank: IntArray, laws: Sequence[IntegerLaw], *, tops: int, reach: int
) -> FloatArray:
    """P(k | N) for every N in 0..tops, one axis a component."""
    chances = [clipped_chances(law, tops, reach) for law in laws]
    found = leads_to(k, rank, [each.shape[1] for each in chances])
    for each in chances:
        found = np.tensordot(found, each, axes=([0], [1]))
    return found


def sum_grid(sizes: Sequence[int]) -> IntArray:
    """N_1 + … + N_S at every point of a grid."""
    return np.sum(np.meshgrid(*map(np.arange, sizes), indexing="ij"), axis=0)
