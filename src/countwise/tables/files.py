"""Columns of CSV and Parquet files, whole or some rows of them.

Every refusal names the file, the row as an editor shows it, and a column that was asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.file_faults import is_parquet, missing_column, parsing

ROW = "countwise row"


@dataclass(frozen=True, kw_only=True, eq=False)
class TableFile:
    """A file as a frame of the wanted columns, able to say where a row stands."""

    path: Path
    frame: pl.DataFrame
    first_row: int
    rows: IntArray | None = None
    """For each row of the frame its row in the file, where some were left out."""

    def where(self, row: int) -> str:
        """The place of a row of the frame, counted as an editor or viewer of the file counts."""
        return f"{self.path}, {self.place(row)}"

    def place(self, row: int) -> str:
        """The same within the file."""
        return self.place_in_file(row if self.rows is None else int(self.rows[row]))

    def place_in_file(self, row: int) -> str:
        """The place of a row of the file, counted from 0."""
        return f"row {row + self.first_row}"


Loader = Callable[[Path, Sequence[str], str], TableFile]
"""From a file, level columns and a count column to one row a cell with those columns."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some rows of a file: a range, and of these the ones that meet a condition."""

    first: int
    count: int | None
    condition: pl.Expr | None = None


def load(
    path: Path, by: Sequence[str], others: Sequence[str], *, rows: Rows | None = None
) -> TableFile:
    """The named columns of a CSV or Parquet file: labels as text, and so the rest of a CSV."""
    columns = [*by, *others]
    refuse_missing(path)
    if path.stat().st_size == 0:
        raise TableError(f"{path}: the file is empty; it needs the columns {', '.join(columns)}.")
    with parsing(path):
        lazy = scan(path, row_index=None if rows is None else ROW)
        schema = checked_schema(path, lazy, by, others)
        if rows is not None:
            return _part(path, lazy, schema, by, others, rows)
        frame = lazy.select(pl.col(by).cast(pl.String), *others).collect()
    if frame.is_empty():
        raise TableError(f"{path}: the file has a header and no rows; it needs one row a cell.")
    return TableFile(path=path, frame=frame, first_row=first_row(path))


def _part(
    path: Path,
    lazy: pl.LazyFrame,
    schema: pl.Schema,
    by: Sequence[str],
    others: Sequence[str],
    rows: Rows,
) -> TableFile:
    chosen = lazy.slice(rows.first, rows.count)
    if rows.condition is not None:
        chosen = chosen.filter(rows.condition)
    # Labels that are numbered already stay so: it is the numbers that are wanted in the end.
    labels = [
        pl.col(name) if schema[name] == pl.Categorical else pl.col(name).cast(pl.String)
        for name in by
    ]
    frame = chosen.select(ROW, *labels, *others).collect(engine="streaming").sort(ROW)
    places = frame[ROW].cast(pl.Int64).to_numpy()
    return TableFile(path=path, frame=frame.drop(ROW), first_row=first_row(path), rows=places)


def checked_schema(
    path: Path, lazy: pl.LazyFrame, by: Sequence[str], others: Sequence[str]
) -> pl.Schema:
    """The types of a file's columns, once those asked for are there and labels can be text."""
    schema = lazy.collect_schema()
    names = [name for name in schema if name != ROW]
    for column in (*by, *others):
        if column not in names:
            raise TableError(missing_column(str(path), column, names))
    for name in by:
        _refuse_no_label(path, name, schema[name])
    return schema


def _refuse_no_label(path: Path, name: str, kind: pl.DataType) -> None:
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        raise TableError(
            f"{path}: level column {name!r} has values of type {type_name(kind)}. To fix, make it "
            "a column of text."
        )


def type_name(kind: pl.DataType) -> str:
    """The name of a type without what belongs to one file, such as names of fields."""
    return str(kind.base_type().__name__)


def first_row(path: Path) -> int:
    """The number that an editor or viewer gives the first row after the header."""
    return 1 if is_parquet(path) else 2


def scan(path: Path, *, row_index: str | None = None) -> pl.LazyFrame:
    """A file to be read in part, its rows numbered if asked."""
    if is_parquet(path):
        return pl.scan_parquet(path, glob=False, row_index_name=row_index)
    return pl.scan_csv(path, infer_schema=False, glob=False, row_index_name=row_index)


def column_names(path: Path) -> list[str]:
    """The columns of a CSV or Parquet file."""
    refuse_missing(path)
    with parsing(path):
        return scan(path).collect_schema().names()


def refuse_missing(path: Path) -> None:
    """A file must be there to be read."""
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
