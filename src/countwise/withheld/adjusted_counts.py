"""Ties of a release of which only the adjusted counts are known.

Given its true count, a parent's children are a mixture of coupled sums; which one depends on the
adjustment and is left to `steps`.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.sumproduct.count_laws import Laws, from_logs, grid, window_offsets
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import Noise
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.step_mixture import Steps
from countwise.sumproduct.tree import Family, TotalPrior
from countwise.tables.hierarchy import Hierarchy
from countwise.withheld.count_windows import ChildRanges, CountWindows, ranges
from countwise.withheld.summed_root import sums_within
from countwise.withheld.summed_total import TotalMode

BY_FREQUENCY = 0.02  # of a cut with one more number, for each value that number's sum can have


@dataclass(frozen=True, kw_only=True, eq=False)
class AdjustedTies:
    """Released counts and the noise of every level, what was seen of the root, or its rule.

    Windows end where the likelihood is about exp(-depth) of its largest value. `reaches` noises
    lie between a true count and the value that was adjusted.
    """

    hierarchy: Hierarchy
    counts: tuple[IntArray, ...]
    noise: tuple[Noise, ...]
    seen: Evidence
    prior: Prior
    depth: float
    total: TotalMode | None = None

    def shares(self) -> ChildRanges:
        """Where the values of children can be, from the range of their sum."""
        raise NotImplementedError

    @property
    def reaches(self) -> int:
        """One noise, unless the noisy count was drawn from once more."""
        return 1

    @property
    def root(self) -> Evidence | TotalMode:
        """What is known of the root: what was seen of it, unless its parts have a say."""
        return self.total or self.seen

    @cached_property
    def ranges(self) -> CountWindows:
        """Windows of all counts."""
        return ranges(
            self.hierarchy,
            self.counts,
            noise=self.noise,
            root=self.root,
            upper=self.prior.upper,
            depth=self.depth,
            shares=self.shares(),
            reaches=self.reaches,
        )

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> Self | None:
        """Twice the depth everywhere when a window ends where there is mass, and more beyond."""
        return replace(self, depth=2 * self.depth) if self.ranges.cut_short(touched) else None

    def contradiction(self, touched: list[tuple[BoolArray, BoolArray]]) -> str:
        """The released counts are made from noisy ones all together: none can be named."""
        del touched
        return (
            "the release has probability zero under this prior and noise, or one too small to "
            "compute with, so there is no posterior. To fix, choose a prior that allows the "
            "released counts, or check epsilon."
        )

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The children of one parent as a mixture of coupled sums."""
        raise NotImplementedError

    def solved(
        self, level: int, parent: int, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Marginals and messages of the children of one parent, and the law of their sum."""
        return self.steps(level, parent, children).solve(children, low, coupling)

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """Joint draws of the root's children; None where the root is drawn first, then split."""
        del children, low, coupling, count, rng
        return None

    @property
    def additive(self) -> bool:
        """What is known of children together is more than their sum."""
        return False

    @property
    def cost(self) -> float:
        """Values of a sum, times widths of windows, times what a sum over a tree of them takes."""
        total = 0.0
        for level, offsets in enumerate(self.hierarchy.offsets):
            least, most = self.ranges.sums[level]
            pairs = 1.0
            if level == 0 and self.total is not None:
                ends = sums_within(self.total, self.counts[1], float(least[0]), float(most[0]))
                least, most = np.array(ends[:1]), np.array(ends[1:])
                pairs = 1.0 + BY_FREQUENCY * (ends[1] - ends[0])
            wide = self.ranges.highs[level + 1] - self.ranges.lows[level + 1] + 2.0
            above = self.ranges.highs[level] - self.ranges.lows[level]
            width = (np.maximum.reduceat(wide, offsets[:-1]) + above) * pairs
            depth = np.log2(np.diff(offsets) + 1.0)
            total += float(((most - least) * width * np.log2(width) * depth).sum())
        return total

    @property
    def largest(self) -> int:
        """The largest count in any window of a cell."""
        return int(self.ranges.highs[-1].max())

    def own(self, level: int, first: int, last: int, log_total: TotalPrior | None = None) -> Laws:
        """The root knows its released count, the cells their prior, the rest nothing."""
        lows, highs = self.ranges.lows[level][first:last], self.ranges.highs[level][first:last]
        offsets = window_offsets(lows, highs)
        x = grid(lows, offsets)
        nodes = np.repeat(np.arange(first, last), np.diff(offsets))
        if level == 0:
            logs = self.root.logs(nodes, x)
            logs = logs if log_total is None else logs + log_total(x)
            return from_logs(lows, highs, logs + self._shared(level, nodes, x))
        if level == len(self.hierarchy.offsets):
            return from_logs(lows, highs, self.prior.log_cells(nodes, x))
        return from_logs(lows, highs, self._shared(level, nodes, x))

    def _shared(self, level: int, nodes: IntArray, x: IntArray) -> FloatArray:
        """What a nested prior says about the counts of parents."""
        if not self.prior.nested:
            return np.zeros(len(x))
        return self.prior.log_parents(np.diff(self.hierarchy.offsets[level])[nodes], x)

    def up(self, level: int, first: int, last: int, children: Laws, own: Laws) -> Laws:
        """For each parent, the sum over cuts of the law of its children's sum."""
        sums = []
        for parent in range(first, last):
            below = self._children(level, first, parent, children)
            low, coupling = own.one(parent - first)
            sums.append(self.steps(level, parent, below).sums(below, low, coupling)[0])
        return Laws(lows=own.lows, offsets=own.offsets, values=np.concatenate(sums))

    def down(self, level: int, first: int, last: int, children: Laws, coupling: Laws) -> Family:
        """Marginals of the children, and what the rest says about each."""
        parts = []
        for parent in range(first, last):
            below = self._children(level, first, parent, children)
            low, known = coupling.one(parent - first)
            parts.append(self.solved(level, parent, below, low, known))
        marginals, messages, sums = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Family(
            Laws(lows=children.lows, offsets=children.offsets, values=marginals),
            Laws(lows=children.lows, offsets=children.offsets, values=messages),
            Laws(lows=coupling.lows, offsets=coupling.offsets, values=sums),
        )

    def _children(self, level: int, first: int, parent: int, children: Laws) -> Laws:
        offsets = self.hierarchy.offsets[level]
        base = offsets[first]
        return children.part(int(offsets[parent] - base), int(offsets[parent + 1] - base))
