"""What all else says of every count, each sum of many noises taken as normal.

Messages on a tree with two numbers each, a mean and a variance: least squares in two passes (Hay
et al. 2010), but of every node what the rest says is kept apart from its own noisy count, whose
law is known. A variance of 0 is a count that is known.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

LEAST_VARIANCE = 1e-9  # of noise so narrow that its variance is lost in rounding


class Normal(NamedTuple):
    """A mean and a variance for every node."""

    means: FloatArray
    variances: FloatArray

    def times(self, other: "Normal | None") -> "Normal":
        """Both at once: averages weighted inversely to the variances. None says nothing."""
        if other is None:
            return self
        both = self.variances + other.variances
        share = np.divide(self.variances, both, out=np.zeros_like(both), where=both > 0.0)
        means = self.means + share * (other.means - self.means)
        return Normal(means, share * other.variances)


def own_values(measurements: Sequence[Measurements], level: int) -> Normal | None:
    """A level's own noisy counts, several of them averaged."""
    found: Normal | None = None
    for measurement in measurements:
        law = measurement.laws[level]
        own = max(law.variance, LEAST_VARIANCE) if law.scale else 0.0
        variances = np.where(measurement.protected(level), own, 0.0)
        found = Normal(measurement.noisy[level].astype(np.float64), variances).times(found)
    return found


def upward(
    hierarchy: Hierarchy, own: Mapping[int, Normal], *, first: int = 0
) -> tuple[dict[int, Normal], dict[int, Normal]]:
    """What is known of nodes from their subtrees with and without their own values.

    From the cells up to the level `first`; the second has no cells.
    """
    last = len(hierarchy.sizes) - 1
    ups, below = {last: own[last]}, {}
    for level in range(last - 1, first - 1, -1):
        starts = hierarchy.offsets[level][:-1]
        sums = Normal(*(np.add.reduceat(each, starts) for each in ups[level + 1]))
        below[level] = sums
        ups[level] = own[level].times(sums)
    return ups, below


def downward(
    hierarchy: Hierarchy,
    own: Mapping[int, Normal],
    ups: Mapping[int, Normal],
    below: Mapping[int, Normal],
    above: Normal | None,
    *,
    first: int = 0,
) -> dict[int, Normal | None]:
    """What the rest of the tree, nothing of the subtree, says about nodes from `first` down."""
    found = {first: above}
    for level in range(first, len(hierarchy.sizes) - 1):
        above, sums, part = own[level].times(found[level]), below[level], ups[level + 1]
        size = np.diff(hierarchy.offsets[level])
        means = np.repeat(above.means - sums.means, size) + part.means
        variances = np.repeat(above.variances + sums.variances, size) - part.variances
        found[level + 1] = Normal(means, np.maximum(variances, 0.0))
    return found


def rests(hierarchy: Hierarchy, own: Mapping[int, Normal]) -> list[Normal]:
    """For the nodes of every level, what all but their own values say."""
    ups, below = upward(hierarchy, own)
    above = downward(hierarchy, own, ups, below, None)
    return [beside(below.get(level), above[level]) for level in range(len(hierarchy.sizes))]


def beside(below: Normal | None, above: Normal | None) -> Normal:
    """What the two sides of a node say together; a tree has at least two levels."""
    if below is None:
        assert above is not None
        return above
    return below.times(above)
