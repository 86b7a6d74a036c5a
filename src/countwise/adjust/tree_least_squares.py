"""Whole-tree weighted least squares, then non-negative whole numbers level by level.

The method stewards know from the 2020 census (TopDown, Abowd et al. 2022), without its solver: the
tree lets the fit be done in two passes and the projections in one walk each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.tree_walk import Floors, floors_of, ranks, task_bounds
from countwise.arrays import FloatArray, IntArray, UIntArray
from countwise.kernels.projection import project_children
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements
from countwise.threads import run_tasks

SMALLEST_VARIANCE = 1e-9  # stands for none, where a count is measured without noise


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """The best linear unbiased estimates, projected from the root down.

    Upwards, a node's own noisy count and the sum of its children's estimates are averaged with
    weights inverse to their variances. Downwards, the children are moved to the nearest
    non-negative vector that adds up to the parent's count, and rounded by largest remainders.
    """

    name: ClassVar[str] = "least-squares"
    tie_key: int | None

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        estimates, variances = upward(measurements)
        return project_down(floors_of(measurements[0]), estimates, variances, tie_key=self.tie_key)


def project_down(
    room: Floors,
    estimates: Sequence[FloatArray],
    variances: Sequence[FloatArray],
    *,
    tie_key: int | None,
) -> tuple[IntArray, ...]:
    """Whole counts nearest to the estimates, each parent's shared by its children.

    Exact counts stay; the others are projected above the least that these leave them.
    """
    counts = [room.root(np.rint(estimates[0]).astype(np.int64))]
    for level in range(1, len(room.hierarchy.sizes)):
        spread = np.maximum(variances[level], SMALLEST_VARIANCE)
        counts.append(
            share_level(room, level, counts[-1], estimates[level], spread, tie_key=tie_key)
        )
    return tuple(counts)


def share_level(
    room: Floors,
    level: int,
    parents: IntArray,
    estimates: FloatArray,
    variances: FloatArray,
    *,
    tie_key: int | None,
) -> IntArray:
    """Whole counts of a level nearest to the estimates, given those of its parents."""
    order = ranks(room.hierarchy, level, tie_key)
    above = room.above(level, estimates)
    return room.share(level, parents, _project_level, above, variances, order)


def _project_level(
    offsets: IntArray,
    parents: IntArray,
    estimates: FloatArray,
    variances: FloatArray,
    order: UIntArray,
) -> IntArray:
    counts = np.empty(len(estimates), dtype=np.int64)
    bounds = task_bounds(offsets)

    def work(task: int) -> None:
        first, last = bounds[task], bounds[task + 1]
        project_children(offsets, parents, estimates, variances, order, counts, first, last)

    run_tasks(work, len(bounds) - 1)
    return counts


def upward(measurements: Sequence[Measurements]) -> tuple[list[FloatArray], list[FloatArray]]:
    """For every node the best linear estimate from what was measured at and below it."""
    hierarchy = measurements[0].hierarchy
    estimates: list[FloatArray] = []
    variances: list[FloatArray] = []
    for level in reversed(range(len(hierarchy.sizes))):
        estimate, variance = own_estimate(measurements, level)
        if estimates:
            first = hierarchy.offsets[level][:-1]
            below = np.add.reduceat(estimates[-1], first)
            below_variance = np.add.reduceat(variances[-1], first)
            weight = below_variance / (below_variance + variance)
            estimate = weight * estimate + (1 - weight) * below
            variance = weight * variance
        estimates.append(estimate)
        variances.append(variance)
    return estimates[::-1], variances[::-1]


def own_estimate(measurements: Sequence[Measurements], level: int) -> tuple[FloatArray, FloatArray]:
    """The average of a level's own noisy counts, weighted inversely to their variances.

    An exact count is the same in all of them.
    """
    weights = [
        1 / max(measurement.laws[level].variance, SMALLEST_VARIANCE) for measurement in measurements
    ]
    total = sum(weights)
    estimate = sum(
        w / total * each.noisy[level] for w, each in zip(weights, measurements, strict=True)
    )
    protected = measurements[0].protected(level)
    return np.asarray(estimate), np.where(protected, 1 / total, SMALLEST_VARIANCE)


def fitted_variances(hierarchy: Hierarchy, upwards: Sequence[FloatArray]) -> list[FloatArray]:
    """Variances of the least-squares estimates, from those of the estimates from below.

    Downwards, a child's estimate is moved by its share of what its parent's has more than the sum
    of the children's. No count decides them.
    """
    fitted = [upwards[0]]
    for level in range(1, len(upwards)):
        own, first = upwards[level], hierarchy.offsets[level - 1][:-1]
        share = own / np.add.reduceat(own, first)[hierarchy.parents(level)]
        fitted.append(own * (1 - share) + share**2 * fitted[-1][hierarchy.parents(level)])
    return fitted
