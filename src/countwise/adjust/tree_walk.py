"""Walking a tree from the root to the cells, parents in parallel."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray, UIntArray
from countwise.kernels.apportion import apportion_children, last_ranks, random_ranks
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import floors
from countwise.tables.measurements import Measurements
from countwise.threads import run_tasks

NODES_A_TASK = 1 << 16  # some milliseconds of work, so that starting a task costs nothing beside it

Give = Callable[..., IntArray]
Values = TypeVar("Values", IntArray, FloatArray)


@dataclass(frozen=True, kw_only=True, eq=False)
class Floors:
    """What exact counts leave to be shared: `least` is the smallest each node can be.

    Without exact counts both are None and everything is shared.
    """

    hierarchy: Hierarchy
    exact: tuple[BoolArray, ...] | None
    least: tuple[IntArray, ...] | None

    def above(self, level: int, values: Values) -> Values:
        """How far values are above the least."""
        return values if self.least is None else values - self.least[level]

    def root(self, value: IntArray) -> IntArray:
        """A root of its exact count, or of the value where that is no less than it can be."""
        if self.exact is None or self.least is None:
            return np.maximum(value, 0)
        return self.least[0] if self.exact[0][0] else np.maximum(value, self.least[0])

    def share(self, level: int, parents: IntArray, give: Give, *columns: Any) -> IntArray:
        """Counts of a level: exact ones as they are, the others their least and a share.

        `give` is called with offsets of children, counts of parents, and the columns of children
        among whom to share them.
        """
        offsets = self.hierarchy.offsets[level - 1]
        if self.exact is None or self.least is None:
            return give(offsets, parents, *columns)
        counts, free = self.least[level].copy(), ~self.exact[level]
        number = np.add.reduceat(free.astype(np.int64), offsets[:-1])
        left = parents - np.add.reduceat(counts, offsets[:-1])
        some = number > 0
        if some.any():
            within = np.concatenate([[0], np.cumsum(number[some])])
            counts[free] += give(within, left[some], *(column[free] for column in columns))
        return counts


def floors_of(measured: Measurements) -> Floors:
    """The floors that a measurement's exact counts set."""
    least = None
    if measured.exact is not None:
        least = floors(measured.hierarchy, measured.exact, measured.noisy)
    return Floors(hierarchy=measured.hierarchy, exact=measured.exact, least=least)


def ranks(
    hierarchy: Hierarchy, level: int, tie_key: int | None, *, first: int | None = None
) -> UIntArray:
    """Who is served first on a tie: random and public by key, or the last when there is none.

    `first` is the number of the level's first node in the order of the tree, root first.
    """
    size = hierarchy.sizes[level]
    if tie_key is None:
        return last_ranks(size)
    before = sum(hierarchy.sizes[:level]) if first is None else first
    return np.asarray(random_ranks(np.uint64(tie_key), before, size))


@dataclass(frozen=True, kw_only=True, eq=False)
class Piece:
    """Noisy counts below level `depth`: subtrees of a tree that is cut there.

    `firsts` has, for each level, the number of the first node in the order of the whole tree.
    """

    measurements: Sequence[Measurements]
    depth: int
    firsts: tuple[int, ...]

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree, with the nodes above the cut that the piece is below."""
        return self.measurements[0].hierarchy

    @cached_property
    def room(self) -> Floors:
        """What exact counts leave to be shared."""
        return floors_of(self.measurements[0])

    @property
    def below(self) -> range:
        """The levels below the cut, outer to inner."""
        return range(self.depth + 1, len(self.hierarchy.sizes))

    def ranks(self, level: int, tie_key: int | None) -> UIntArray:
        """Who is served first on a tie, as on the whole tree."""
        return ranks(self.hierarchy, level, tie_key, first=self.firsts[level])


def whole_tree(measurements: Sequence[Measurements]) -> Piece:
    """A tree that is not cut: one piece, below the root."""
    sizes = np.array(measurements[0].hierarchy.sizes)
    firsts = tuple((np.cumsum(sizes) - sizes).tolist())
    return Piece(measurements=measurements, depth=0, firsts=firsts)


def share_among_children(
    offsets: IntArray, parents: IntArray, values: IntArray, order: UIntArray
) -> IntArray:
    """Each parent's count apportioned among its children in proportion to their values."""
    counts = np.empty_like(values)
    bounds = task_bounds(offsets)

    def work(task: int) -> None:
        first, last = bounds[task], bounds[task + 1]
        apportion_children(offsets, parents, values, order, counts, first, last)

    run_tasks(work, len(bounds) - 1)
    return counts


def task_bounds(offsets: IntArray) -> list[int]:
    """Ranges of parents with about NODES_A_TASK children each."""
    marks = np.arange(0, offsets[-1], NODES_A_TASK)
    bounds = np.unique(np.searchsorted(offsets[:-1], marks, side="left"))
    return [*(int(b) for b in bounds if b < len(offsets) - 1), len(offsets) - 1]
