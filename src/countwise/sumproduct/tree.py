"""Exact sum-product on a tree: messages up from the cells, and down from the root.

Up, the message of a node is what its subtree says about its count; down, it is what all the
rest says. Their product is the marginal. How the children of a parent are tied to it, and what
a node knows by itself, is the business of `Ties`; here they are only passed on. Parents are
taken a chunk at a time, so the cells of a large tree are never all in memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.progress import Tell, silent
from countwise.sumproduct.count_laws import Laws, joined
from countwise.sumproduct.step_mixture import Steps
from countwise.tables.hierarchy import Hierarchy

CHUNK = 8_192  # children solved at a time
EDGE = 1e-13  # share of mass at the end of a window that calls for a wider one
WIDENINGS = 12  # doublings: from any first depth to beyond the smallest float64
KEPT = 20_000_000  # values of a level's marginals that are kept; beyond, they are computed again


class Family(NamedTuple):
    """The children of a range of parents: marginals, messages, and the law of each sum."""

    marginals: Laws
    messages: Laws
    sums: Laws


class Ties(Protocol):
    """How parents and children hang together, and what each node knows by itself."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        ...

    @property
    def largest(self) -> int:
        """The largest count in any window of a cell."""
        ...

    @property
    def additive(self) -> bool:
        """Whether children are tied by their sum alone, so that maxima pass as sums do."""
        ...

    @property
    def cost(self) -> float:
        """About how many elementary operations messages take, where that can be very many."""
        ...

    def own(self, level: int, first: int, last: int, log_total: "TotalPrior | None" = None) -> Laws:
        """What nodes of a level know by themselves; of cells and the root, their prior included."""
        ...

    def up(self, level: int, first: int, last: int, children: Laws, own: Laws) -> Laws:
        """The upward messages of parents, each of mass 1; zero where nothing is possible."""
        ...

    def down(self, level: int, first: int, last: int, children: Laws, coupling: Laws) -> Family:
        """All about the children of parents when `coupling` holds of the parents."""
        ...

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The children of one parent as a mixture of coupled sums."""
        ...

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """Joint draws of the root's children; None where the root is drawn first, then split."""
        ...

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> "Ties | None":
        """The same with wider windows where the marginals touch an end; None if none can be."""
        ...

    def contradiction(self, touched: list[tuple[BoolArray, BoolArray]]) -> str:
        """Why there is no posterior, when nothing is possible at the nodes that are touched."""
        ...


@dataclass(frozen=True, kw_only=True)
class Solved:
    """Messages on a tree: `ups` of all levels between, `couplings` of all that have children.

    The root has no upward message; in its place stands what it knows by itself. ``kept`` has
    the marginals of the levels that are small enough to hold on to.
    """

    ties: Ties
    ups: tuple[Laws, ...]
    couplings: tuple[Laws, ...]
    kept: dict[int, list[Laws]]

    @property
    def root(self) -> Laws:
        """The posterior of the grand total."""
        return self.kept[0][0]

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        return self.ties.hierarchy

    def children(self, level: int, first: int, last: int) -> Laws:
        """Upward messages of the children of parents first to last - 1 of a level."""
        offsets = self.hierarchy.offsets[level]
        start, stop = int(offsets[first]), int(offsets[last])
        if level + 1 < len(self.ups):
            return self.ups[level + 1].part(start, stop)
        return self.ties.own(level + 1, start, stop)

    def family(self, level: int, first: int, last: int) -> Family:
        """All about the children of parents first to last - 1 of a level."""
        coupling = self.couplings[level].part(first, last)
        return self.ties.down(level, first, last, self.children(level, first, last), coupling)

    def marginals(self, level: int) -> Iterator[Laws]:
        """The posterior of every node of a level, chunk after chunk."""
        if level in self.kept:
            yield from self.kept[level]
            return
        for first, last in chunks(self.hierarchy.offsets[level - 1]):
            yield self.family(level - 1, first, last).marginals


def chunks(offsets: IntArray) -> Iterator[tuple[int, int]]:
    """Ranges of parents with about CHUNK children each."""
    first, parents = 0, len(offsets) - 1
    while first < parents:
        last = int(np.searchsorted(offsets, offsets[first] + CHUNK, side="right")) - 1
        last = min(max(last, first + 1), parents)
        yield first, last
        first = last


