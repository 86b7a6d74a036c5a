"""The top of a tree whose nodes at a cut stand for all that is below them."""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.measured_nodes import MeasuredTies
from countwise.sumproduct.step_mixture import Steps
from countwise.sumproduct.tree import Family, TotalPrior
from countwise.tables.hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True)
class PrunedTies:
    """Ties of the top, whose nodes at the cut know what came up to them from below."""

    top: MeasuredTies
    leaves: Laws

    @property
    def hierarchy(self) -> Hierarchy:
        """The top."""
        return self.top.hierarchy

    @property
    def largest(self) -> int:
        """The largest count in any window at the cut."""
        return int(self.leaves.highs.max())

    @property
    def additive(self) -> bool:
        """As of any measured tree."""
        return self.top.additive

    @property
    def cost(self) -> float:
        """As of any measured tree."""
        return self.top.cost

    def own(self, level: int, first: int, last: int, log_total: TotalPrior | None = None) -> Laws:
        """Of nodes at the cut, all that is known from their pieces."""
        if level == len(self.hierarchy.offsets):
            return self.leaves.part(first, last)
        return self.top.own(level, first, last, log_total)

    def up(self, level: int, first: int, last: int, children: Laws, own: Laws) -> Laws:
        """As of any measured tree."""
        return self.top.up(level, first, last, children, own)

    def down(self, level: int, first: int, last: int, children: Laws, coupling: Laws) -> Family:
        """As of any measured tree."""
        return self.top.down(level, first, last, children, coupling)

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """As of any measured tree."""
        return self.top.steps(level, parent, children)

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """As of any measured tree."""
        return self.top.top_draws(children, low, coupling, count, rng)

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> "PrunedTies | None":
        """Wider windows above the cut; at the cut they are as wide as the pieces made them."""
        low, high = touched[-1]
        start = self.leaves.lows > 0 if self.top.prior.lower == 0 else True
        if bool((((low & start) | high) & (self.leaves.sizes > 1)).any()):
            raise TooNarrowError
        wider = self.top.widened(touched)
        return None if wider is None else PrunedTies(top=wider, leaves=self.leaves)

    def contradiction(self, touched: list[tuple[BoolArray, BoolArray]]) -> str:
        """As of any measured tree."""
        return self.top.contradiction(touched)


class TooNarrowError(Exception):
    """The windows at the cut end where there is mass."""


def packed(laws: Laws) -> bytes:
    """Functions as bytes, to be handed from process to process."""
    head = np.array([laws.nodes], np.int64)
    return b"".join(each.tobytes() for each in (head, laws.lows, laws.offsets, laws.values))


def unpacked(data: bytes) -> Laws:
    """Functions from such bytes."""
    nodes = int(np.frombuffer(data, np.int64, 1)[0])
    lows = np.frombuffer(data, np.int64, nodes, 8)
    offsets: IntArray = np.frombuffer(data, np.int64, nodes + 1, 8 * (1 + nodes))
    values = np.frombuffer(data, np.float64, offset=8 * (2 + 2 * nodes))
    return Laws(lows=lows, offsets=offsets, values=values)
