"""Variances of the least-squares estimates of every margin, without data.

docs/explain/crossed-least-squares.md, section 3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import BoolArray, FloatArray
from countwise.margins.blocks import BlockVariances
from countwise.margins.condensed import Weights, weigh
from countwise.margins.crossing import Crossing, crossing
from countwise.tables.workload import Margin, Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class Variances:
    """What measured margins say of all margins, from the variance of the noise of each.

    Exact where at most one variable is a tree that is not balanced, and where the blocks of such
    trees are small, as those of classifications are. Otherwise the other trees count with mean
    sizes of their categories, and the variances are only of the right order.
    """

    crossing: Crossing
    noise: Mapping[Margin, float]

    @property
    def exact(self) -> bool:
        """Whether these are the variances of least squares, not numbers near to them."""
        return self.crossing.exact or self._blocks is not None

    @cached_property
    def _blocks(self) -> BlockVariances | None:
        if self.crossing.exact:
            return None
        blocks = BlockVariances(crossing=self.crossing, noise=self.noise)
        return blocks if blocks.affordable else None

    @cached_property
    def measured(self) -> FloatArray:
        """Precision of each combination of parts (last axes) at each level of the spine.

        From the margins with noise.
        """
        sums = np.zeros(self._shape)
        for margin, variance in self.noise.items():
            if variance > 0:
                level, levels = self.crossing.split(margin)
                sums[level] += self.crossing.gains(levels) / variance
        return sums

    @cached_property
    def known(self) -> FloatArray:
        """How many margins known exactly have each combination of parts, in the same places."""
        sums = np.zeros(self._shape)
        for margin, variance in self.noise.items():
            if variance == 0:
                level, levels = self.crossing.split(margin)
                sums[level] += self.crossing.gains(levels) > 0
        return sums

    @property
    def _shape(self) -> tuple[int, ...]:
        return len(self.crossing.variable.sizes), *(len(axis.gains) for axis in self.crossing.axes)

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
        found = np.moveaxis(found[classes] if len(found) > 1 else found, 0, self.crossing.spine)
        if self._blocks is None:
            return found
        return np.where(_settled(found), found, self._blocks.variance(margin))

    def mean_variance(self, margin: Margin) -> float:
        """Mean over the counts of a margin of their variances."""
        level, levels = self.crossing.split(margin)
        pairs = zip(self.crossing.axes, levels, strict=True)
        found = self._along_axes(level, [a.mean_diagonal(b)[:, None] for a, b in pairs])
        nodes = self.crossing.tree.nodes[level]
        mean = nodes @ found.reshape(len(nodes)) / nodes.sum()
        if self._blocks is None or _settled(mean):
            return float(mean)
        return self._blocks.mean_variance(margin)

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


def _settled(variances: FloatArray) -> BoolArray:
    """Where nothing or everything is known, which mean sizes say without error."""
    return np.asarray(np.isinf(variances) | (variances == 0))


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
