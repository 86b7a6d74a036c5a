"""What exact counts leave possible for the others, as no count is negative."""

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.errors import InputError
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named

BOUNDLESS = np.iinfo(np.int64).max


def check_exact(
    hierarchy: Hierarchy, values: tuple[IntArray, ...], exact: tuple[BoolArray, ...] | None
) -> None:
    """Refuse exact counts that can not all be true."""
    if exact is None:
        return
    least, _ = least_and_most(hierarchy, values, exact)
    for level, offsets in enumerate(hierarchy.offsets):
        sums = np.add.reduceat(least[level + 1], offsets[:-1])
        closed = np.logical_and.reduceat(exact[level + 1], offsets[:-1])
        wrong = exact[level] & ((values[level] < sums) | (closed & (values[level] != sums)))
        if wrong.any():
            node = int(np.argmax(wrong))
            raise InputError(
                f"the exact count {values[level][node]:,} of {named(hierarchy, level, node)} "
                f"contradicts the exact counts below it, which add up to {sums[node]:,}."
            )


def least_and_most(
    hierarchy: Hierarchy, values: tuple[IntArray, ...], exact: tuple[BoolArray, ...] | None
) -> tuple[list[IntArray], list[IntArray]]:
    """The least and the most that every node of every level can count, BOUNDLESS where no end is.

    A node counts at least what is exact below it, and at most what an exact node above it leaves
    when all others below that have their least.
    """
    if exact is None:
        zeros = [np.zeros(size, np.int64) for size in hierarchy.sizes]
        return zeros, [np.full(size, BOUNDLESS) for size in hierarchy.sizes]
    least = [np.where(exact[-1], values[-1], 0)]
    for level in range(len(hierarchy.offsets) - 1, -1, -1):
        sums = np.add.reduceat(least[-1], hierarchy.offsets[level][:-1])
        least.append(np.where(exact[level], values[level], sums))
    least.reverse()
    most = [np.where(exact[0], values[0], BOUNDLESS)]
    for level, offsets in enumerate(hierarchy.offsets):
        size, below = np.diff(offsets), least[level + 1]
        above = np.repeat(most[-1], size)
        others = np.repeat(np.add.reduceat(below, offsets[:-1]), size) - below
        left = np.where(above == BOUNDLESS, BOUNDLESS, above - others)
        most.append(np.where(exact[level + 1], values[level + 1], left))
    return least, most
