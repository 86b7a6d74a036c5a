"""Variances of the least-squares estimates of every margin, without data.

docs/explain/crossed-least-squares.md, section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.condensed import Weights, weigh
from countwise.margins.crossing import Crossing, crossing
from countwise.tables.workload import Margin, Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Variances:
    """What measured margins say of all margins, from the variance of the noise of each.

    Exact where at most one variable is a tree that is not balanced. Otherwise the other trees
    that are not balanced count with mean sizes of their categories, and the variances are near.
    """

    crossing: Crossing
    noise: Mapping[Margin, float]

    @property
    def exact(self) -> bool:
        """Whether these are the variances of least squares, not numbers near to them."""
        return self.crossing.exact

    @cached_property
    def measured(self) -> FloatArray:
        """Precision of each combination of parts (last axes) at each level of the spine.

        From the margins with noise.
        """
        return self._sums({q: 1 / each for q, each in self.noise.items() if each > 0})

    @cached_property
    def known(self) -> FloatArray:
        """The same from the margins known exactly, as if their noise had variance 1."""
        return self._sums({q: 1.0 for q, each in self.noise.items() if each == 0})

    def _sums(self, weights: Mapping[Margin, float]) -> FloatArray:
        shape = (len(self.crossing.variable.sizes), *(len(a.gains) for a in self.crossing.axes))
        sums = np.zeros(shape)
        for margin, weight in weights.items():
            level, levels = self.crossing.split(margin)
            sums[level] += weight * self.crossing.gains(levels)
        return sums

    @cached_property
    def weights(self) -> Weights:
        """How the estimates of each combination of parts are averaged along the spine."""
        precisions = np.where(self.known > 0, np.inf, self.measured)
        return weigh(self.crossing.tree, precisions.reshape(len(precisions), -1))

    def variance(self, margin: Margin) -> FloatArray:
        """Variance of each count of a margin, of its shape or length 1 along an axis.

        Infinite where nothing measured determines the count.
        """
        level, levels = self.crossing.split(margin)
        found = self._along_axes(
            level, [a.diagonal(b) for a, b in zip(self.crossing.axes, levels, strict=True)]
        )
        classes = self.crossing.tree.classes[level]
        return np.moveaxis(found[classes] if len(found) > 1 else found, 0, self.crossing.spine)

    def mean_variance(self, margin: Margin) -> float:
        """Mean over the counts of a margin of their variances."""
        level, levels = self.crossing.split(margin)
        pairs = zip(self.crossing.axes, levels, strict=True)
        found = self._along_axes(level, [a.mean_diagonal(b)[:, None] for a, b in pairs])
        nodes = self.crossing.tree.nodes[level]
        return float(nodes @ found.reshape(len(nodes)) / nodes.sum())

    def _along_axes(self, level: int, diagonals: list[FloatArray]) -> FloatArray:
        """Sum over the combinations of parts, for each class of the spine's nodes."""
        found = self.weights.variances[level].reshape(-1, *self.measured.shape[1:])
        found = found[(slice(None), *(slice(len(each)) for each in diagonals))]
        unknown = np.isinf(found)
        return np.where(
            _contract(unknown.astype(np.float64), diagonals) > 0,
            np.inf,
            _contract(np.where(unknown, 0.0, found), diagonals),
        )


def _contract(values: FloatArray, matrices: list[FloatArray]) -> FloatArray:
    """Each axis after the first multiplied by its matrix."""
    for matrix in matrices:
        values = np.tensordot(values, matrix, axes=(1, 0))
    return values


def variances(workload: Workload, noise: Mapping[Margin, float]) -> Variances:
    """Variances of all margins where these margins are measured with noise of these variances.

    A variance of 0 is a margin whose counts are known exactly.
    """
    return Variances(crossing=crossing(workload), noise=dict(noise))
