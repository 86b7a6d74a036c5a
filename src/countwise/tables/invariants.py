"""Counts that are published as they are: declared public, or zero by their nature.

Which nodes these are is decided by the plan and the shape of the tree alone, never by a count.
What follows from them is among them: a parent all of whose children are exact, the last child
of an exact parent, everything below a node that can only be zero.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, IntArray, frozen
from countwise.errors import TableError
from countwise.tables.hierarchy import ROOT, Hierarchy
from countwise.tables.pattern import Pattern


@dataclass(frozen=True, kw_only=True, eq=False)
class Invariants:
    """Which nodes are exact, level by level, and which of them can only be zero.

    `declared` are those the plan picked and the zeros; the other exact ones follow from them.
    """

    declared: tuple[BoolArray, ...]
    exact: tuple[BoolArray, ...]
    zeros: tuple[BoolArray, ...]
    impossible: BoolArray | None = None
    """Of tables that cross, the cells that can only be zero; of a tree they are the last zeros."""

    def completed(self, hierarchy: Hierarchy, values: Sequence[IntArray]) -> tuple[IntArray, ...]:
        """Values with zeros in their place and what follows from the declared exact counts."""
        known = [each.copy() for each in self.declared]
        numbers = [np.where(none, 0, v) for none, v in zip(self.zeros, values, strict=True)]
        while _follow(hierarchy, known, numbers):
            pass
        return tuple(numbers)

    def refuse_people_in_zeros(self, hierarchy: Hierarchy, cells: IntArray) -> None:
        """A cell that can only be zero is empty; the refusal shows no count."""
        wrong = self.zeros[-1] & (cells != 0)
        if wrong.any():
            node = named(hierarchy, len(hierarchy.by), int(np.argmax(wrong)))
            raise TableError(
                f"{node} is declared a cell that can only be zero, and the table has someone in "
                "it. To fix, correct the records or take the cell out of the zeros."
            )


def find_invariants(
    hierarchy: Hierarchy, exact: Sequence[Pattern], zeros: Sequence[Pattern]
) -> Invariants | None:
    """The nodes that patterns pick and all that follows from them; None where there are none."""
    if not exact and not zeros:
        return None
    fixed, empty = _picked(hierarchy, exact), _picked(hierarchy, zeros)
    for level, offsets in enumerate(hierarchy.offsets):
        empty[level + 1] |= np.repeat(empty[level], np.diff(offsets))
    for level in reversed(range(len(hierarchy.offsets))):
        empty[level] |= np.logical_and.reduceat(empty[level + 1], hierarchy.offsets[level][:-1])
    declared = [mine | none for mine, none in zip(fixed, empty, strict=True)]
    fixed = [each.copy() for each in declared]
    while _follow(hierarchy, fixed, [np.zeros(size, np.int64) for size in hierarchy.sizes]):
        pass
    return Invariants(
        declared=tuple(frozen(each) for each in declared),
        exact=tuple(frozen(each) for each in fixed),
        zeros=tuple(frozen(each) for each in empty),
    )


def _picked(hierarchy: Hierarchy, patterns: Sequence[Pattern]) -> list[BoolArray]:
    chosen = [np.zeros(size, dtype=np.bool_) for size in hierarchy.sizes]
    for pattern in patterns:
        level, nodes = pattern.nodes(hierarchy)
        chosen[level] |= nodes
    return chosen


def _follow(hierarchy: Hierarchy, known: list[BoolArray], values: list[IntArray]) -> bool:
    """One round of what exact counts say about their parents and siblings; whether it said any."""
    before = sum(int(each.sum()) for each in known)
    for level in reversed(range(len(hierarchy.offsets))):
        first = hierarchy.offsets[level][:-1]
        whole = np.logical_and.reduceat(known[level + 1], first)
        sums = np.add.reduceat(values[level + 1], first)
        values[level] = np.where(whole & ~known[level], sums, values[level])
        known[level] = known[level] | whole
    for level, offsets in enumerate(hierarchy.offsets):
        fan_out, free = np.diff(offsets), ~known[level + 1]
        single = known[level] & (np.add.reduceat(free.astype(np.int64), offsets[:-1]) == 1)
        others = np.add.reduceat(np.where(free, 0, values[level + 1]), offsets[:-1])
        last = np.repeat(single, fan_out) & free
        rest = np.repeat(values[level] - others, fan_out)
        values[level + 1] = np.where(last, rest, values[level + 1])
        known[level + 1] = known[level + 1] | last
    return sum(int(each.sum()) for each in known) > before


def floors(
    hierarchy: Hierarchy, exact: Sequence[BoolArray], values: Sequence[IntArray]
) -> tuple[IntArray, ...]:
    """The least each node can be: an exact count itself, else the sum of its children's least."""
    least = [np.where(exact[-1], values[-1], 0)]
    for level in reversed(range(len(hierarchy.offsets))):
        below = np.add.reduceat(least[-1], hierarchy.offsets[level][:-1])
        least.append(np.where(exact[level], values[level], below))
    return tuple(reversed(least))


def refuse_contradictions(
    hierarchy: Hierarchy,
    exact: Sequence[BoolArray],
    values: Sequence[IntArray],
) -> None:
    """Exact counts are 0 or more, and those below an exact count fit into it."""
    least = floors(hierarchy, exact, [np.maximum(value, 0) for value in values])
    for level, offsets in enumerate(hierarchy.offsets):
        below = np.add.reduceat(least[level + 1], offsets[:-1])
        whole = np.logical_and.reduceat(exact[level + 1], offsets[:-1])
        over = exact[level] & ((below > values[level]) | (whole & (below != values[level])))
        if over.any():
            node = int(np.argmax(over))
            start, stop = int(offsets[node]), int(offsets[node + 1])
            held = start + np.flatnonzero(least[level + 1][start:stop])[:3]
            names = ", ".join(named(hierarchy, level + 1, int(child)) for child in held)
            verb = "exceed" if below[node] > values[level][node] else "do not add up to"
            raise TableError(
                f"contradictory exact counts: those below {named(hierarchy, level, node)} {verb} "
                f"its own{f' ({names})' if names else ''}. To fix, correct them, or declare fewer "
                "counts exact."
            )
    for level, mine in enumerate(exact):
        negative = mine & (values[level] < 0)
        if negative.any():
            wrong = named(hierarchy, level, int(np.argmax(negative)))
            raise TableError(f"the count of {wrong} is declared exact and is negative.")


def named(hierarchy: Hierarchy, level: int, node: int) -> str:
    """The path of a node, or that it is the total."""
    return "/".join(hierarchy.path(level, node)) or ROOT
