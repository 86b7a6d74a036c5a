"""Wide cross-tables: the last level's categories are columns, the levels above are rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.files import column_names, load, name_of, without_blank
from countwise.tables.frames import Table
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.table_file import TableFile

TOTAL = "Total"
NAMELESS = re.compile(r"_duplicated_\d+")
"""What the parser calls further columns without a name."""


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

    def subject(self, column: str) -> str:  # noqa: ARG002
        """No column of the file has the name of the count."""
        return "the count"


def load_crosstab(
    table: Table, by: Sequence[str], count: str, reading: Reading = PLAIN
) -> CrossSource:
    """A cross-table in a file: columns that are no level are categories of the last level."""
    *outer, last = by
    names = column_names(table, reading, outer)
    categories = tuple(name for name in names if name not in outer)
    if last in categories:
        raise TableError(
            f"{name_of(table)}: the table has a column {last!r}, so it is not wide: a wide table "
            f"has one column for each label of {last!r}. To fix, use --layout long."
        )
    if not categories:
        raise TableError(
            f"{name_of(table)}: no columns but {', '.join(outer)}; it needs one a category."
        )
    source = load(table, outer, categories, reading=reading)
    height = sum(each.height for each in source.parts) or len(source.frame)
    source = without_blank(source)
    categories = _named(source, categories, names)
    frame = source.frame.unpivot(
        on=list(categories), index=outer, variable_name=last, value_name=count
    )
    places = np.arange(len(source.frame)) if source.rows is None else source.rows
    shift = np.arange(len(categories))[:, np.newaxis] * height
    return CrossSource(
        path=source.path,
        frame=frame,
        first_row=source.first_row,
        rows=(places + shift).ravel(),
        parts=source.parts,
        thousands=source.thousands,
        height=height,
        columns=tuple(names.index(name) + 1 for name in categories),
    )


def _named(source: TableFile, categories: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    """The categories without empty columns that have no name, which spreadsheets leave."""
    named = []
    for name in categories:
        if name.strip() and not NAMELESS.fullmatch(name):
            named.append(name)
        elif source.frame[name].cast(pl.String).str.strip_chars().fill_null("").ne("").any():
            raise TableError(
                f"{source.path}: column {names.index(name) + 1} has counts and no name in the "
                "line of the header. To fix, name it, or empty it."
            )
    return tuple(named)


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
