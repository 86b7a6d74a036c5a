"""Mean variances of wanted margins as a function of the precisions of measured ones, and slopes.

The same numbers as `variances`, made to be asked thousands of times.
docs/explain/crossed-least-squares.md, section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.condensed import Condensed, weigh
from countwise.margins.crossing import Crossing
from countwise.tables.workload import Margin

LEAST, MOST = 1e-25, 1e25  # stand for the precision of what is not measured, and of what is exact


@dataclass(frozen=True, kw_only=True, eq=False)
class MeanVariances:
    """Mean variances of the wanted margins after least squares over the measured ones."""

    crossing: Crossing
    measured: tuple[Margin, ...]
    wanted: tuple[Margin, ...]

    @cached_property
    def gains(self) -> FloatArray:
        """What each measured margin adds to the precision at each level of the spine (columns)."""
        gains = [self._placed(q, self.crossing.gains) for q in self.measured]
        return np.array(gains).reshape(len(self.measured), -1)

    @cached_property
    def spreads(self) -> FloatArray:
        """What each wanted margin takes of the mean variances at each level of the spine."""
        return np.array([self._placed(q, self._mean_diagonals) for q in self.wanted])

    @property
    def parts(self) -> int:
        """Combinations of parts of the axes."""
        return int(self.spreads.shape[-1])

    def _placed(self, margin: Margin, of_axes: Callable[[Sequence[int]], FloatArray]) -> FloatArray:
        level, levels = self.crossing.split(margin)
        values = of_axes(levels)
        placed = np.zeros((len(self.crossing.variable.sizes), values.size))
        placed[level] = values.reshape(-1)
        return placed

    def _mean_diagonals(self, levels: Sequence[int]) -> FloatArray:
        rows = []
        for axis, level in zip(self.crossing.axes, levels, strict=True):
            found = axis.mean_diagonal(level)
            rows.append(np.pad(found, (0, len(axis.gains) - len(found))))
        return np.asarray(reduce(np.multiply.outer, rows, np.array(1.0)))

    def _at_levels(self, precisions: FloatArray) -> FloatArray:
        """Precision of every combination of parts at each level: an array (batch, level, parts)."""
        sums = precisions @ self.gains
        return np.clip(sums, LEAST, MOST).reshape(len(sums), *self.spreads.shape[1:])

    def __call__(self, precisions: FloatArray) -> FloatArray:
        """Mean variances (columns) for each row of precisions."""
        at_levels = self._at_levels(precisions)
        batch, levels, parts = at_levels.shape
        columns = np.moveaxis(at_levels, 1, 0).reshape(levels, -1)
        found = weigh(self.crossing.tree, columns).variances
        means = np.array(
            [n @ each / n.sum() for n, each in zip(self.crossing.tree.nodes, found, strict=True)]
        )
        means = means.reshape(levels, batch, parts)
        return np.asarray(np.einsum("lbp,qlp->bq", means, self.spreads))

    def slopes(self, precisions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean variances, and their derivatives (rows) by each precision (columns)."""
        at_levels = self._at_levels(precisions[None])[0]
        means, slopes = _means_and_slopes(self.crossing.tree, at_levels)
        by_levels = np.einsum("qlp,lph->qhp", self.spreads, slopes)
        values = np.einsum("qlp,lp->q", self.spreads, means)
        return values, by_levels.reshape(len(self.wanted), -1) @ self.gains.T


def _means_and_slopes(tree: Condensed, precisions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean variance of each level (rows), and its derivatives by the precision of every level.

    The two passes of `weigh`, differentiated step by step.
    """
    levels, parts = precisions.shape
    unit = np.eye(levels)
    variance = np.repeat(1 / precisions[-1:], len(tree.nodes[-1]), axis=0)
    slope = -(variance**2)[..., None] * unit[-1]
    upward, sums = [(variance, slope)], list[tuple[FloatArray, FloatArray]]()
    for level in range(levels - 2, -1, -1):
        below = tree.below(level, variance)
        below_slope = tree.below(level, slope.reshape(len(slope), -1)).reshape(-1, parts, levels)
        variance = 1 / (precisions[level] + 1 / below)
        ratio = (variance / below)[..., None]
        slope = ratio**2 * below_slope - (variance**2)[..., None] * unit[level]
        upward.append((variance, slope))
        sums.append((below, below_slope))
    upward.reverse()
    sums.reverse()
    found = [upward[0]]
    for level in range(1, levels):
        above = tree.parents[level - 1]
        variance, slope = upward[level]
        total, total_slope = (each[above] for each in sums[level - 1])
        parent, parent_slope = (each[above] for each in found[-1])
        share = variance / total
        turn = (slope - share[..., None] * total_slope) / total[..., None]
        fitted = variance * (1 - share) + share**2 * parent
        fitted_slope = (
            slope * (1 - share)[..., None]
            + turn * (2 * share * parent - variance)[..., None]
            + (share**2)[..., None] * parent_slope
        )
        found.append((fitted, fitted_slope))
    nodes = [each / each.sum() for each in tree.nodes]
    means = [np.tensordot(n, v, axes=1) for n, (v, _) in zip(nodes, found, strict=True)]
    slopes = [np.tensordot(n, s, axes=1) for n, (_, s) in zip(nodes, found, strict=True)]
    return np.array(means), np.array(slopes)
