"""The noise of a level's nodes, which may differ from node to node."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import Exact, IntegerLaw
from countwise.tables.measurements import Measurements

Answer = Callable[[IntegerLaw, Any], Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Noise:
    """Node i of a level has the law ``laws[which[i]]``."""

    laws: tuple[IntegerLaw, ...]
    which: IntArray

    def logpmf(self, owners: IntArray, k: IntArray) -> FloatArray:
        """log P(Z = k), each entry under the law of its owner."""
        return self._each(owners, lambda law, at: law.logpmf(k[at]))

    def log_at_most(self, owners: IntArray, k: IntArray) -> FloatArray:
        """log P(Z ≤ k), -inf where it is zero."""
        with np.errstate(divide="ignore"):
            return self._each(owners, lambda law, at: np.log(law.cdf(k[at])))

    def between(self, owners: IntArray, low: IntArray, high: IntArray) -> FloatArray:
        """P(low ≤ Z ≤ high), as a difference of the smaller tails so that few digits cancel."""
        return self._each(owners, lambda law, at: between(law, low[at], high[at]))

    def reach(self, depth: FloatArray) -> IntArray:
        """For each node the smallest r with P(Z = r) ≤ exp(-depth)·P(Z = 0)."""
        if len(self.laws) == 1 and (depth == depth[0]).all():
            return np.full(len(depth), reach(self.laws[0], float(depth[0])))
        result = np.empty(len(depth), np.int64)
        for kind, law in enumerate(self.laws):
            for value in np.unique(depth[self.which == kind]):
                result[(self.which == kind) & (depth == value)] = reach(law, float(value))
        return result

    def variances(self) -> FloatArray:
        """The variance of every node's noise."""
        return np.array([law.variance for law in self.laws])[self.which]

    def part(self, nodes: slice) -> "Noise":
        """The noise of some of the nodes."""
        return Noise(laws=self.laws, which=self.which[nodes])

    def _each(self, owners: IntArray, answer: Answer) -> FloatArray:
        if len(self.laws) == 1:
            return np.asarray(answer(self.laws[0], slice(None)), np.float64)
        kinds = self.which[owners]
        result = np.empty(len(owners))
        for kind, law in enumerate(self.laws):
            at = np.flatnonzero(kinds == kind)
            if len(at):
                result[at] = answer(law, at)
        return result


def same_noise(law: IntegerLaw, nodes: int) -> Noise:
    """One law for all nodes."""
    return Noise(laws=(law,), which=np.zeros(nodes, np.int64))


def node_noise(measured: Measurements) -> tuple[Noise, ...]:
    """The noise of every level's nodes: the level's law, and none where a count is exact."""
    return tuple(
        same_noise(law, size)
        if measured.exact is None
        else Noise(laws=(law, Exact()), which=measured.exact[level].astype(np.int64))
        for level, (law, size) in enumerate(
            zip(measured.laws, measured.hierarchy.sizes, strict=True)
        )
    )


def mixed_noise(laws: Sequence[IntegerLaw]) -> Noise:
    """A law for each node."""
    kinds = tuple(dict.fromkeys(laws))
    return Noise(laws=kinds, which=np.array([kinds.index(law) for law in laws]))


@lru_cache(maxsize=256)
def reach(law: IntegerLaw, depth: float) -> int:
    """The smallest r ≥ 0 with P(Z = r) ≤ exp(-depth)·P(Z = 0); 0 for a count without noise."""
    if law.variance == 0.0:
        return 0
    peak, low, high = float(law.logpmf(0)), 0, 1
    while float(law.logpmf(high)) > peak - depth:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if float(law.logpmf(middle)) > peak - depth:
            low = middle
        else:
            high = middle
    return high


def between(law: IntegerLaw, low: IntArray, high: IntArray) -> FloatArray:
    """P(low ≤ Z ≤ high), as a difference of the smaller tails so that few digits cancel."""
    right = low + high > 0  # mirrored, so that both ends are in the lower tail
    upper, below = np.where(right, -low, high), np.where(right, -high - 1, low - 1)
    return np.asarray(np.maximum(law.cdf(upper) - law.cdf(below), 0.0))
