"""The most probable combination of all counts of a tree of which only adjusted counts are known.

The likelihood of a family is a sum over cuts or over the scale, so maxima do not pass through it
as sums do. Where the counts that the children of each parent can have are few, all their
combinations are tried, from the cells up: the best of a parent for each count of it, and which
children make it. Elsewhere one count, or one unit between two cells, is changed at a time for as
long as that helps, from the modes and from the means of the marginals.
"""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.combinations import GRID, MOST, Siblings, bulk
from countwise.sumproduct.laws import Laws, from_logs
from countwise.sumproduct.tree import Solved


@dataclass(frozen=True, kw_only=True)
class Best:
    """The children of a parent at their best: log weight and row of children by count from low."""

    low: int
    logs: FloatArray
    rows: IntArray


def tree_mode(solved: Solved) -> tuple[IntArray, ...]:
    """Counts of every node, level by level."""
    counts = _by_trial(solved)
    return counts if counts is not None else _by_search(solved)


def _by_trial(solved: Solved) -> tuple[IntArray, ...] | None:
    """Exact: every combination of every family; None where there are too many."""
    hierarchy = solved.hierarchy
    depth = len(hierarchy.offsets)
    below = solved.ties.own(depth, 0, hierarchy.cells)
    found: list[list[Best]] = []
    for level in range(depth - 1, -1, -1):
        bests = []
        for parent in range(hierarchy.sizes[level]):
            best = _family(solved, level, parent, below)
            if best is None:
                return None
            bests.append(best)
        found.append(bests)
        if level:
            lows = np.array([best.low for best in bests])
            highs = np.array([best.low + len(best.logs) - 1 for best in bests])
            below = from_logs(lows, highs, np.concatenate([best.logs for best in bests]))
    top = found.pop()[0]
    counts = [np.array([top.low + int(top.logs.argmax())])]
    for bests in [[top], *found[::-1]]:
        chosen = [
            best.rows[count - best.low] for best, count in zip(bests, counts[-1], strict=True)
        ]
        counts.append(np.concatenate(chosen))
    return tuple(counts)


def _family(solved: Solved, level: int, parent: int, below: Laws) -> Best | None:
    """All combinations of a parent's children, the best for each of its counts."""
    offsets = solved.hierarchy.offsets[level]
    first, last = int(offsets[parent]), int(offsets[parent + 1])
    children = below.part(first, last)
    marginals = solved.family(level, parent, parent + 1).marginals
    within = []
    for s in range(children.nodes):
        counts = bulk(*marginals.one(s))
        within.append(counts[(counts >= children.lows[s]) & (counts <= children.highs[s])])
    if np.prod([float(len(each)) for each in within]) > GRID:
        return None
    rows = np.stack(np.meshgrid(*within, indexing="ij"), axis=-1).reshape(-1, len(within))
    logs = _joint(solved, level, parent, children).log_probabilities(rows)
    sums = rows.sum(axis=1)
    order = np.lexsort((-logs, sums))
    totals, at = np.unique(sums[order], return_index=True)
    best = order[at]
    span = np.arange(totals[0], totals[-1] + 1)
    whole, places = np.full(len(span), -np.inf), np.zeros(len(span), np.int64)
    whole[totals - totals[0]], places[totals - totals[0]] = logs[best], best
    return Best(low=int(totals[0]), logs=whole, rows=rows[places])


def _joint(solved: Solved, level: int, parent: int, children: Laws) -> Siblings:
    """The weight of combinations of a parent's children, with what the children bring along."""
    own = solved.ties.own(level, parent, parent + 1)
    low, coupling = solved.couplings[0].one(0) if level == 0 else own.one(0)
    steps = solved.ties.steps(level, parent, children)
    return Siblings(
        children=children,
        steps=steps,
        weights=steps.weights(children),
        low=low,
        coupling=coupling,
        log_normaliser=0.0,
    )


def _by_search(solved: Solved) -> tuple[IntArray, ...]:
    """The best that changes of one unit lead to; not certain to be the best of all."""
    hierarchy = solved.hierarchy
    if hierarchy.cells > MOST:
        raise InputError(
            f"the most probable combination of a tree is sought for up to {MOST} cells when only "
            f"counts are known, here are {hierarchy.cells}. To fix, leave out --from counts."
        )
    weight = _Weight(solved)
    modes, means = [], []
    for laws in solved.marginals(len(hierarchy.offsets)):
        for low, law in map(laws.one, range(laws.nodes)):
            modes.append(low + int(law.argmax()))
            means.append(low + round(float(law @ np.arange(len(law)) / law.sum())))
    climbed = [_climbed(weight, np.array(row)) for row in (modes, means)]
    return hierarchy.sums(max(climbed, key=lambda each: each[0])[1])


class _Weight:
    """The log weight of rows of cells: a sum over families."""

    def __init__(self, solved: Solved) -> None:
        self.solved = solved
        depth = len(solved.hierarchy.offsets)
        self.families: list[list[Siblings]] = []
        for level in range(depth):
            below = solved.ties.own(level + 1, 0, solved.hierarchy.sizes[level + 1])
            offsets = solved.hierarchy.offsets[level]
            self.families.append(
                [
                    _joint(solved, level, p, below.part(int(offsets[p]), int(offsets[p + 1])))
                    for p in range(solved.hierarchy.sizes[level])
                ]
            )

    def __call__(self, rows: IntArray) -> FloatArray:
        """log of the joint weight of each row."""
        levels = [rows]
        for offsets in reversed(self.solved.hierarchy.offsets):
            levels.append(np.add.reduceat(levels[-1], offsets[:-1], axis=1))
        levels = levels[::-1]
        total = np.zeros(len(rows))
        for level, families in enumerate(self.families):
            offsets = self.solved.hierarchy.offsets[level]
            for p, family in enumerate(families):
                here = levels[level + 1][:, offsets[p] : offsets[p + 1]]
                different, back = np.unique(here, axis=0, return_inverse=True)
                total += family.log_probabilities(different)[back.ravel()]
        return total


def _climbed(weight: _Weight, row: IntArray) -> tuple[float, IntArray]:
    """The best neighbour, again and again, until none is better."""
    size = len(row)
    one = np.eye(size, dtype=np.int64)
    moves = np.concatenate([one, -one, (one[:, None] - one).reshape(-1, size)])
    moves = moves[moves.any(axis=1)]
    best = float(weight(row[None])[0])
    while True:
        near = row + moves
        near = near[near.min(axis=1) >= 0]
        logs = weight(near)
        if not logs.max() > best + 1e-12:
            return best, row
        best, row = float(logs.max()), near[logs.argmax()]
