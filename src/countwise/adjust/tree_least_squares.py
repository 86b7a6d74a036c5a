"""Whole-tree weighted least squares, then non-negative whole numbers level by level.

The method stewards know from the 2020 census (TopDown, Abowd et al. 2022), without its solver: the
tree lets the fit be done in two passes and the projections in one walk each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.protocol import Gathered, SubtreeAdjustment
from countwise.adjust.tree_walk import Piece, task_bounds, whole_tree
from countwise.arrays import FloatArray, IntArray, UIntArray
from countwise.kernels.projection import project_children
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements
from countwise.threads import run_tasks

SMALLEST_VARIANCE = 1e-9  # stands for none, where a count is measured without noise


Estimates = tuple[list[FloatArray], list[FloatArray]]
"""For some levels, outer to inner, the estimate of every node and its variance."""


@dataclass(frozen=True, kw_only=True)
class LeastSquares(SubtreeAdjustment):
    """The best linear unbiased estimates, projected from the root down.

    Upwards, a node's own noisy count and the sum of its children's estimates are averaged with
    weights inverse to their variances. Downwards, the children are moved to the nearest
    non-negative vector that adds up to the parent's count, and rounded by largest remainders.
    """

    name: ClassVar[str] = "least-squares"
    tie_key: int | None

    def up(self, piece: Piece) -> Gathered:
        """For each node at the cut, the sum of its children's estimates, and its variance."""
        estimates, variances = upward(piece.measurements, piece.below)
        return summed(piece.hierarchy, piece.depth, (estimates[0], variances[0]))

    def across(
        self, measurements: Sequence[Measurements], gathered: Gathered
    ) -> tuple[IntArray, ...]:
        """The estimates of the top, those of its last nodes with what was gathered of them."""
        below = None
        if gathered:
            below = (np.asarray(gathered[0], np.float64), np.asarray(gathered[1], np.float64))
        estimates = upward(measurements, below=below)
        return project_down(whole_tree(measurements), estimates, tie_key=self.tie_key)

    def down(self, piece: Piece, counts: IntArray) -> tuple[IntArray, ...]:
        """The nearest children that add up, level by level."""
        estimates = upward(piece.measurements, piece.below)
        return share_down(piece, counts, estimates, tie_key=self.tie_key)


def project_down(tree: Piece, estimates: Estimates, *, tie_key: int | None) -> tuple[IntArray, ...]:
    """Whole counts nearest to the estimates of a whole tree, each parent's shared by its children.

    Exact counts stay; the others are projected above the least that these leave them.
    """
    root = tree.room.root(np.rint(estimates[0][0]).astype(np.int64))
    below = (estimates[0][1:], estimates[1][1:])
    return (root, *share_down(tree, root, below, tie_key=tie_key))


def share_down(
    piece: Piece, counts: IntArray, estimates: Estimates, *, tie_key: int | None
) -> tuple[IntArray, ...]:
    """The same below a cut whose counts are known, with the estimates of the levels below it."""
    found = [counts]
    for level, estimate, variance in zip(piece.below, *estimates, strict=True):
        spread = np.maximum(variance, SMALLEST_VARIANCE)
        found.append(share_level(piece, level, found[-1], estimate, spread, tie_key=tie_key))
    return tuple(found[1:])


def share_level(
    piece: Piece,
    level: int,
    parents: IntArray,
    estimates: FloatArray,
    variances: FloatArray,
    *,
    tie_key: int | None,
) -> IntArray:
    """Whole counts of a level nearest to the estimates, given those of its parents."""
    room, order = piece.room, piece.ranks(level, tie_key)
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


def upward(
    measurements: Sequence[Measurements],
    levels: range | None = None,
    *,
    below: tuple[FloatArray, FloatArray] | None = None,
) -> Estimates:
    """For every node the best linear estimate from what was measured at and below it.

    Of some levels if not all; `below` has what the innermost of them sum up, where something does.
    """
    hierarchy = measurements[0].hierarchy
    estimates: list[FloatArray] = []
    variances: list[FloatArray] = []
    for level in reversed(range(len(hierarchy.sizes)) if levels is None else levels):
        estimate, variance = own_estimate(measurements, level)
        if estimates:
            below = summed(hierarchy, level, (estimates[-1], variances[-1]))
        if below is not None:
            weight = below[1] / (below[1] + variance)
            estimate = weight * estimate + (1 - weight) * below[0]
            variance = weight * variance
        estimates.append(estimate)
        variances.append(variance)
    return estimates[::-1], variances[::-1]


def summed(
    hierarchy: Hierarchy, level: int, children: tuple[FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """For each node of a level, the sum of its children's estimates, and its variance."""
    first = hierarchy.offsets[level][:-1]
    return np.add.reduceat(children[0], first), np.add.reduceat(children[1], first)


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
