"""Cells where nobody can be, and what knowing them does to least squares.

docs/explain/crossed-least-squares.md, section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, FloatArray
from countwise.errors import PlanError
from countwise.margins.measurement import Measurement
from countwise.margins.onepass import NoisyCounts
from countwise.tables.workload import Margin, Workload


def possible_cells(workload: Workload, measurements: Sequence[Measurement]) -> BoolArray | None:
    """The cells that are in no exact count of a margin with noise, None if that is all of them."""
    possible: BoolArray | None = None
    for each in measurements:
        if each.exact is None or not each.exact.any() or each.exact.all():
            continue
        if each.noisy[each.exact].any():
            raise PlanError(
                f"table {workload.name(each.margin)} has counts with noise and exact counts that "
                "are not 0. To fix, keep all of its counts exact or none."
            )
        free = workload.spread((~each.exact).astype(np.int64), each.margin) > 0
        possible = free if possible is None else possible & free
    return possible


@dataclass(frozen=True, kw_only=True, eq=False)
class Kept:
    """Tables that are 0 where nobody can be, and whose sums to a margin do not change."""

    workload: Workload
    possible: BoolArray
    margin: Margin | None

    def project(self, cells: FloatArray) -> FloatArray:
        """The nearest table whose sums to the margin are 0."""
        free = np.where(self.possible, cells, 0.0)
        if self.margin is None:
            return free
        return free - self._divided(self.workload.sums(free, self.margin), self.margin)

    def begin(self, cells: FloatArray, counts: Mapping[Margin, NoisyCounts]) -> FloatArray:
        """The nearest table whose sums to the margin are the counts."""
        free = np.where(self.possible, cells, 0.0)
        if self.margin is None:
            return free
        missing = counts[self.margin] - self.workload.sums(free, self.margin)
        return free + self._divided(missing.astype(np.float64), self.margin)

    def _divided(self, sums: FloatArray, margin: Margin) -> FloatArray:
        room = self.workload.sums(self.possible.astype(np.int64), margin)
        shares = self.workload.spread(sums / np.maximum(room, 1), margin)
        return np.where(self.possible, shares, 0.0)


def direct_variance(
    workload: Workload, possible: BoolArray, noise: Mapping[Margin, float], margin: Margin
) -> FloatArray:
    """Variance of the average of all sums of noisy counts of one margin that are the count itself.

    A count is a sum of counts of another margin where none of these has possible cells outside it.
    No best estimate is worse than this average. 0 where nobody can be.
    """
    cells = possible.astype(np.int64)
    precision: FloatArray = np.zeros(workload.shape_of(margin))
    for other, variance in noise.items():
        both = Margin(tuple(map(max, margin.levels, other.levels)))
        pieces = np.minimum(workload.sums(cells, both), 1)
        alone = (workload.sums(pieces, other, of=both) == 1).astype(np.int64)
        needed = workload.sums(pieces, margin, of=both)
        inside = workload.sums(pieces * workload.spread(alone, other, to=both), margin, of=both)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = np.where((inside == needed) & (needed > 0), 1 / (variance * needed), 0.0)
        precision += own
    live = workload.sums(cells, margin) > 0
    with np.errstate(divide="ignore"):
        return np.where(live, 1 / precision, 0.0)
