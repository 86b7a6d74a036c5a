"""Ties of a mode release of which only the counts are known.

The children of a parent with released count m were apportioned by their clipped noisy counts v.
Their likelihood given the true counts is a sum over cuts of products of windows (see
`kernels.cuts`), plus the case that all v are zero, which is apportioned like equal counts. A
parent released as 0 says nothing about its children.
"""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.cuts import enumerate_cuts, is_equal_split
from countwise.negligible import WIDENED
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.step_mixture import Steps
from countwise.withheld.adjusted_counts import AdjustedTies
from countwise.withheld.count_windows import ChildRanges, apportioned_shares
from countwise.withheld.cut_windows import impossible, windowed, with_all_zero
from countwise.withheld.pair_columns import CutPieces
from countwise.withheld.pair_draws import pair_draws
from countwise.withheld.pair_runs import TiltedRun, solve
from countwise.withheld.pair_tilts import SumTable
from countwise.withheld.summed_root import few, in_runs, sums_within, with_sums
from countwise.withheld.summed_total import TotalMode


@dataclass(frozen=True, kw_only=True, eq=False)
class ModeTies(AdjustedTies):
    """With the order of service on ties: the lowest among siblings comes first."""

    order: tuple[IntArray, ...]
    depth: float = WIDENED

    def shares(self) -> ChildRanges:
        """Those of a mode."""
        return apportioned_shares(self.hierarchy, self.counts)

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The cuts of a parent's children as a mixture."""
        here, pieces = self.hierarchy.children(level, parent), self._pieces(level, parent)
        if pieces.bounds.size < 2:
            return impossible(children)
        k, rule = self.counts[level + 1][here], self._rule(level)
        if rule is not None:
            return with_sums(children, rule, k, pieces, self.ranges)
        return windowed(children, self.noise[level + 1].part(here), pieces, self.ranges.depth)

    def solved(
        self, level: int, parent: int, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By frequency where the total was summed and there are many pairs."""
        rule, pieces = self._rule(level), self._pieces(level, parent)
        if rule is None or pieces.bounds.size < 2:
            return super().solved(level, parent, children, low, coupling)
        found = None
        if not few(children, rule, self.counts[1], pieces, self.ranges):
            runs = self._runs(children, low, coupling)
            found = runs and solve(runs[0], children, runs[1])
        return found if found else super().solved(level, parent, children, low, coupling)

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """By rejection where the total was summed."""
        runs = self._runs(children, low, coupling)
        offsets = runs and pair_draws(*runs, count, rng=rng)
        return None if offsets is None else offsets + self.counts[1]

    def _runs(
        self, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[list[TiltedRun], SumTable] | None:
        """The cuts of the root's children in runs, where the total was summed."""
        rule, k = self._rule(0), self.counts[1]
        if rule is None:
            return None
        return in_runs(children, rule, k, self._pieces(0, 0), self.ranges, (low, coupling))

    def _rule(self, level: int) -> TotalMode | None:
        """The rule of a total that depends on the sum of the noisy parts."""
        return self.total if level == 0 else None

    def _pieces(self, level: int, parent: int) -> CutPieces:
        """Windows of every step; none where no cut is possible."""
        here, rule = self.hierarchy.children(level, parent), self._rule(level)
        k, rank = self.counts[level + 1][here], self.order[level + 1][here]
        lowest, highest = (float(total[parent]) for total in self.ranges.sums[level])
        if rule is not None:
            lowest, highest = sums_within(rule, k, lowest, highest)
        cuts = enumerate_cuts(k, rank, lowest_sum=lowest, highest_sum=highest)
        pieces = CutPieces(cuts.changed, cuts.bounds, cuts.lows, cuts.highs)
        if int(k.sum()) > 0 and is_equal_split(k, rank):
            pieces = with_all_zero(pieces, len(k))
        return pieces
