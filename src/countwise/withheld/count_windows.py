"""How far true counts, and sums of noisy counts, can be from what was released.

From the root down: the root's count is within the reach of its noise, the noisy counts of its
children add up to something within the reach of theirs, and each child's noisy count is its
share of that. All ranges are generous; they only keep the sums finite.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import lambertw

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import Noise
from countwise.tables.hierarchy import Hierarchy
from countwise.withheld.summed_total import TotalMode

DEEPEST = 1500.0  # twice what a float64 can tell from zero: wider windows show nothing new


@dataclass(frozen=True, kw_only=True, eq=False)
class CountWindows:
    """Windows of the true counts of every level, and of Σv below every parent.

    ``ended`` says which windows can not go on above: that of a count without noise, of a child
    that has all of its parent's window, and of a cell at the end of its prior.
    """

    depth: float
    lows: tuple[IntArray, ...]
    highs: tuple[IntArray, ...]
    ended: tuple[BoolArray, ...]
    sums: tuple[tuple[FloatArray, FloatArray], ...]

    def cut_short(self, touched: Sequence[tuple[BoolArray, BoolArray]]) -> bool:
        """Whether mass at the end of a window could have more beyond it."""
        if self.depth >= DEEPEST:
            return False
        return any(
            bool(((low & (lows > 0) & (lows < highs)) | (high & ~ended)).any())
            for (low, high), lows, highs, ended in zip(
                touched, self.lows, self.highs, self.ended, strict=True
            )
        )


class ChildRanges(Protocol):
    """Where the v of every child of a level can be, from the range of Σv below each parent."""

    def __call__(
        self, level: int, least: FloatArray, most: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """The least and the most v of each child."""
        ...


def ranges(
    hierarchy: Hierarchy,
    counts: Sequence[IntArray],
    *,
    noise: Sequence[Noise],
    root: Evidence | TotalMode,
    upper: int | None,
    depth: float,
    shares: ChildRanges,
    reaches: int = 1,
) -> CountWindows:
    """Ranges from the root down; `reaches` noises lie between a true count and its v."""
    low, high = root.window(np.array([depth]))
    lows, highs, ended, sums = [low], [high], [low == high], []
    for level, offsets in enumerate(hierarchy.offsets):
        size, family = np.diff(offsets), counts[level : level + 2]
        least, most = sum_range(
            offsets, noise[level + 1], family, lows[-1], highs[-1], depth, times=reaches
        )
        sums.append((least, most))
        first, last = shares(level, least, most)
        far = reaches * noise[level + 1].reach(np.full(len(family[1]), depth)) + 1
        free, above = np.repeat(family[0] == 0, size), np.repeat(highs[-1], size)
        high = np.where(free, above, np.minimum(np.ceil(last) + far, above)).astype(np.int64)
        low = np.where(free, 0, np.maximum(np.floor(first) - far, 0)).astype(np.int64)
        end = high == above
        if level + 1 == len(hierarchy.offsets) and upper is not None:
            high, end = np.minimum(high, upper), end | (high >= upper)
        lows.append(np.minimum(low, high))
        highs.append(high)
        ended.append(end)
    return CountWindows(
        depth=depth, lows=tuple(lows), highs=tuple(highs), ended=tuple(ended), sums=tuple(sums)
    )


def apportioned_shares(hierarchy: Hierarchy, counts: Sequence[IntArray]) -> ChildRanges:
    """Children with k units of m have v from k·a to (k + 1)·a, with a from Σv/(m+S) to Σv/(m+1)."""

    def shares(level: int, least: FloatArray, most: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, k = np.diff(hierarchy.offsets[level]), counts[level + 1]
        smallest, largest = least / (counts[level] + size), most / (counts[level] + 1)
        first = np.asarray(k * np.repeat(smallest, size), np.float64)
        return first, np.asarray((k + 1) * np.repeat(largest, size), np.float64)

    return shares


def dealt_shares(hierarchy: Hierarchy, counts: Sequence[IntArray], depth: float) -> ChildRanges:
    """At rate u a child with k units has v with weight v^k·e^(-uv), and u·Σv is near m."""

    def shares(level: int, least: FloatArray, most: FloatArray) -> tuple[FloatArray, FloatArray]:
        size, k = np.diff(hierarchy.offsets[level]), counts[level + 1]
        slowest, fastest = rates(counts[level], least, most, depth)
        down, up = gamma_reach(k, depth)
        first = k / np.repeat(fastest, size) * np.exp(-down)
        last = np.where(k > 0, k * np.exp(up), depth) / np.repeat(slowest, size)
        return first, last

    return shares


def rates(
    total: IntArray, least: FloatArray, most: FloatArray, depth: float
) -> tuple[FloatArray, FloatArray]:
    """The lowest and highest u at which u^m·e^(-uΣv) counts, for Σv between least and most."""
    down, up = gamma_reach(total, depth)
    m = np.maximum(total, 1)
    return m / most * np.exp(-down), m / np.maximum(least, 1.0) * np.exp(up)


def gamma_reach(k: IntArray, depth: float) -> tuple[FloatArray, FloatArray]:
    """How far log u can be below and above its peak before u^k·e^(-u) falls by exp(-depth).

    The roots of k·(e^b - 1 - b) = depth, by the two real branches of Lambert's function
    (Corless et al. 1996).
    """
    c = 1.0 + depth / np.maximum(k, 1)
    down = c + lambertw(-np.exp(-c), 0).real
    up = -c - lambertw(-np.exp(-c), -1).real
    return np.asarray(down), np.asarray(up)


def sum_range(
    offsets: IntArray,
    noise: Noise,
    counts: Sequence[IntArray],
    lows: IntArray,
    highs: IntArray,
    depth: float,
    *,
    times: int = 1,
) -> tuple[FloatArray, FloatArray]:
    """The least and the most that the clipped noisy children of each parent add up to.

    A sum of many noises is near normal, so exp(-depth) is reached at √(2·depth) deviations. One
    large noise may come on top, of a child or of the parent; two cost more than either. Clipping
    raises small counts by E max(Z, 0) ≤ sd/2 each. `counts` are those of parents and children.
    """
    variances = times * noise.variances()
    far = times * noise.reach(np.full(len(counts[1]), depth))
    spread = np.sqrt(2.0 * depth * np.add.reduceat(variances, offsets[:-1]))
    spread += np.maximum(np.maximum.reduceat(far, offsets[:-1]) - (highs - counts[0]), 0)
    raised = np.where(counts[1] <= far, 0.5 * np.sqrt(variances), 0.0)
    return (
        np.maximum(lows - spread, 0.0),
        np.asarray(highs + spread + np.add.reduceat(raised, offsets[:-1])),
    )
