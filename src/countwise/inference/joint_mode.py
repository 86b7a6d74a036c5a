"""The most probable combination of all counts of a tree with published noisy counts.

Messages as in `tree`, with maxima in place of sums: up, the best that a subtree can do for each
count of its root; down, every parent's count is split at its best.
"""

import numpy as np

from countwise.arrays import IntArray
from countwise.kernels import coupled
from countwise.sumproduct.count_laws import Laws, joined
from countwise.sumproduct.tree import Solved


def joint_mode(solved: Solved) -> tuple[IntArray, ...]:
    """Counts of every node, level by level; any of the best when there are several."""
    hierarchy = solved.hierarchy
    depth = len(hierarchy.offsets)
    bests = [solved.ties.own(depth, 0, hierarchy.cells)]  # from the cells up
    for level in range(depth - 1, 0, -1):
        bests.append(_best_up(solved, level, bests[-1]))
    top = bests.pop()
    low, coupling = solved.couplings[0].one(0)
    first, _ = coupled.mode(
        top.values, top.offsets, lows=top.lows, coupling=coupling, coupling_low=low
    )
    counts = [np.array([first.sum()]), first]
    for offsets in hierarchy.offsets[1:]:
        counts.append(_best_down(offsets, bests.pop(), counts[-1]))
    return tuple(counts)


def _best_up(solved: Solved, level: int, below: Laws) -> Laws:
    """What each node of a level and all below it can do at best, for every count of it."""
    own = solved.ties.own(level, 0, solved.hierarchy.sizes[level])
    offsets = solved.hierarchy.offsets[level]
    parts = []
    for parent in range(own.nodes):
        children = below.part(int(offsets[parent]), int(offsets[parent + 1]))
        best = coupled.best_by_sum(
            children.values,
            children.offsets,
            lows=children.lows,
            sum_low=int(own.lows[parent]),
            sums=int(own.sizes[parent]),
        )
        parts.append(own.part(parent, parent + 1).times(best))
    return joined(parts)


def _best_down(offsets: IntArray, below: Laws, counts: IntArray) -> IntArray:
    """The best children for the given counts of their parents."""
    found = []
    for parent, count in enumerate(counts):
        children = below.part(int(offsets[parent]), int(offsets[parent + 1]))
        found.append(
            coupled.mode(
                children.values,
                children.offsets,
                lows=children.lows,
                coupling=np.ones(1),
                coupling_low=int(count),
            )[0]
        )
    return np.concatenate(found)
