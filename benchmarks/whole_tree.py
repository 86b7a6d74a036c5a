"""Least squares over a whole tree, without and with the condition that no count is negative."""

from collections.abc import Sequence

import numpy as np

from countwise.tables.measurements import Measurements
from families import nearest, owners, rounded, running, sums


def variances(measured: Measurements) -> list[float]:
    """The variance of the noise of each level."""
    return [law.variance for law in measured.laws]


def from_below(measured: Measurements) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For every node the best linear estimate from itself and all below, with its variance."""
    noise = variances(measured)
    estimates = [measured.noisy[-1].astype(float)]
    spreads = [np.full(len(estimates[0]), noise[-1])]
    for level in reversed(range(len(measured.noisy) - 1)):
        offsets = measured.hierarchy.offsets[level]
        below, spread = sums(estimates[-1], offsets), sums(spreads[-1], offsets)
        precision = 1 / noise[level] + 1 / spread
        estimates.append((measured.noisy[level] / noise[level] + below / spread) / precision)
        spreads.append(1 / precision)
    return estimates[::-1], spreads[::-1]


def down(
    measured: Measurements,
    wanted: Sequence[np.ndarray],
    spreads: Sequence[np.ndarray],
    *,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Whole counts from the root down, each parent's split nearest to what is wanted."""
    counts = [np.maximum(np.rint(wanted[0]), 0).astype(np.int64)]
    for level, offsets in enumerate(measured.hierarchy.offsets, start=1):
        shares = nearest(wanted[level], spreads[level], counts[-1], offsets)
        counts.append(rounded(shares, counts[-1], offsets, rng=rng))
    return counts


def nonnegative(measured: Measurements) -> list[np.ndarray]:
    """The cells x ≥ 0 of least Σ (A x - y)²/v over all nodes, and their sums.

    Exact, in two passes. Let λ be the derivative of half the least cost of a subtree by its sum s.
    A cell has s = max(0, y + vλ). Children of one parent share their λ, so their sums add up, and
    the parent's own term makes λ + (s - y)/v of it: s stays a convex piecewise linear function of
    λ with one corner a cell. The root has λ = 0, and going down λ' = λ - (s - y)/v.
    """
    hierarchy, noise = measured.hierarchy, variances(measured)
    corners, slopes = -measured.noisy[-1] / noise[-1], np.full(hierarchy.cells, noise[-1])
    curves, spans = [(corners, slopes)], [np.arange(hierarchy.cells + 1)]
    for level in reversed(range(len(measured.noisy) - 1)):
        span = spans[-1][hierarchy.offsets[level]]
        corners, slopes = _with_own(
            *curves[-1], span, measured.noisy[level] / noise[level], noise[level]
        )
        curves.append((corners, slopes))
        spans.append(span)
    multipliers = np.zeros(1)
    values: list[np.ndarray] = []
    for level, ((corners, slopes), span) in enumerate(
        zip(reversed(curves), reversed(spans), strict=True)
    ):
        node = owners(span)
        values.append(sums(slopes * np.maximum(0.0, multipliers[node] - corners), span))
        if level < len(measured.noisy) - 1:
            rest = multipliers - (values[-1] - measured.noisy[level]) / noise[level]
            multipliers = rest[owners(hierarchy.offsets[level])]
    return values


def _with_own(
    corners: np.ndarray, slopes: np.ndarray, span: np.ndarray, pull: np.ndarray, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """The curves of children put together by parent, with the parent's own noisy count added."""
    node = owners(span)
    order = np.lexsort((corners, node))
    corner, slope = corners[order], running(slopes[order], span)
    steps = np.diff(corner, prepend=0.0)
    steps[span[:-1]] = 0.0
    reached = running(steps * np.concatenate([[0.0], slope[:-1]]), span)
    steeper = slope / (1 + slope / variance)
    gained = np.diff(steeper, prepend=0.0)
    gained[span[:-1]] = steeper[span[:-1]]
    return corner + reached / variance - pull[node], gained


def nonnegative_whole(measured: Measurements, *, rng: np.random.Generator) -> list[np.ndarray]:
    """The same in whole numbers: the root to the nearest, every other count up or down by lot of
    largest remainders, so that all add up."""
    exact = nonnegative(measured)
    counts = [np.rint(exact[0]).astype(np.int64)]
    for shares, offsets in zip(exact[1:], measured.hierarchy.offsets, strict=True):
        counts.append(rounded(shares, counts[-1], offsets, rng=rng))
    return counts
