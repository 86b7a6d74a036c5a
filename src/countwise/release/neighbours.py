"""Pairs of public tables that differ in one person: what a promise is about, made to be tried."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import IntArray
from countwise.errors import PlanError, TableError
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import StatedLoss, make_promise
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named

ROWS_A_CELL = 10
"""How many times the rows of a person are in every cell of a table that is made here."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """The cells of two tables, what one person does between them, and the loss stated for it."""

    hierarchy: Hierarchy
    tables: tuple[IntArray, IntArray]
    what: str
    stated: StatedLoss

    def changes(self) -> tuple[IntArray, ...]:
        """How far the counts of each level are apart."""
        return self.hierarchy.sums(self.tables[0] - self.tables[1])


def widest_pair(hierarchy: Hierarchy, plan: Plan, budget: Budget) -> Pair:
    """The tables of one person's difference that the plan's noise hides least."""
    pairs = list(_pairs(hierarchy, plan, budget))
    if not pairs:
        raise PlanError(
            "no person can change a count of this plan that is not exact, so there is nothing to "
            "try. To fix, declare fewer counts exact, or use tables of more than one cell."
        )
    return max(pairs, key=lambda pair: distance(pair, budget))


def distance(pair: Pair, budget: Budget) -> float:
    """What the pair costs by the plan's scales, in its unit."""
    total = 0.0
    for each, change in zip(budget.levels, pair.changes(), strict=True):
        if each.loss:
            apart = np.abs(change / float(each.law.scale))
            total += float(apart.sum() if budget.unit == "epsilon" else (apart**2).sum() / 2)
    return total


def given_pair(
    hierarchy: Hierarchy, plan: Plan, budget: Budget, tables: tuple[IntArray, IntArray]
) -> Pair:
    """Two tables of a steward's own, refused unless one person is between them."""
    change = tables[0] - tables[1]
    _refuse_changed_exact(hierarchy, budget, change)
    gone, come = int(np.maximum(change, 0).sum()), int(np.maximum(-change, 0).sum())
    promise, rows = make_promise(plan.neighbours, budget), plan.rows
    one_way = min(gone, come) == 0
    fits = 0 < max(gone, come) <= rows
    if plan.neighbours == "add-remove" and one_way and fits:
        what = f"someone with {gone + come} row{'' if gone + come == 1 else 's'} comes or goes"
        return Pair(hierarchy=hierarchy, tables=tables, what=what, stated=promise.stated)
    replaced = plan.neighbours == "replace-one" and abs(gone - come) < rows
    if fits and (replaced or (promise.conditional and plan.neighbours == "add-remove")):
        what = "someone's rows are elsewhere" + (", within exact counts" * promise.conditional)
        return Pair(hierarchy=hierarchy, tables=tables, what=what, stated=promise.within)
    raise TableError(
        f"the two tables are not neighbours under {plan.neighbours} with {rows} row"
        f"{'' if rows == 1 else 's'} a person. To fix, give tables that differ in one person, or "
        "leave both out."
    )


def _refuse_changed_exact(hierarchy: Hierarchy, budget: Budget, change: IntArray) -> None:
    if budget.exact is None:
        return
    for level, (mask, moved) in enumerate(zip(budget.exact, hierarchy.sums(change), strict=True)):
        if (mask & (moved != 0)).any():
            node = named(hierarchy, level, int(np.argmax(mask & (moved != 0))))
            raise TableError(
                f"the two tables differ in {node}, which is declared exact: nothing is promised "
                "between them. To fix, give tables that agree on the exact counts."
            )


def _pairs(hierarchy: Hierarchy, plan: Plan, budget: Budget) -> Iterator[Pair]:
    """Candidates: someone gathered in one cell comes or goes, or is in another as far away."""
    zeros = np.zeros(hierarchy.cells, dtype=np.bool_)
    if budget.invariants is not None:
        zeros = budget.invariants.zeros[-1]
    start = np.where(zeros, 0, ROWS_A_CELL * plan.rows).astype(np.int64)
    promise, rows = make_promise(plan.neighbours, budget), plan.rows
    within = ", within exact counts" if promise.conditional else ""

    def pair(what: str, loss: StatedLoss, *moves: tuple[int, int]) -> Pair:
        other = start.copy()
        for cell, by in moves:
            other[cell] += by
        return Pair(hierarchy=hierarchy, tables=(start, other), what=what, stated=loss)

    for first, last, free in _families(hierarchy, budget):
        if plan.neighbours == "add-remove" and free:
            yield pair("someone comes or goes", promise.stated, (first, -rows))
        if first == last or (plan.neighbours == "add-remove" and not promise.conditional):
            continue
        what = f"someone's rows are elsewhere{within}"
        yield pair(what, promise.within, (first, -rows), (last, rows))
        if free and rows > 1 and plan.neighbours == "replace-one":
            yield pair(f"{what}, and fewer", promise.within, (first, -rows), (last, 1))


def _families(hierarchy: Hierarchy, budget: Budget) -> Iterator[tuple[int, int, bool]]:
    """Cells that share their exact counts: the first, the last, and whether they are in none."""
    if budget.exact is None:
        yield 0, hierarchy.cells - 1, True
        return
    above = np.full(hierarchy.cells, -1, dtype=np.int64)
    numbered = 0
    for mask, nodes in zip(budget.exact, _paths(hierarchy), strict=True):
        above = np.where(mask[nodes], numbered + nodes, above)
        numbered += len(mask)
    cells = np.flatnonzero(~budget.exact[-1])
    for family in np.unique(above[cells]):
        members = cells[above[cells] == family]
        yield int(members[0]), int(members[-1]), bool(family < 0)


def _paths(hierarchy: Hierarchy) -> Sequence[IntArray]:
    """For each level, the node above every cell."""
    nodes = [np.arange(hierarchy.cells)]
    for offsets in reversed(hierarchy.offsets):
        nodes.append(np.searchsorted(offsets, nodes[-1], side="right") - 1)
    return nodes[::-1]
