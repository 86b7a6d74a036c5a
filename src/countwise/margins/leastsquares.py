"""The least-squares estimates of all margins from any measured ones.

One pass where at most one variable is a tree that is not balanced, along that tree for each
combination of parts of the others. docs/explain/crossed-least-squares.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray
from countwise.errors import PlanError
from countwise.margins.condensed import fit_tree
from countwise.margins.crossing import Crossing, crossing
from countwise.margins.measurement import Measurement
from countwise.margins.variances import Variances, variances
from countwise.tables.workload import Margin, Workload

Totals = dict[tuple[int, bool], FloatArray]  # by level of the spine, and whether known exactly


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimates:
    """Least-squares estimates: real numbers, some of them negative, that add up at every margin.

    What nothing measured determines is shared evenly among the cells; its variance is infinite.
    """

    workload: Workload
    cells: FloatArray
    variances: Variances

    def margin(self, margin: Margin) -> FloatArray:
        """Estimated counts of a margin."""
        return self.workload.sums(self.cells, margin)

    def variance(self, margin: Margin) -> FloatArray:
        """Variance of each estimated count, of the margin's shape or length 1 along an axis."""
        return self.variances.variance(margin)


def fit(workload: Workload, measurements: Sequence[Measurement]) -> Estimates:
    """The estimates that are nearest to all noisy counts, each by the variance of its noise."""
    noise = noise_of(workload, measurements)
    crossed = crossing(workload)
    accuracy = variances(workload, noise)
    return Estimates(
        workload=workload,
        cells=solve(accuracy, gathered(crossed, measurements)),
        variances=accuracy,
    )


def noise_of(workload: Workload, measurements: Sequence[Measurement]) -> dict[Margin, float]:
    """Variance of the noise of each measured margin, that of the average where it is repeated."""
    noise: dict[Margin, float] = {}
    for each in measurements:
        variance = _variance(workload, each)
        before = noise.get(each.margin, np.inf)
        noise[each.margin] = 0.0 if 0.0 in (variance, before) else 1 / (1 / before + 1 / variance)
    return noise


def _variance(workload: Workload, measurement: Measurement) -> float:
    """Variance of the noise of a measurement: 0 where no count of it has noise."""
    exact = measurement.exact
    if exact is None or not exact.any():
        return measurement.law.variance
    if exact.all():
        return 0.0
    raise PlanError(
        f"table {workload.name(measurement.margin)} is exact at some counts and noisy at others. "
        "To fix, keep all of its counts exact or none."
    )


def gathered(crossed: Crossing, measurements: Sequence[Measurement]) -> Totals:
    """For each level of the spine, noisy counts times precision, summed as those of every cell."""
    workload, totals = crossed.workload, Totals()
    for each in measurements:
        variance = _variance(workload, each)
        level, _ = crossed.split(each.margin)
        values = each.noisy / variance if variance else each.noisy.astype(np.float64)
        fine = list(workload.finest.levels)
        fine[crossed.spine] = level
        values = workload.spread(values, each.margin, to=Margin(tuple(fine)))
        values = np.moveaxis(values, crossed.spine, 0)
        key = level, variance == 0
        if key in totals:
            totals[key] += values
        else:
            totals[key] = np.array(values, order="C")
    return totals


def solve(accuracy: Variances, totals: Totals) -> FloatArray:
    """The cells that solve the normal equations whose right side these totals are."""
    crossed = accuracy.crossing
    cells = _Solution(accuracy=accuracy).along(totals, ())
    cells = np.zeros((1,) * len(crossed.workload.shape)) if cells is None else cells
    cells = np.broadcast_to(np.moveaxis(cells, 0, crossed.spine), crossed.workload.shape)
    return np.ascontiguousarray(cells)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solution:
    """Splits totals into parts axis by axis, and fits each combination of parts along the spine."""

    accuracy: Variances

    def along(self, totals: Totals, parts: tuple[int, ...]) -> FloatArray | None:
        """Cells from totals whose first axes are reduced to these parts; None where unmeasured."""
        crossed = self.accuracy.crossing
        totals = {key: each for key, each in totals.items() if self._has(key, parts)}
        if not totals:
            return None
        if len(parts) == len(crossed.axes):
            return self._fitted(totals, parts)
        axis, place = crossed.axes[len(parts)], len(parts) + 1
        means = {key: axis.means(each, place) for key, each in totals.items()}
        cells: FloatArray | None = None
        for part, dimension in enumerate(axis.dimensions):
            if cells is not None and part:
                cells = axis.down(cells, part, place)
            if dimension == 0:
                continue
            own = {key: axis.part(each, part, place) for key, each in means.items()}
            found = self.along(own, (*parts, part))
            if found is not None:
                cells = found if cells is None else cells + found
        return cells

    def _has(self, key: tuple[int, bool], parts: tuple[int, ...]) -> bool:
        """Whether a margin that these totals came from has the parts."""
        level, exact = key
        source = self.accuracy.known if exact else self.accuracy.measured
        return bool(source[level][parts].any())

    def _fitted(self, totals: Totals, parts: tuple[int, ...]) -> FloatArray:
        """The fit along the spine, from the average of what each of its levels has of the parts."""
        crossed, observed = self.accuracy.crossing, list[FloatArray | None]()
        for level in range(len(crossed.variable.sizes)):
            exact = (level, True) in totals
            source = self.accuracy.known if exact else self.accuracy.measured
            value = totals.get((level, exact))
            observed.append(None if value is None else value / source[level][parts])
        problem = int(np.ravel_multi_index(parts, self.accuracy.known.shape[1:])) if parts else 0
        return fit_tree(crossed.variable, crossed.tree, self.accuracy.weights, problem, observed)
