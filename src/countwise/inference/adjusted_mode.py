"""The most probable combination of all counts of which only adjusted counts are known.

The likelihood of a family is a sum over cuts or over the scale, so maxima do not pass through it
as sums do. From the cells up, the best children of each parent are found for each count of it:
all combinations are tried where they are few, and elsewhere units are moved between children for
as long as that helps. The best of the root then says the count of every node.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.inference.combinations import all_rows, bulk, few, joint_of
from countwise.inference.local_search import climbed, middles, moments
from countwise.progress import Tell, silent
from countwise.sumproduct.count_laws import Laws, from_logs, joined
from countwise.sumproduct.tree import Solved

FAR = 5.0  # standard deviations within which a count of a parent is given its best children


@dataclass(frozen=True, kw_only=True, eq=False)
class BestChildren:
    """The children of a parent at their best: log weight and row of children by count from low."""

    low: int
    logs: FloatArray
    rows: IntArray


def tree_mode(solved: Solved, *, tell: Tell = silent) -> tuple[IntArray, ...]:
    """Counts of every node, level by level."""
    hierarchy = solved.hierarchy
    depth = len(hierarchy.offsets)
    below = solved.ties.own(depth, 0, hierarchy.cells)
    found: list[list[BestChildren]] = []
    for level in reversed(range(depth)):
        tell(f"the best children of each {hierarchy.levels[level]}")
        marginals = [joined(list(solved.marginals(each))) for each in (level, level + 1)]
        offsets = hierarchy.offsets[level].tolist()
        bests = [
            _family(
                solved,
                level,
                parent,
                below.part(first, last),
                marginals[1].part(first, last),
                marginals[0].one(parent),
            )
            for parent, (first, last) in enumerate(pairwise(offsets))
        ]
        found.append(bests)
        lows = np.array([best.low for best in bests])
        highs = lows + [len(best.logs) - 1 for best in bests]
        below = from_logs(lows, highs, np.concatenate([best.logs for best in bests]))
    top = found.pop()[0]
    counts = [np.array([top.low + int(top.logs.argmax())])]
    for bests in [[top], *found[::-1]]:
        chosen = [
            best.rows[count - best.low] for best, count in zip(bests, counts[-1], strict=True)
        ]
        counts.append(np.concatenate(chosen))
    return tuple(counts)


def _family(
    solved: Solved,
    level: int,
    parent: int,
    children: Laws,
    marginals: Laws,
    above: tuple[int, FloatArray],
) -> BestChildren:
    """The best children of a parent for each count that it can have."""
    own = solved.couplings[0] if level == 0 else solved.ties.own(level, parent, parent + 1)
    joint = joint_of(solved.ties, level, parent, children, own.one(0))
    within = []
    for s in range(children.nodes):
        counts = bulk(*marginals.one(s))
        within.append(counts[(counts >= children.lows[s]) & (counts <= children.highs[s])])
    if few(joint, within):
        rows = all_rows(within)
        return _best(rows, joint.logs(rows))
    if level == 0:
        starts = np.clip(middles(marginals), children.lows, children.highs)
        return _best(*climbed(joint, starts, free=True))
    starts = _spread(_near(*above), *moments(marginals), children)
    return _best(*climbed(joint, starts, free=False))


def _best(rows: IntArray, logs: FloatArray) -> BestChildren:
    """The best of the rows with each sum."""
    sums = rows.sum(axis=1)
    order = np.lexsort((-logs, sums))
    totals, at = np.unique(sums[order], return_index=True)
    best = order[at]
    span = int(totals[-1] - totals[0]) + 1
    whole, places = np.full(span, -np.inf), np.zeros(span, np.int64)
    whole[totals - totals[0]], places[totals - totals[0]] = logs[best], best
    return BestChildren(low=int(totals[0]), logs=whole, rows=rows[places])


def _near(low: int, law: FloatArray) -> IntArray:
    """The counts of a parent within some standard deviations of its mean."""
    x = low + np.arange(len(law))
    mean = float(law @ x / law.sum())
    far = FAR * float(np.sqrt(law @ (x - mean) ** 2 / law.sum()))
    near = (x >= np.floor(mean - far)) & (x <= np.ceil(mean + far)) & (law > 0.0)
    return np.asarray(x[near])


def _spread(totals: IntArray, means: FloatArray, variances: FloatArray, children: Laws) -> IntArray:
    """A row for each total: what is missing at the means, shared out by the variances."""
    missing = totals - means.sum()
    targets = means + missing[:, None] * (variances / max(variances.sum(), 1e-9))
    rows = np.clip(np.rint(targets), children.lows, children.highs).astype(np.int64)
    for _ in range(int(np.abs(totals - rows.sum(axis=1)).max())):
        left = totals - rows.sum(axis=1)
        sign = np.sign(left)[:, None]
        moved = rows + sign
        possible = (sign != 0) & (moved >= children.lows) & (moved <= children.highs)
        gains = np.where(possible, (targets - rows) * sign, -np.inf)
        at = gains.argmax(axis=1)
        some = np.flatnonzero(possible.any(axis=1))
        rows[some, at[some]] += sign[some, 0]
    return np.asarray(rows[rows.sum(axis=1) == totals])
