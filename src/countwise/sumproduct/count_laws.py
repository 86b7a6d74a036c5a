"""Functions of a whole number, one for each of many nodes, each on its own window."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Laws:
    """Node i has the values ``values[offsets[i]:offsets[i + 1]]`` at ``lows[i], lows[i] + 1, …``

    Outside its window a function is zero. Scales are free: most functions here matter up to a
    constant factor of each node.

    >>> laws = Laws(
    ...     lows=np.array([2, 0]),
    ...     offsets=np.array([0, 2, 5]),
    ...     values=np.array([0.5, 0.5, 0.2, 0.3, 0.5]),
    ... )
    >>> laws.highs.tolist(), laws.sums().tolist()
    ([3, 2], [1.0, 1.0])
    """

    lows: IntArray
    offsets: IntArray
    values: FloatArray

    @property
    def nodes(self) -> int:
        """How many functions there are."""
        return len(self.lows)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of values in each window."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> IntArray:
        """The node that each value belongs to."""
        return np.repeat(np.arange(self.nodes), self.sizes)

    @cached_property
    def grid(self) -> IntArray:
        """The whole number that each value stands for."""
        return grid(self.lows, self.offsets)

    @property
    def highs(self) -> IntArray:
        """The last number of each window."""
        return self.lows + self.sizes - 1

    def part(self, first: int, last: int) -> "Laws":
        """Nodes first to last - 1."""
        start, stop = self.offsets[first], self.offsets[last]
        return Laws(
            lows=self.lows[first:last],
            offsets=self.offsets[first : last + 1] - start,
            values=self.values[start:stop],
        )

    def one(self, node: int) -> tuple[int, FloatArray]:
        """The lowest number and the values of one node."""
        return int(self.lows[node]), self.values[self.offsets[node] : self.offsets[node + 1]]

    def times(self, factors: FloatArray) -> "Laws":
        """Multiplied value by value, then scaled so that each node's largest value is 1."""
        return Laws(lows=self.lows, offsets=self.offsets, values=self.values * factors).scaled()

    def scaled(self) -> "Laws":
        """Every node's largest value made 1; a function that is zero stays so."""
        largest = np.maximum.reduceat(self.values, self.offsets[:-1])
        safe = np.where(largest > 0.0, largest, 1.0)
        return Laws(
            lows=self.lows, offsets=self.offsets, values=self.values / np.repeat(safe, self.sizes)
        )

    def sums(self) -> FloatArray:
        """The sum of each node's values."""
        return np.add.reduceat(self.values, self.offsets[:-1])

    def touching(self, *, above: float) -> tuple[BoolArray, BoolArray]:
        """Whether the share of a node's mass at the low end, and at the high end, is above."""
        mass = self.sums() * above
        return self.values[self.offsets[:-1]] > mass, self.values[self.offsets[1:] - 1] > mass


def grid(lows: IntArray, offsets: IntArray) -> IntArray:
    """The numbers lows[i], lows[i] + 1, … of every window, one after another."""
    sizes = np.diff(offsets)
    return np.arange(offsets[-1]) + np.repeat(lows - offsets[:-1], sizes)


def window_offsets(lows: IntArray, highs: IntArray) -> IntArray:
    """Where each window from low to high, both included, starts in a flat array."""
    return np.concatenate([[0], np.cumsum(highs - lows + 1)])


def from_logs(lows: IntArray, highs: IntArray, logs: FloatArray) -> Laws:
    """Functions given by their logarithms, scaled so that each node's largest value is 1."""
    offsets = window_offsets(lows, highs)
    largest = np.maximum.reduceat(logs, offsets[:-1])
    safe = np.where(np.isfinite(largest), largest, 0.0)
    values = np.exp(logs - np.repeat(safe, np.diff(offsets)))
    return Laws(lows=lows, offsets=offsets, values=values)


def joined(parts: Sequence[Laws]) -> Laws:
    """Functions of consecutive ranges of nodes, put together."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.sizes for part in parts])
    return Laws(
        lows=np.concatenate([part.lows for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        values=np.concatenate([part.values for part in parts]),
    )
