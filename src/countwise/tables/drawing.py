"""Tables as people draw them: rows by columns, with a total after its parts, on both sides.

The columns are the categories of the last variable; of a tree, the labels of its last level where
most parents have most of them. Where there is one variable only, or its labels are not shared,
there is one column.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

Labels = tuple[str | None, ...]
"""A label for each level, None where its categories are counted together."""
COUNT = "count"
NOTHING = -1
"""Where a row has no such category."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawing:
    """Counts by rows and columns, each told by labels of levels."""

    heads: tuple[str, ...]
    rows: Sequence[Labels]
    across: tuple[str, ...]
    """The levels that columns are told by; none where there is one column."""
    columns: Sequence[Labels]
    counts: IntArray

    def headings(self, total: str) -> list[str]:
        """What stands above the columns: the finest label, or all where that is not enough."""
        if not self.across:
            return [COUNT]
        short = [_finest(each) or total for each in self.columns]
        return [
            name if short.count(name) == 1 else " / ".join(filter(None, labels))
            for name, labels in zip(short, self.columns, strict=True)
        ]

    def labelled(self, total: str) -> list[tuple[str, ...]]:
        """The labels of rows, with the word for totals."""
        return [tuple(label or total for label in row) for row in self.rows]

    def frame(self, *, total: str) -> pl.DataFrame:
        """The drawing as a table with the word for totals, refused where that is a label."""
        self._refuse(total)
        labels = zip(*self.labelled(total), strict=True)
        columns = dict(zip(self.heads, labels, strict=True)) if self.heads else {}
        counts = zip(self.headings(total), self.counts.T, strict=True)
        values = {name: pl.Series(column, dtype=pl.Int64) for name, column in counts}
        return pl.DataFrame(
            {name: list(each) for name, each in columns.items()} | values
        ).with_columns(pl.when(pl.col(name) != NOTHING).then(pl.col(name)) for name in values)

    def _refuse(self, total: str) -> None:
        for levels, found in ((self.heads, self.rows), (self.across, self.columns)):
            for name, labels in zip(levels, zip(*found, strict=True), strict=True):
                if total in labels or total == name:
                    raise TableError(
                        f"level {name!r} has a label {total!r}, the name of totals. To fix, choose "
                        "another one with --total-code."
                    )
        clash = set(self.headings(total)) & set(self.heads)
        if clash:
            raise TableError(f"{min(clash)!r} is a label of the last level and a level column.")


def draw_margin(workload: Workload, margin: Margin, counts: IntArray) -> Drawing:
    """A table of variables that cross."""
    values = counts.reshape(workload.shape_of(margin))
    used = [axis for axis, level in enumerate(margin.levels) if level]
    nodes = []
    for axis in used:
        variable, level = workload.variables[axis], margin.levels[axis]
        values, labels = _with_totals(values, axis, variable, level)
        nodes.append(labels)
    names = [workload.variables[a].levels[: margin.levels[a]] for a in used]
    crossed = len(used) > 1
    above, last = (nodes[:-1], nodes[-1]) if crossed else (nodes, [()])
    rows = [sum(each, ()) for each in product(*above)]
    return Drawing(
        heads=sum(names[:-1] if crossed else names, ()),
        rows=rows,
        across=names[-1] if crossed else (),
        columns=last,
        counts=values.reshape(prod(map(len, above)), len(last)),
    )


def _with_totals(
    values: IntArray, axis: int, variable: Variable, level: int
) -> tuple[IntArray, list[Labels]]:
    """One axis with the categories of all coarser levels too, each after its parts."""
    parts = [
        np.add.reduceat(values, variable.starts(depth, within=level), axis=axis)
        for depth in range(level)
    ]
    order, labels = _after_parts(variable.tree, level)
    return np.take(np.concatenate([*parts, values], axis=axis), order, axis=axis), labels


def _after_parts(tree: Hierarchy, level: int) -> tuple[IntArray, list[Labels]]:
    """The nodes of all levels down to one, each after its parts: their places, and labels."""
    labels: list[Labels] = []
    ends, depths = [], []
    for depth in range(level + 1):
        labels += tree.frame(depth).select(tree.by[:level]).rows()
        starts = np.arange(tree.sizes[depth] + 1)
        for offsets in tree.offsets[depth:level]:
            starts = offsets[starts]
        ends.append(starts[1:])
        depths.append(np.full(tree.sizes[depth], -depth))
    order = np.lexsort((np.concatenate(depths), np.concatenate(ends)))
    return order, [labels[i] for i in order]


def draw_tree(hierarchy: Hierarchy, cells: IntArray) -> Drawing:
    """A table of one tree of levels."""
    *outer, last = hierarchy.by
    if not outer or 2 * hierarchy.cells <= hierarchy.sizes[-2] * len(hierarchy.labels[-1]):
        order, labels = _after_parts(hierarchy, len(hierarchy.by))
        sums = np.concatenate(hierarchy.sums(cells))[order]
        return Drawing(
            heads=hierarchy.by, rows=labels, across=(), columns=[()], counts=sums[:, np.newaxis]
        )
    width, codes = len(hierarchy.labels[-1]), hierarchy.codes[-1].astype(np.int64)
    parents = np.arange(hierarchy.cells)
    blocks: list[IntArray] = []
    for depth in range(len(outer), -1, -1):
        parents = (
            hierarchy.parents(len(hierarchy.by))
            if depth == len(outer)
            else (hierarchy.parents(depth + 1)[parents])
        )
        block = np.full((hierarchy.sizes[depth], width + 1), NOTHING, dtype=np.int64)
        block[parents, codes] = 0
        np.add.at(block, (parents, codes), cells)
        block[:, -1] = np.maximum(block[:, :-1], 0).sum(axis=1)
        blocks.append(block)
    order, labels = _after_parts(hierarchy, len(outer))
    return Drawing(
        heads=tuple(outer),
        rows=labels,
        across=(last,),
        columns=[*((label,) for label in hierarchy.labels[-1]), (None,)],
        counts=np.concatenate(blocks[::-1])[order],
    )


def _finest(labels: Labels) -> str | None:
    """The label of the finest level that has one."""
    return next((label for label in reversed(labels) if label is not None), None)
