"""The least-squares estimates of all margins from any measured ones.

One pass where at most one variable is a tree that is not balanced and people can be in every cell;
else conjugate gradients from there. docs/explain/crossed-least-squares.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countwise.arrays import BoolArray, FloatArray
from countwise.errors import PlanError
from countwise.margins.conjugate import conjugate_gradients, normal_equations
from countwise.margins.measurement import Measurement
from countwise.margins.onepass import NoisyCounts, gathered, nearly_inverse, right_side, solution
from countwise.margins.possible import Kept, direct_variance, possible_cells
from countwise.margins.variances import Variances, variances
from countwise.tables.workload import Margin, Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates: real numbers, some of them negative, that add up at every margin.

    What nothing measured determines is shared evenly among the cells, and its variance is infinite.
    `possible` says in which cells people can be, None where in all. `steps` is 0 after one pass.
    """

    workload: Workload
    cells: FloatArray
    variances: Variances
    possible: BoolArray | None = None
    steps: int = 0

    def margin(self, margin: Margin) -> FloatArray:
        """Estimated counts of a margin."""
        return self.workload.sums(self.cells, margin)

    def variance(self, margin: Margin) -> FloatArray:
        """Variance of each estimated count, of the margin's shape or length 1 along an axis.

        At most this where some cells are impossible: knowing that takes error away.
        """
        found = self.variances.variance(margin)
        if self.possible is None:
            return found
        return np.minimum(
            found, direct_variance(self.workload, self.possible, self.variances.noise, margin)
        )


def fit(workload: Workload, measurements: Sequence[Measurement]) -> Estimates:
    """The estimates that are nearest to all noisy counts, each by the variance of its noise.

    Exact counts of a margin with noise must be 0: cells where nobody can be.
    """
    counts, noise = averaged(measurements)
    accuracy = variances(workload, noise)
    possible = possible_cells(workload, measurements)
    if accuracy.crossing.exact and possible is None:
        cells = solution(accuracy, gathered(accuracy, counts))
        return Estimates(workload=workload, cells=cells, variances=accuracy)
    cells, steps = _in_steps(accuracy, counts, possible)
    return Estimates(
        workload=workload, cells=cells, variances=accuracy, possible=possible, steps=steps
    )


def _in_steps(
    accuracy: Variances, counts: Mapping[Margin, NoisyCounts], possible: BoolArray | None
) -> tuple[FloatArray, int]:
    """Conjugate gradients from the one-pass solution, among the cells where people can be.

    Sums known exactly are kept by the start, and no step changes them.
    """
    workload, totals = accuracy.crossing.workload, gathered(accuracy, counts)
    right, start = right_side(accuracy, totals), solution(accuracy, totals)
    noisy = {margin: each for margin, each in accuracy.noise.items() if each > 0}
    operator = normal_equations(workload, {margin: 1 / each for margin, each in noisy.items()})
    if possible is None:
        return conjugate_gradients(
            operator, lambda residual: nearly_inverse(accuracy, residual), right, start
        )
    kept = Kept(workload=workload, possible=possible, margin=_finest_known(accuracy))
    unconstrained = variances(workload, noisy)
    return conjugate_gradients(
        lambda cells: kept.project(operator(cells)),
        lambda residual: kept.project(nearly_inverse(unconstrained, residual)),
        kept.project(right),
        kept.begin(start, counts),
    )


def _finest_known(accuracy: Variances) -> Margin | None:
    """The margin known exactly whose sums are all others known exactly; None where there is none.

    Others are sums of it, so it is enough to keep its counts.
    """
    known = [margin for margin, each in accuracy.noise.items() if each == 0]
    for margin in known:
        if all(margin.covers(each) for each in known):
            return margin
    if known:
        names = ", ".join(map(accuracy.crossing.workload.name, known))
        raise PlanError(
            f"tables {names} are exact, none refines the others, and there are cells where nobody "
            "can be. To fix, keep exact counts of one of them, or list no impossible cells."
        )
    return None


def averaged(
    measurements: Sequence[Measurement],
) -> tuple[dict[Margin, NoisyCounts], dict[Margin, float]]:
    """Counts of each measured margin, and the variance of their noise: 0 where there is none.

    A margin measured more than once has the average by precision, or the exact counts.
    """
    counts, noise = dict[Margin, Any](), dict[Margin, float]()
    for each in measurements:
        margin, variance = each.margin, each.variance
        if margin not in noise or variance == 0:
            counts[margin], noise[margin] = each.noisy, variance
        elif noise[margin] > 0:
            weight = noise[margin] / (noise[margin] + variance)
            counts[margin] = counts[margin] + weight * (each.noisy - counts[margin])
            noise[margin] *= 1 - weight
    return counts, noise
