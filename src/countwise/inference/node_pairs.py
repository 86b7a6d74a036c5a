"""The joint law of two nodes of different families, along the paths from their common ancestor.

Given the count of its parent, a node knows nothing of the rest of the tree. So the joint law of
two nodes is that of the two siblings above them, carried down by P(child | parent) step by step.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from countwise.arrays import FloatArray
from countwise.inference.sibling_sums import Sum, step_laws
from countwise.sumproduct.tree import Solved

MOST_PAIRS = 2e8  # entries of a table of two counts: 1.6 GB of doubles

Node = tuple[int, int]


@dataclass(frozen=True, kw_only=True, eq=False)
class PairLaw:
    """P(first = lows[0] + i, second = lows[1] + j) = chances[i, j]."""

    lows: tuple[int, int]
    chances: FloatArray

    def of_zero_or_more(self) -> "PairLaw | None":
        """The law when neither is negative; None where that has no probability."""
        skip = max(-self.lows[0], 0), max(-self.lows[1], 0)
        chances = self.chances[skip[0] :, skip[1] :]
        total = chances.sum()
        if not total > 0.0:
            return None
        lows = max(self.lows[0], 0), max(self.lows[1], 0)
        return PairLaw(lows=lows, chances=chances / total)

    def combined(self, multiples: tuple[int, int]) -> tuple[int, FloatArray]:
        """The law of a sum of multiples of the two."""
        (a, b), (rows, columns) = multiples, self.chances.shape
        values = a * (self.lows[0] + np.arange(rows))[:, None]
        values = values + b * (self.lows[1] + np.arange(columns))
        least = int(values.min())
        law = np.bincount((values - least).ravel(), self.chances.ravel())
        return least, np.asarray(law, np.float64)


def joint_law(solved: Solved, first: Node, second: Node) -> PairLaw | None:
    """The joint law of two different nodes; None where it would cost too much."""
    one, other = path(solved, first), path(solved, second)
    meeting = sum(a == b for a, b in zip(one, other, strict=False)) - 1
    if len(one) > len(other):
        turned = joint_law(solved, second, first)
        return turned and PairLaw(lows=turned.lows[::-1], chances=turned.chances.T)
    if meeting == len(one) - 1:  # the first is above the second
        low, law = marginal(solved, one[-1])
        return _carried(
            solved, PairLaw(lows=(low, low), chances=np.diag(law)), [one[-1:], other[meeting:]]
        )
    start = _of_siblings(solved, one[meeting], one[meeting + 1], other[meeting + 1])
    if start is None:
        return None
    return _carried(solved, start, [one[meeting + 1 :], other[meeting + 1 :]])


def path(solved: Solved, node: Node) -> list[Node]:
    """The nodes from the root to this one."""
    found = [node]
    for level in range(node[0], 0, -1):
        found.append((level - 1, solved.hierarchy.parent(level, found[-1][1])))
    return found[::-1]


def marginal(solved: Solved, node: Node) -> tuple[int, FloatArray]:
    """The posterior of one node that is a parent: the law of its children's sum."""
    if node[0] == 0:
        low, law = solved.root.one(0)
    else:
        low, law = solved.family(node[0], node[1], node[1] + 1).sums.one(0)
    return low, law / law.sum()


def _carried(solved: Solved, start: PairLaw, paths: list[list[Node]]) -> PairLaw | None:
    """A joint law of the first nodes of two paths, carried down to their ends."""
    lows, chances = list(start.lows), start.chances
    for axis, nodes in enumerate(paths):
        for parent, child in pairwise(nodes):
            found = given_parent(solved, parent, child, lows[axis], chances.shape[axis])
            if found is None:
                return None
            lows[axis], table = found
            chances = table.T @ chances if axis == 0 else chances @ table
    return PairLaw(lows=(lows[0], lows[1]), chances=chances / chances.sum())


def given_parent(
    solved: Solved, parent: Node, child: Node, low: int, size: int
) -> tuple[int, FloatArray] | None:
    """The lowest count of a child, and P(child | parent) with a row for each count of the parent.

    Rows of counts that the parent can not have are zero.
    """
    place = child[1] - solved.hierarchy.children(*parent).start
    laws = _laws(solved, parent, [place])
    if laws is None:
        return None
    lowest, width = _hull([step[0] for step in laws])
    if size * width * len(laws) > MOST_PAIRS:
        return None
    t, x = low + np.arange(size)[:, None], lowest + np.arange(width)
    table = np.zeros((size, width))
    for share, ((first, law, _), (rest_low, rest, _)) in zip(_shares(laws), laws, strict=True):
        at = t - x - rest_low
        inside = (at >= 0) & (at < len(rest))
        others = np.where(inside, rest[np.where(inside, at, 0)], 0.0)
        table[:, first - lowest : first - lowest + len(law)] += (
            share * law * others[:, first - lowest : first - lowest + len(law)]
        )
    sums = table.sum(axis=1, keepdims=True)
    return lowest, np.divide(table, sums, out=np.zeros_like(table), where=sums > 0.0)


def _of_siblings(solved: Solved, parent: Node, first: Node, second: Node) -> PairLaw | None:
    base = solved.hierarchy.children(*parent).start
    laws = _laws(solved, parent, [first[1] - base, second[1] - base])
    if laws is None:
        return None
    (row_low, rows), (low, columns) = (_hull([step[i] for step in laws]) for i in (0, 1))
    if rows * columns * len(laws) > MOST_PAIRS:
        return None
    coupled_low, coupling = solved.couplings[parent[0]].one(parent[1])
    table = np.zeros((rows, columns))
    for share, (one, other, rest) in zip(_shares(laws), laws, strict=True):
        allowed = np.correlate(coupling, rest[1], mode="full")
        allowed_low = coupled_low - rest[0] - (len(rest[1]) - 1)
        at = (one[0] + np.arange(len(one[1])))[:, None] + other[0] + np.arange(len(other[1]))
        at = at - allowed_low
        inside = (at >= 0) & (at < len(allowed))
        known = np.where(inside, allowed[np.where(inside, at, 0)], 0.0)
        here = slice(one[0] - row_low, one[0] - row_low + len(one[1]))
        there = slice(other[0] - low, other[0] - low + len(other[1]))
        table[here, there] += share * one[1][:, None] * other[1] * known
    return PairLaw(lows=(row_low, low), chances=np.maximum(table, 0.0) / table.sum())


def _laws(solved: Solved, parent: Node, places: list[int]) -> list[list[Sum]] | None:
    """For each step, the law of each of some children and of the sum of the others."""
    children = solved.children(parent[0], parent[1], parent[1] + 1)
    steps = solved.ties.steps(*parent, children)
    if not steps.separable:
        return None
    rest = np.setdiff1d(np.arange(children.nodes), places)
    return step_laws(steps, children, [*(np.array([place]) for place in places), rest])


def _hull(sums: list[Sum]) -> tuple[int, int]:
    low = min(each[0] for each in sums)
    return low, max(each[0] + len(each[1]) for each in sums) - low


def _shares(laws: list[list[Sum]]) -> FloatArray:
    logs = np.array([sum(law[2] for law in step) for step in laws])
    return np.asarray(np.exp(logs - logs.max()))
