"""What can be wrong with the rows of a table of counts, and in which row it is.

Each check is an expression, so that it can be made of a frame or, a part at a time, of a file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.confidential import MAX_COUNT
from countwise.tables.file_faults import parsing
from countwise.tables.files import ROW, TableFile, checked_schema, first_row, scan, type_name

Check = tuple[str, pl.Expr]
"""What is to be said of a row, and the rows of which it is true."""


def label_checks(by: Sequence[str]) -> list[Check]:
    """Every row has a label at every level, and a label is one line.

    A label of several lines is what a quotation mark that is not closed makes of the rows behind
    it, with their counts.
    """
    checks = []
    for name in by:
        label = pl.col(name).cast(pl.String)
        empty = (
            f"level column {name!r} is empty. Every row must be a cell with a label at every "
            "level; totals are not rows, they are sums."
        )
        lines = (
            f"level column {name!r} has a label of several lines. To fix, check the quotation "
            "marks there and in the rows above."
        )
        checks += [(empty, label.is_null() | (label == "")), (lines, label.str.contains(r"[\r\n]"))]
    return checks


@dataclass(frozen=True, kw_only=True)
class Counts:
    """A column that is to hold whole numbers within ±10^15, and none below `least`."""

    name: str
    kind: pl.DataType
    least: int | None

    @property
    def numbers(self) -> pl.Expr:
        """The values as whole numbers, null where they are none."""
        return self._given.cast(pl.Int64, strict=False)

    @property
    def size(self) -> pl.Expr:
        """The sum of the values without their signs, which can not overflow."""
        return self.numbers.cast(pl.Float64).abs().sum()

    @property
    def checks(self) -> list[Check]:
        """What can be wrong with a value, each given that those before it are not."""
        given, numbers = self._given, self.numbers
        blank = given.is_null() | (given == "") if self.kind == pl.String else given.is_null()
        outside = numbers.is_null() | (numbers > MAX_COUNT) | (numbers < -MAX_COUNT)
        found = [
            ("is missing", blank),
            ("is not a whole number", ~self._whole),
            ("is larger than 10^15", outside),
        ]
        if self.least is not None:
            found.append(("is negative; counts are 0 or more", numbers < self.least))
        rule = "A count must be a whole number from 0 to 10^15."
        return [(f"column {self.name!r} {what}. {rule}", bad) for what, bad in found]

    def refuse_sum(self, path: Path, size: float) -> None:
        """The values together are within bounds too."""
        if size > MAX_COUNT:
            raise TableError(f"{path}: column {self.name!r} adds up to more than 10^15.")

    @property
    def _given(self) -> pl.Expr:
        column = pl.col(self.name)
        return column.str.strip_chars() if self.kind == pl.String else column

    @property
    def _whole(self) -> pl.Expr:
        given = self._given
        if self.kind == pl.String:
            return given.str.contains(r"^[+-]?[0-9]+$")
        if self.kind.is_float():
            return given.is_finite() & (given.round(0) == given)
        return given % 1 == 0 if self.kind.is_decimal() else given.is_not_null()


def counts_of(path: Path, name: str, kind: pl.DataType, *, least: int | None) -> Counts:
    """The counts in a column of a file; a type that has no numbers is refused."""
    if kind not in (pl.String, pl.Null) and not kind.is_numeric():
        raise TableError(
            f"{path}: column {name!r} has values of type {type_name(kind)}. A count must be a "
            "whole number from 0 to 10^15."
        )
    return Counts(name=name, kind=kind, least=least)


def refuse_bad_labels(source: TableFile, by: Sequence[str]) -> None:
    """Refuse the first row whose labels are none."""
    found = _failed(source.frame.lazy().with_row_index(ROW), label_checks(by))
    if found is not None:
        raise TableError(f"{source.where(found[0])}: {found[1]}")


def whole_numbers(source: TableFile, column: str, *, least: int | None) -> IntArray:
    """A column of whole numbers, none below `least`, that add up to no more than 10^15."""
    counts = counts_of(source.path, column, source.frame.schema[column], least=least)
    found = _failed(source.frame.lazy().with_row_index(ROW), counts.checks)
    if found is not None:
        raise TableError(f"{source.where(found[0])}: {found[1]}")
    numbers, size = source.frame.select(counts.numbers), source.frame.select(counts.size)
    counts.refuse_sum(source.path, size.item())
    return numbers.to_series().to_numpy().copy()


def refuse_bad_rows(path: Path, by: Sequence[str], column: str) -> None:
    """Refuse a file for the labels and counts of any row, and hold none of them."""
    with parsing(path):
        lazy = scan(path, row_index=ROW)
        schema = checked_schema(path, lazy, by, [column])
        counts = counts_of(path, column, schema[column], least=0)
        found = _failed(lazy, [*label_checks(by), *counts.checks])
        size = lazy.select(counts.size).collect(engine="streaming").item()
    if found is not None:
        raise TableError(f"{path}, row {found[0] + first_row(path)}: {found[1]}")
    counts.refuse_sum(path, size)


def _failed(lazy: pl.LazyFrame, checks: Sequence[Check]) -> tuple[int, str] | None:
    """The first check that fails, by the first row where it does."""
    rows = [
        pl.col(ROW).filter(bad.fill_null(value=False)).min().cast(pl.Int64).alias(str(i))
        for i, (_, bad) in enumerate(checks)
    ]
    first = lazy.select(rows).collect(engine="streaming").row(0)
    for row, (what, _) in zip(first, checks, strict=True):
        if row is not None:
            return row, what
    return None
