"""Ties of a mode release of which only the counts are known.

The children of a parent with released count m were apportioned by their clipped noisy counts v.
Their likelihood given the true counts is a sum over cuts of products of windows (see
`kernels.cuts`), plus the case that all v are zero, which is apportioned like equal counts. A
parent released as 0 says nothing about its children.
"""

from dataclasses import dataclass

from countwise.arrays import FloatArray, IntArray
from countwise.inference.adjusted import Adjusted
from countwise.inference.pairing import in_runs, sums_within, with_sums
from countwise.inference.ranges import Shares, apportioned_shares
from countwise.inference.summed import Summed
from countwise.inference.windows import impossible, windowed, with_all_zero
from countwise.kernels.cuts import enumerate_cuts, is_equal_split
from countwise.sumproduct.columns import Pieces
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.steps import Steps


@dataclass(frozen=True, kw_only=True)
class Apportioned(Adjusted):
    """With the order of service on ties: the lowest among siblings comes first."""

    order: tuple[IntArray, ...]
    depth: float = 33.0

    def shares(self) -> Shares:
        """Those of a mode."""
        return apportioned_shares(self.hierarchy, self.counts)

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The cuts of a parent's children as a mixture."""
        here, pieces = self._family(level, parent), self._pieces(level, parent)
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
        rule = self._rule(level)
        if rule is not None:
            k, pieces = self.counts[1], self._pieces(level, parent)
            found = in_runs(children, rule, k, pieces, self.ranges, low, coupling)
            if found is not None:
                return found
        return super().solved(level, parent, children, low, coupling)

    def _family(self, level: int, parent: int) -> slice:
        return slice(*self.hierarchy.offsets[level][parent : parent + 2].tolist())

    def _rule(self, level: int) -> Summed | None:
        """The rule of a total that depends on the sum of the noisy parts."""
        return self.root if level == 0 and isinstance(self.root, Summed) else None

    def _pieces(self, level: int, parent: int) -> Pieces:
        """Windows of every step; none where no cut is possible."""
        here, rule = self._family(level, parent), self._rule(level)
        k, rank = self.counts[level + 1][here], self.order[level + 1][here]
        lowest, highest = (float(each[parent]) for each in self.ranges.sums[level])
        if rule is not None:
            lowest, highest = sums_within(rule, k, lowest, highest)
        cuts = enumerate_cuts(k, rank, lowest_sum=lowest, highest_sum=highest)
        pieces = Pieces(cuts.changed, cuts.bounds, cuts.lows, cuts.highs)
        if int(k.sum()) > 0 and is_equal_split(k, rank):
            pieces = with_all_zero(pieces, len(k))
        return pieces
