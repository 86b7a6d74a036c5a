"""Children drawn towards their parent's even share. James & Stein 1961, Efron & Morris 1973.

Children of a parent are taken as normal about its count divided evenly, with one variance for a
whole level. That is little to learn, so it can be learned from few nodes, where richer laws can
not.
"""

from dataclasses import dataclass

import numpy as np

from countwise.adjust.observations import ROUNDING, Observations
from countwise.arrays import FloatArray, IntArray
from countwise.tables.hierarchy import Hierarchy

LOST = 2  # degrees of freedom that estimating the variance takes; James & Stein's n - 2
HALVINGS = 60  # an interval halved so often is narrower than rounding


@dataclass(frozen=True, kw_only=True, eq=False)
class Evenness:
    """How far children are from even shares: their variance about them, and its fit."""

    expected: FloatArray
    fitted: FloatArray
    variance: float
    log_likelihood: float

    def moments(self, seen: Observations) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of each node."""
        kept = self.variance / (self.variance + seen.variances)
        return self.expected + kept * (self.fitted - self.expected), kept * seen.variances


def fit_evenness(
    hierarchy: Hierarchy, level: int, sizes: IntArray, seen: Observations
) -> Evenness | None:
    """The variance at which squared distances are what is expected of them; None of too few nodes.

    Distances are those of the children's least-squares estimates given their parent's count, so
    that each family has one degree of freedom less than children.
    """
    free, first = seen.free, hierarchy.offsets[level - 1][:-1]
    parents = hierarchy.parents(level)
    number = np.add.reduceat(free.astype(np.float64), first)
    left = np.asarray(
        sizes - np.add.reduceat(np.where(free, 0.0, seen.estimates), first), dtype=np.float64
    )
    families = number[parents]
    expected = np.maximum(left, 0.0)[parents] / np.maximum(families, 1.0)
    used = free & (families > 1)
    degrees = used.sum() - (number > 1).sum() - LOST
    if degrees < 1:
        return None
    fitted = seen.estimates + _share_of_gap(seen, left, first)[parents] * seen.variances
    square = (fitted - expected)[used] ** 2
    noise = seen.variances[used]

    def excess(variance: float) -> float:
        return float((square / (variance + noise)).sum() - degrees)

    variance = 0.0
    if excess(0.0) > 0:
        low, high = 0.0, float(square.sum()) + 1.0
        for _ in range(HALVINGS):
            variance = (low + high) / 2
            low, high = (variance, high) if excess(variance) > 0 else (low, variance)
    spread, loose = variance + noise + ROUNDING, 1 - 1 / families[used]
    log_likelihood = -0.5 * float((np.log(2 * np.pi * spread) + square / loose / spread).sum())
    return Evenness(
        expected=expected, fitted=fitted, variance=variance, log_likelihood=log_likelihood
    )


def _share_of_gap(seen: Observations, left: FloatArray, first: IntArray) -> FloatArray:
    """For each parent what its free children lack of what is left for them, by their variance."""
    free = seen.free
    summed = np.add.reduceat(np.where(free, seen.estimates, 0.0), first)
    variance = np.add.reduceat(np.where(free, seen.variances, 0.0), first)
    return np.asarray((left - summed) / np.where(variance > 0, variance, 1.0))
