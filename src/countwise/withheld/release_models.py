"""How a release is made from noisy counts, as the Gibbs sampler asks: one count at a time.

The questions are those of `gibbs.Making`: whether noisy counts of a level are unknown, where they
start, and the log probability of the release when one of them, or those of a family, change.
"""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import Noise
from countwise.tables.hierarchy import Hierarchy
from countwise.withheld.summed_total import SummedTotal


class FromNoisyCounts:
    """The adjustment takes the noisy counts as they are, without drawing from them first."""

    def log_noise(self, level: int, law: IntegerLaw, value: IntArray, true: IntArray) -> FloatArray:
        """log P(value | true count)."""
        del level
        return law.logpmf(value - true)

    def renew(self, noisy: list[IntArray], rng: np.random.Generator) -> None:
        """There is no state beside the noisy counts."""

    def fresh(
        self, level: int, law: IntegerLaw, true: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """A draw of the value for each true count."""
        del level
        return true + law.isf(1.0 - rng.random(len(true))) if law.variance else true.copy()


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedNoise(FromNoisyCounts):
    """All noisy counts were published."""

    noisy: tuple[IntArray, ...]
    noise: tuple[Noise, ...]

    def start(self) -> list[IntArray]:
        """As published."""
        return list(self.noisy)

    def moves(self, level: int) -> bool:  # noqa: ARG002
        """No: the noisy counts of every level are known."""
        return False

    def log_given(
        self, noisy: list[IntArray], true: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """Asked only of noisy counts that are unknown, and here none is."""
        raise NotImplementedError

    def log_family(
        self, rows: IntArray, true: list[IntArray], level: int, parent: int
    ) -> FloatArray:
        """Asked only of noisy counts that are unknown, and here none is."""
        raise NotImplementedError

    def log_root(self, noisy: list[IntArray], total: IntArray) -> FloatArray:
        """The root's own noisy count."""
        return self.noise[0].laws[0].logpmf(noisy[0][:, :1] - total)


@dataclass(frozen=True, kw_only=True, eq=False)
class FromRoot(FromNoisyCounts):
    """Children share their parent's released count; `seen` of the root, unless it has a rule."""

    hierarchy: Hierarchy
    counts: tuple[IntArray, ...]
    order: tuple[IntArray, ...]
    noise: tuple[Noise, ...]
    seen: Evidence
    total: SummedTotal | None

    def start(self) -> list[IntArray]:
        """The released counts themselves lead to the release."""
        return [count.copy() for count in self.counts]

    def moves(self, level: int) -> bool:
        """All but the root, whose noisy count is summed out."""
        return level > 0

    def log_root(self, noisy: list[IntArray], total: IntArray) -> FloatArray:
        """P(m | N), and with a summed total P(m | N, Σ of the noisy parts)."""
        if self.total is not None:
            return self.log_summed(noisy[1].sum(axis=1)[:, None], total)
        nodes = np.zeros(total.size, np.int64)
        return self.seen.logs(nodes, total.ravel()).reshape(total.shape)

    def log_given(
        self, noisy: list[IntArray], true: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """log P(counts of the siblings | noisy), the node's own on a grid."""
        logs = self.log_shared(noisy, level, node, grid)
        if level == 1:
            others = noisy[1].sum(axis=1)[:, None] - noisy[1][:, [node]]
            logs = logs + self.log_summed(others + grid, true[0])
        return logs

    def log_family(
        self, rows: IntArray, true: list[IntArray], level: int, parent: int
    ) -> FloatArray:
        """log P(counts of a parent's children | their noisy counts), a row a chain."""
        logs = self.log_whole(np.maximum(rows, 0), level, parent)
        if level == 0:
            logs = logs + self.log_summed(rows.sum(axis=1), true[0][:, 0])
        return logs

    def log_whole(self, v: IntArray, level: int, parent: int) -> FloatArray:
        """log P(counts of the siblings | v), a row a chain."""
        raise NotImplementedError

    def log_shared(
        self, noisy: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """log P(counts of the siblings | v), the node's own v = max(grid, 0)."""
        raise NotImplementedError

    def siblings(self, level: int, node: int) -> tuple[slice, int]:
        """Where the children of a node's parent are, and the released count of that."""
        parent = self.hierarchy.parent(level, node)
        return self.hierarchy.children(level - 1, parent), int(self.counts[level - 1][parent])

    def log_summed(self, sums: IntArray, total: IntArray) -> FloatArray:
        """log P(m | N, Σ of the noisy parts), zero where the parts have no say."""
        if self.total is None:
            return np.zeros(np.broadcast_shapes(sums.shape, total.shape))
        with np.errstate(divide="ignore"):
            return np.log(self.total.chances(*np.broadcast_arrays(sums, total)))


@dataclass(frozen=True, kw_only=True, eq=False)
class ByClip(FromNoisyCounts):
    """Cells clipped one by one; the counts above are sums and say nothing more."""

    hierarchy: Hierarchy
    counts: tuple[IntArray, ...]

    def start(self) -> list[IntArray]:
        """The released cells; no noisy counts above them."""
        return [np.empty(0, np.int64) for _ in self.counts[:-1]] + [self.counts[-1].copy()]

    def moves(self, level: int) -> bool:
        """The cells released as zero, whose noisy counts may be negative."""
        return level == len(self.counts) - 1

    def log_given(
        self, noisy: list[IntArray], true: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """A cell's noisy count is the released one, or anything up to zero."""
        del noisy, true
        return np.where(np.maximum(grid, 0) == self.counts[level][node], 0.0, -np.inf)

    def log_family(
        self, rows: IntArray, true: list[IntArray], level: int, parent: int
    ) -> FloatArray:
        """Zero where all of the children are clipped to the released counts."""
        del true
        here = self.hierarchy.children(level, parent)
        same = (np.maximum(rows, 0) == self.counts[level + 1][here]).all(axis=1)
        return np.where(same, 0.0, -np.inf)

    def log_root(self, noisy: list[IntArray], total: IntArray) -> FloatArray:
        """Nothing."""
        del noisy
        return np.zeros(total.shape)
