"""Counts of tables that cross which are published as they are, or can only be zero.

A pattern of zeros picks cells by their labels; every count that has no other cells is zero with
them. What is exact is whole tables, and with them every table that is a sum of theirs.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from countwise.arrays import BoolArray, IntArray, frozen
from countwise.errors import PlanError, TableError
from countwise.tables.hierarchy import ROOT
from countwise.tables.invariants import Invariants
from countwise.tables.notation import Names, margin_of
from countwise.tables.pattern import Pattern, label_code
from countwise.tables.workload import Margin, Workload

ANY = "*"


def crossed_pattern(pattern: Pattern) -> Pattern:
    """The pattern with `*` read as any label."""
    return Pattern(tuple((name, None if to == ANY else to) for name, to in pattern.labels))


def margin_named_by(pattern: Pattern, names: Names) -> Margin:
    """The table of the levels that a pattern names."""
    return margin_of(":".join(level for level, _ in pattern.labels), names)


def exact_margins(patterns: Sequence[Pattern], names: Names) -> tuple[Margin, ...]:
    """The tables that are exact, none of them a sum of another one."""
    for pattern in patterns:
        if any(label is not None for _, label in pattern.labels):
            raise PlanError(
                f"exact {pattern}: of tables that cross whole ones are exact, such as county or "
                "county,sex. To fix, leave the labels out."
            )
    found = list(dict.fromkeys(margin_named_by(each, names) for each in patterns))
    return tuple(m for m in found if not any(n != m and n.covers(m) for n in found))


def possible_people(workload: Workload, zeros: Sequence[Pattern]) -> BoolArray:
    """The cells that people can be in, by the patterns of those that can only be zero."""
    possible = np.ones(workload.shape, dtype=np.bool_)
    for pattern in zeros:
        picked = np.ones((1,) * len(workload.variables), dtype=np.bool_)
        for axis, variable in enumerate(workload.variables):
            codes = variable.tree.path_codes(len(variable.levels))
            chosen = np.ones(variable.leaves, dtype=np.bool_)
            for level, label in pattern.labels:
                if level in variable.levels and label is not None:
                    depth = variable.levels.index(level)
                    chosen &= codes[depth] == label_code(pattern, variable.tree, depth, label)
            picked = picked & np.expand_dims(chosen, [i for i in range(picked.ndim) if i != axis])
        if not picked.any():
            raise PlanError(f"{pattern}: no cell has all of these labels.")
        possible &= ~np.broadcast_to(picked, workload.shape)
    return possible


def find_crossed_invariants(
    workload: Workload,
    measured: Sequence[Margin],
    exact: Sequence[Pattern],
    zeros: Sequence[Pattern],
) -> Invariants | None:
    """The exact counts of every measured table; None where a plan declares none."""
    if not exact and not zeros:
        return None
    known, possible = exact_margins(exact, workload.names), possible_people(workload, zeros)
    if workload.finest in known or not possible.any():
        raise PlanError(
            "every cell is declared exact or zero, so there is nothing to protect. To fix, "
            "declare fewer, or publish the table as it is."
        )
    if zeros and len(known) > 1:
        names = " and ".join(map(workload.name, known))
        raise PlanError(
            f"{names} are exact, and there are cells that can only be zero. To fix, keep one of "
            "these tables exact, or declare no zeros."
        )
    for pattern in zeros:
        margin = margin_named_by(pattern, workload.names)
        if not any(each.covers(margin) for each in measured):
            raise PlanError(
                f"zeros {pattern}: no measured table tells these counts apart. To fix, measure "
                f"{workload.name(margin)} or a finer table: --split names those that are measured."
            )
    people = possible.astype(np.int64)
    empty = [workload.sums(people, each).reshape(-1) == 0 for each in measured]
    whole = [any(each.covers(margin) for each in known) for margin in measured]
    certain = tuple(frozen(none | is_whole) for none, is_whole in zip(empty, whole, strict=True))
    return Invariants(
        declared=certain,
        exact=certain,
        zeros=tuple(frozen(each) for each in empty),
        impossible=frozen(~possible),
    )


def refuse_people(workload: Workload, cells: IntArray, known: Invariants) -> None:
    """A cell that can only be zero is empty; the refusal shows no count."""
    assert known.impossible is not None
    wrong = known.impossible & (cells.reshape(workload.shape) != 0)
    if wrong.any():
        place = named_counts(workload, workload.finest, wrong.reshape(-1), 1)
        raise TableError(
            f"{place} is declared a cell that can only be zero, and the table has someone in "
            "it. To fix, correct the records or take the cell out of the zeros."
        )


def named_counts(workload: Workload, margin: Margin, mask: BoolArray, most: int) -> str:
    """The first counts of a table in a mask, by their labels."""
    rows = workload.frame(margin).drop("level")[np.flatnonzero(mask)[:most]]
    labels = (filter(None, row) for row in rows.select(pl.all().cast(pl.String)).rows())
    return ", ".join("/".join(each) or ROOT for each in labels)
