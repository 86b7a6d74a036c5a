"""Least squares in one pass: parts of the axes that cross the spine, each fitted along it.

docs/explain/crossed-least-squares.md, section 2.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.margins.condensed import fit_tree
from countwise.margins.variances import Variances
from countwise.tables.workload import Margin

Key = tuple[int, bool]  # a level of the spine, and whether what is meant is known exactly
NoisyCounts = IntArray | FloatArray


def gathered(accuracy: Variances, counts: Mapping[Margin, NoisyCounts]) -> dict[Key, FloatArray]:
    """What the margins say together at each level of the spine (the first axis) of every cell.

    Noisy counts are added up by their precision, the right side of the normal equations; counts
    known exactly are added up as means over the leaves of the axes, whose parts are those of the
    true cells.
    """
    crossed, totals = accuracy.crossing, dict[Key, FloatArray]()
    for margin, each in counts.items():
        level, _ = crossed.split(margin)
        variance = accuracy.noise[margin]
        values = each / variance if variance else each / crossed.leaves(margin)
        values = crossed.workload.spread(values, margin, to=crossed.finest_at(level))
        values = np.moveaxis(values, crossed.spine, 0)
        key = level, variance == 0
        if key in totals:
            totals[key] += values
        else:
            totals[key] = np.array(values, order="C")
    return totals


def right_side(accuracy: Variances, totals: Mapping[Key, FloatArray]) -> FloatArray:
    """The right side of the normal equations of the margins with noise, at every cell."""
    crossed = accuracy.crossing
    right = np.zeros(crossed.workload.shape)
    for (level, exact), each in totals.items():
        if not exact:
            values = np.moveaxis(each, 0, crossed.spine)
            right += crossed.workload.spread(values, crossed.finest_at(level))
    return right


def solution(accuracy: Variances, totals: Mapping[Key, FloatArray]) -> FloatArray:
    """The cells that solve the normal equations whose right side these totals are.

    Of those that do, the ones of least norm. Exact where the variances are.
    """
    precisions: dict[Key, FloatArray] = {}
    for level, exact in totals:
        precisions[level, exact] = (accuracy.known if exact else accuracy.measured)[level]
    return _Pass(accuracy=accuracy, precisions=precisions).cells(totals)


def nearly_inverse(accuracy: Variances, cells: FloatArray) -> FloatArray:
    """The same from a right side that is given at the cells.

    Each combination of parts is handed to the finest level of the spine that measures it: below
    that the right side of such equations is even. Sums known exactly are left as they are.
    """
    crossed, measured = accuracy.crossing, accuracy.measured
    totals, precisions = dict[Key, FloatArray](), dict[Key, FloatArray]()
    finer = np.zeros(measured.shape[1:], dtype=np.bool_)
    for level in range(len(measured) - 1, -1, -1):
        own = np.where(finer | (accuracy.known[level] > 0), 0.0, measured[level])
        finer |= measured[level] > 0
        if own.any():
            precisions[level, False] = own
            sums = crossed.workload.sums(cells, crossed.finest_at(level))
            leaves = crossed.tree.leaves[level][crossed.tree.classes[level]]
            values = np.moveaxis(sums, crossed.spine, 0)
            totals[level, False] = values / leaves.reshape(-1, *(1 for _ in crossed.axes))
    return _Pass(accuracy=accuracy, precisions=precisions).cells(totals)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pass:
    """Splits totals into parts axis by axis, and fits each combination of parts along the spine."""

    accuracy: Variances
    precisions: Mapping[Key, FloatArray]

    def cells(self, totals: Mapping[Key, FloatArray]) -> FloatArray:
        crossed = self.accuracy.crossing
        found = self._along(totals, ())
        found = np.zeros((1,) * (len(crossed.axes) + 1)) if found is None else found
        return np.array(
            np.broadcast_to(np.moveaxis(found, 0, crossed.spine), crossed.workload.shape), order="C"
        )

    def _along(self, totals: Mapping[Key, FloatArray], parts: tuple[int, ...]) -> FloatArray | None:
        """Cells from totals whose first axes are reduced to these parts; None where unmeasured."""
        crossed, place = self.accuracy.crossing, len(parts) + 1
        totals = {key: x for key, x in totals.items() if self.precisions[key][parts].any()}
        if not totals:
            return None
        if len(parts) == len(crossed.axes):
            return self._fitted(totals, parts)
        axis = crossed.axes[len(parts)]
        means = {key: axis.means(each, place) for key, each in totals.items()}
        cells: FloatArray | None = None
        for part, dimension in enumerate(axis.dimensions):
            if cells is not None and part:
                cells = axis.down(cells, part, place)
            if dimension:
                own = {key: axis.part(each, part, place) for key, each in means.items()}
                found = self._along(own, (*parts, part))
                cells = found if cells is None else cells if found is None else cells + found
        return cells

    def _fitted(self, totals: Mapping[Key, FloatArray], parts: tuple[int, ...]) -> FloatArray:
        """The fit along the spine of the averages at its levels, exact ones before noisy ones."""
        crossed, observed = self.accuracy.crossing, list[FloatArray | None]()
        for level in range(len(crossed.variable.sizes)):
            key = level, (level, True) in totals
            value = totals.get(key)
            observed.append(None if value is None else value / self.precisions[key][parts])
        shape = self.accuracy.measured.shape[1:]
        problem = int(np.ravel_multi_index(parts, shape)) if parts else 0
        return fit_tree(crossed.variable, crossed.tree, self.accuracy.weights, problem, observed)
