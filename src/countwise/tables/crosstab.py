"""Wide cross-tables: the last level's categories are columns, the levels above are rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.files import TableFile, column_names, load
from countwise.tables.hierarchy import Hierarchy

TOTAL = "Total"


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossSource(TableFile):
    """A cross-table as one row a cell, able to say which row and column a cell stood in.

    Columns are told by their numbers: in a faulty file what stands for a name can be a count.
    """

    height: int
    columns: tuple[int, ...]

    def place_in_file(self, row: int) -> str:
        """The row and column of a cell in the file."""
        return (
            f"{super().place_in_file(row % self.height)}, column {self.columns[row // self.height]}"
        )


def load_crosstab(path: Path, by: Sequence[str], count: str) -> TableFile:
    """A cross-table in a file: columns that are no level are categories of the last level."""
    *outer, last = by
    names = column_names(path)
    categories = tuple(name for name in names if name not in outer)
    if last in categories:
        raise TableError(
            f"{path}: the table has a column {last!r}, so it is not wide: a wide table has one "
            f"column for each label of {last!r}. To fix, use --layout long."
        )
    if not categories:
        raise TableError(f"{path}: no columns but {', '.join(outer)}; it needs one a category.")
    source = load(path, outer, categories)
    frame = source.frame.unpivot(
        on=list(categories), index=outer, variable_name=last, value_name=count
    )
    return CrossSource(
        path=path,
        frame=frame,
        first_row=source.first_row,
        height=len(source.frame),
        columns=tuple(names.index(name) + 1 for name in categories),
    )


def crosstab(hierarchy: Hierarchy, cells: IntArray, *, total: str = TOTAL) -> pl.DataFrame:
    """Counts as a cross-table, with a column of totals and a total row for each outer node.

    A label that is the total code itself is refused; a category that a row does not have is
    left empty.
    """
    *outer, last = hierarchy.by
    _refuse_total_label(hierarchy, total)
    long = hierarchy.frame(len(hierarchy.by), count=cells).with_columns(
        pl.col(hierarchy.by).cast(pl.String)
    )
    parts = []
    for depth in range(len(outer), -1, -1):
        within = outer[:depth]
        sums = long.group_by([*within, last], maintain_order=True).agg(pl.col("count").sum())
        parts.append(sums.with_columns(pl.lit(total).alias(name) for name in outer[depth:]))
    stacked = pl.concat(part.select(*outer, last, "count") for part in parts)
    categories = list(hierarchy.labels[-1])
    if not outer:
        wide = stacked.with_columns(pl.lit(total).alias("")).pivot(
            last, on_columns=categories, index="", values="count"
        )
        return wide.drop("").with_columns(pl.sum_horizontal(categories).alias(total))
    wide = stacked.pivot(last, on_columns=categories, index=outer, values="count")
    return wide.with_columns(pl.sum_horizontal(categories).alias(total))


def _refuse_total_label(hierarchy: Hierarchy, total: str) -> None:
    for name, labels in zip(hierarchy.by, hierarchy.labels, strict=True):
        if total in labels or total == name:
            raise TableError(
                f"level {name!r} has a label {total!r}, the name of totals. To fix, choose "
                "another one with --total-code."
            )
    clash = set(hierarchy.labels[-1]) & set(hierarchy.by)
    if clash:
        raise TableError(f"{min(clash)!r} is a label of the last level and a level column.")
