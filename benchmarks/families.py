"""Children within their parents: those of parent i stand at `offsets[i]:offsets[i+1]`."""

import numpy as np


def owners(offsets: np.ndarray) -> np.ndarray:
    """The parent of every child."""
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The sum of every parent's children."""
    return np.add.reduceat(values, offsets[:-1])


def nearest(
    wanted: np.ndarray, variances: np.ndarray, totals: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """The x ≥ 0 of least Σ (x - wanted)²/variance that adds up to each parent's total.

    x = max(0, wanted + variance·λ) for one λ a parent, and the sum over its children is piecewise
    linear in λ with a corner at -wanted/variance of each: the corners are sorted and the last one
    below the total is where λ starts from.
    """
    parents = owners(offsets)
    corners = -wanted / variances
    order = np.lexsort((corners, parents))
    corner, slope = corners[order], running(variances[order], offsets)
    steps = np.diff(corner, prepend=0.0)
    steps[offsets[:-1]] = 0.0
    before = np.concatenate([[0.0], slope[:-1]])
    reached = running(steps * before, offsets)
    below = sums((reached <= totals[parents]).astype(np.int64), offsets)
    last = offsets[:-1] + np.maximum(below, 1) - 1
    multiplier = corner[last] + (totals - reached[last]) / slope[last]
    return np.maximum(0.0, wanted + variances * multiplier[parents])


def running(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Sums from the first child of a parent up to each."""
    whole = np.concatenate([[0.0], np.cumsum(values)])
    return whole[1:] - whole[offsets[:-1]][owners(offsets)]


def rounded(
    shares: np.ndarray, totals: np.ndarray, offsets: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """Whole numbers that add up to the totals: the rest goes to the largest remainders.

    Noisy counts are integers, so a projection leaves equal remainders: a solver's last digits must
    not decide who gets the rest, so they are dropped and lots are drawn.
    """
    shares, parents = np.round(shares, 5), owners(offsets)
    counts = np.floor(shares).astype(np.int64)
    order = np.lexsort((rng.random(len(shares)), counts - shares, parents))
    rank = np.empty(len(shares), dtype=np.int64)
    rank[order] = np.arange(len(shares)) - offsets[:-1][parents]
    return counts + (rank < (totals - sums(counts, offsets))[parents])