def solve(
    ties: Ties,
    *,
    log_total: "TotalPrior | None" = None,
    edge: float = EDGE,
    tell: Tell = silent,
) -> Solved:
    """Messages in both directions, in windows wide enough that no mass is at their ends."""
    for _ in range(WIDENINGS):
        solved, touched = _attempt(ties, log_total, edge, tell)
        wider = ties.widened(touched) if any(a.any() or b.any() for a, b in touched) else None
        if wider is None:
            if solved is None:
                break
            return solved
        ties = wider
    raise InputError(ties.contradiction(touched))


class TotalPrior(Protocol):
    """The factor of a prior that depends on the grand total."""

    def __call__(self, t: IntArray) -> FloatArray:
        """log t(ΣN)."""
        ...


Touched = list[tuple[BoolArray, BoolArray]]


def _attempt(
    ties: Ties, log_total: TotalPrior | None, edge: float, tell: Tell
) -> tuple[Solved | None, Touched]:
    """One pass up and down; with it, which windows end where there is mass."""
    tell("passing messages up")
    depth = len(ties.hierarchy.offsets)
    owns = [_own(ties, level, log_total) for level in range(depth)]
    ups = list(owns)
    for level in range(depth - 1, 0, -1):
        ups[level] = pass_up(ties, level, ups, owns[level])
        dead = ups[level].sums() == 0.0
        if dead.any():
            return None, _all_touched(ties.hierarchy, level, dead)
    tell("passing messages down")
    solved = Solved(ties=ties, ups=tuple(ups), couplings=(owns[0],), kept={})
    touched: Touched = []
    for level in range(depth):
        solved = pass_down(solved, level, owns, touched, edge=edge)
        if not solved.root.sums()[0] > 0.0:
            return None, _all_touched(ties.hierarchy, 0, np.ones(1, np.bool_))
    return solved, touched


def pass_down(
    solved: Solved, level: int, owns: list[Laws], touched: Touched, *, edge: float = EDGE
) -> Solved:
    """The same with the marginals of the next level, and what couples their children."""
    kept, messages, marginals, size = dict(solved.kept), [], [], 0
    ends = []
    for first, last in chunks(solved.hierarchy.offsets[level]):
        family = solved.family(level, first, last)
        if level == 0:
            kept[0] = [family.sums]
            touched.append(family.sums.touching(above=edge))
        elif not (family.marginals.sums() > 0.0).all():
            raise InputError(
                f"rounding lost the posterior below a {solved.hierarchy.levels[level]}: its counts "
                "and the rest of the release hardly meet under this prior. To fix, choose another "
                "prior."
            )
        ends.append(family.marginals.touching(above=edge))
        size += len(family.marginals.values)
        if size <= KEPT:
            marginals.append(family.marginals)
        if level + 1 < len(owns):
            messages.append(family.messages)
    touched.append((np.concatenate([e[0] for e in ends]), np.concatenate([e[1] for e in ends])))
    if size <= KEPT:
        kept[level + 1] = marginals
    couplings = solved.couplings
    if level + 1 < len(owns):
        couplings = (*couplings, owns[level + 1].times(joined(messages).values))
    return Solved(ties=solved.ties, ups=solved.ups, couplings=couplings, kept=kept)


def _own(ties: Ties, level: int, log_total: TotalPrior | None) -> Laws:
    return ties.own(level, 0, ties.hierarchy.sizes[level], None if level else log_total)


def pass_up(ties: Ties, level: int, ups: list[Laws], own: Laws) -> Laws:
    """The upward messages of a level from those of the level below."""
    offsets, parts = ties.hierarchy.offsets[level], []
    for first, last in chunks(offsets):
        start, stop = int(offsets[first]), int(offsets[last])
        below = level + 1 < len(ups)
        children = ups[level + 1].part(start, stop) if below else ties.own(level + 1, start, stop)
        parts.append(ties.up(level, first, last, children, own.part(first, last)))
    return joined(parts)


def _all_touched(hierarchy: Hierarchy, level: int, dead: BoolArray) -> Touched:
    """The parents where nothing is possible and all below them: wider windows may help."""
    touched = [(np.zeros(n, np.bool_), np.zeros(n, np.bool_)) for n in hierarchy.sizes]
    for below in range(level, len(hierarchy.sizes)):
        touched[below] = (dead, dead)
        if below < len(hierarchy.offsets):
            dead = np.repeat(dead, np.diff(hierarchy.offsets[below]))
    return touched
