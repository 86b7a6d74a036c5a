"""Tables of counts and lists of cells from CSV and Parquet files.

Every refusal names the file, the row as an editor shows it, and the column. None shows a count.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.confidential import MAX_COUNT, Confidential
from countwise.tables.hierarchy import Hierarchy, build, check_level_names, listed

ROW = "countwise row"

NO_DOMAIN = (
    "the list of cells must be public, because a cell that appears only when someone is in it "
    "tells that someone is. To fix, give the public list with --domain cells.csv, or state with "
    "--cells-are-public that the rows of the table are that list (empty cells included, as zeros)."
)


class PublicCellsWarning(UserWarning):
    """The rows of a table were taken as the public list of cells without saying so."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file as a frame of the wanted columns, able to say where a row stands."""

    path: Path
    frame: pl.DataFrame
    first_row: int
    rows: IntArray | None = None
    """For each row of the frame its row in the file, where some were left out."""

    def where(self, row: int) -> str:
        """The place of a row of the frame, counted as an editor or viewer of the file counts."""
        return self.place(row if self.rows is None else int(self.rows[row]))

    def place(self, row: int) -> str:
        """The place of a row of the file, counted from 0."""
        return f"{self.path}, row {row + self.first_row}"


Loader = Callable[[Path, Sequence[str], str], Source]
"""From a file, level columns and a count column to one row a cell with those columns."""


def read_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
) -> Confidential:
    """The confidential table in a file: one row a cell, level columns outer to inner, a count.

    The cells are those of the public `domain` file; cells without a row are zeros. Without a
    domain the rows of the table are the cells, which is right only when that list is public:
    say so with `cells_are_public=True`. A `loader` reads files of another layout.
    """
    if domain is None and cells_are_public is False:
        raise TableError(NO_DOMAIN)
    if domain is None and cells_are_public is None:
        warnings.warn(
            f"the rows of {path} are taken as the public list of cells. Say so with "
            "cells_are_public=True, or give the list with domain=…",
            PublicCellsWarning,
            stacklevel=2,
        )
    return Confidential(*read_public_counts(path, by=by, count=count, domain=domain, loader=loader))


def read_public_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    domain: str | Path | None = None,
    loader: Loader | None = None,
) -> tuple[Hierarchy, IntArray]:
    """Counts that need no protection, such as a public stand-in: the cells and their counts."""
    by = listed(by)
    check_level_names(by)
    if count in by:
        raise TableError(f"column {count!r} can not be a level and the count.")
    source = load(Path(path), by, [count]) if loader is None else loader(Path(path), by, count)
    refuse_empty_labels(source, by)
    counts = whole_numbers(source, count, least=0)
    if domain is not None:
        hierarchy = read_domain(domain, by=by)
        return hierarchy, placed(source, counts, hierarchy, domain=Path(domain))
    hierarchy, order = unique_cells(source, by)
    return hierarchy, counts[order]


def read_domain(path: str | Path, *, by: Sequence[str]) -> Hierarchy:
    """The public cells: one row each, level columns outer to inner, or a domain in TOML."""
    by = listed(by)
    check_level_names(by)
    if Path(path).suffix.lower() == ".toml":
        from countwise.tables.domainfile import read_domain_file

        return read_domain_file(path, by=by).hierarchy
    source = load(Path(path), by, [])
    refuse_empty_labels(source, by)
    return unique_cells(source, by)[0]


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some rows of a file: a range, and of these the ones that meet a condition."""

    first: int
    count: int | None
    condition: pl.Expr | None = None


def load(
    path: Path, by: Sequence[str], others: Sequence[str], *, rows: Rows | None = None
) -> Source:
    """The named columns of a CSV or Parquet file: labels as text, and so the rest of a CSV."""
    columns = [*by, *others]
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    if path.stat().st_size == 0:
        raise TableError(f"{path}: the file is empty; it needs the columns {', '.join(columns)}.")
    try:
        lazy = scan(path, row_index=None if rows is None else ROW)
        names = lazy.collect_schema().names()
        for column in columns:
            if column not in names:
                raise TableError(_no_column(path, column, names))
        if rows is not None:
            return _part(path, lazy, by, others, rows)
        frame = lazy.select(pl.col(by).cast(pl.String), *others).collect()
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as problem:
        raise TableError(_unreadable(path, problem)) from problem
    if frame.is_empty():
        raise TableError(f"{path}: the file has a header and no rows; it needs one row a cell.")
    return Source(path=path, frame=frame, first_row=1 if _is_parquet(path) else 2)


def _part(
    path: Path, lazy: pl.LazyFrame, by: Sequence[str], others: Sequence[str], rows: Rows
) -> Source:
    chosen = lazy.slice(rows.first, rows.count)
    if rows.condition is not None:
        chosen = chosen.filter(rows.condition)
    schema = lazy.collect_schema()
    # Labels that are numbered already stay so: it is the numbers that are wanted in the end.
    labels = [
        pl.col(name) if schema[name] == pl.Categorical else pl.col(name).cast(pl.String)
        for name in by
    ]
    frame = chosen.select(ROW, *labels, *others).collect(engine="streaming").sort(ROW)
    places = frame[ROW].cast(pl.Int64).to_numpy()
    first_row = 1 if _is_parquet(path) else 2
    return Source(path=path, frame=frame.drop(ROW), first_row=first_row, rows=places)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in {".parquet", ".pq"}


def scan(path: Path, *, row_index: str | None = None) -> pl.LazyFrame:
    """A file to be read in part, its rows numbered if asked."""
    if _is_parquet(path):
        return pl.scan_parquet(path, glob=False, row_index_name=row_index)
    return pl.scan_csv(path, infer_schema=False, glob=False, row_index_name=row_index)


def column_names(path: Path) -> list[str]:
    """The columns of a CSV or Parquet file."""
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    try:
        return scan(path).collect_schema().names()
    except (pl.exceptions.PolarsError, UnicodeDecodeError, OSError) as problem:
        raise TableError(_unreadable(path, problem)) from problem


def _no_column(path: Path, column: str, names: list[str]) -> str:
    hint = ""
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        hint = " Columns must be separated by commas."
    return f"{path}: no column {column!r}; the file has {', '.join(map(repr, names))}.{hint}"


def _unreadable(path: Path, problem: Exception) -> str:
    if not _is_parquet(path):
        for row, line in enumerate(path.read_bytes().split(b"\n"), start=1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return f"{path}, row {row}: not UTF-8. To fix, save the file as UTF-8."
    return f"{path}: can not be read as {path.suffix or 'CSV'}: {str(problem).splitlines()[0]}"


def refuse_empty_labels(source: Source, by: Sequence[str]) -> None:
    """Every row of a table of cells has a label at every level."""
    for name in by:
        empty = source.frame[name].is_null() | (source.frame[name] == "")
        if empty.any():
            row = int(empty.arg_max() or 0)
            raise TableError(
                f"{source.where(row)}: level column {name!r} is empty. Every row must be a cell "
                "with a label at every level; totals are not rows, they are sums."
            )


def whole_numbers(source: Source, column: str, *, least: int | None) -> IntArray:
    """A column of whole numbers within ±10^15, and not below `least`."""
    raw = source.frame[column]
    if raw.dtype == pl.String:
        raw = raw.str.strip_chars()
    _refuse(source, column, raw.is_null() | _blank(raw), "is missing")
    numbers = raw.cast(pl.Int64, strict=False)
    whole = raw.str.contains(r"^[+-]?\d+$") if raw.dtype == pl.String else _whole(raw)
    _refuse(source, column, ~whole, "is not a whole number")
    _refuse(source, column, numbers.is_null() | (numbers.abs() > MAX_COUNT), "is larger than 10^15")
    if least is not None:
        _refuse(source, column, numbers < least, "is negative; counts are 0 or more")
    if float(numbers.cast(pl.Float64).abs().sum()) > MAX_COUNT:
        raise TableError(f"{source.path}: column {column!r} adds up to more than 10^15.")
    return numbers.to_numpy().copy()


def _blank(raw: pl.Series) -> pl.Series:
    return raw == "" if raw.dtype == pl.String else raw.is_null()


def _whole(raw: pl.Series) -> pl.Series:
    if raw.dtype.is_integer():
        return pl.repeat(value=True, n=len(raw), eager=True)
    if raw.dtype.is_float() or raw.dtype.is_decimal():
        return raw.is_finite() & (raw.round(0) == raw) if raw.dtype.is_float() else raw % 1 == 0
    return pl.repeat(value=False, n=len(raw), eager=True)


def _refuse(source: Source, column: str, bad: pl.Series, what: str) -> None:
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise TableError(
            f"{source.where(row)}: column {column!r} {what}. A count must be a whole number "
            "from 0 to 10^15."
        )


def unique_cells(source: Source, by: Sequence[str]) -> tuple[Hierarchy, IntArray]:
    """The tree of cells that are each listed once, and the row that each came from."""
    hierarchy, order = build(source.frame.select(by))
    codes, parents = hierarchy.codes[-1], hierarchy.parents(len(by))
    twin = np.flatnonzero((codes[1:] == codes[:-1]) & (parents[1:] == parents[:-1]))
    if len(twin):
        first, second = sorted((int(order[twin[0]]), int(order[twin[0] + 1])))
        cell = "/".join(hierarchy.path(len(by), int(twin[0])))
        raise TableError(
            f"{source.where(second)}: duplicate cell {cell!r}, already in row "
            f"{source.where(first).rpartition(' ')[2]}. Every cell must have one row."
        )
    return hierarchy, order


def placed(source: Source, counts: IntArray, hierarchy: Hierarchy, *, domain: Path) -> IntArray:
    """The counts of a domain's cells; those without a row are zeros."""
    by = list(hierarchy.by)
    listed = hierarchy.frame(len(by)).select(pl.col(by).cast(pl.String)).with_row_index("cell")
    labels = source.frame.select(pl.col(by).cast(pl.String))
    place = labels.join(listed, on=by, how="left", maintain_order="left")["cell"]
    outside = place.is_null()
    if outside.any():
        row = int(outside.arg_max() or 0)
        cell = "/".join(source.frame.select(by).row(row))
        raise TableError(
            f"{source.where(row)}: cell {cell!r} is not in the domain {domain}. To fix, add it "
            "to the public list of cells or correct its labels."
        )
    again = ~place.is_first_distinct()
    if again.any():
        row = int(again.arg_max() or 0)
        cell = "/".join(source.frame.select(by).row(row))
        raise TableError(
            f"{source.where(row)}: duplicate cell {cell!r}. Every cell must have one row."
        )
    cells = np.zeros(hierarchy.cells, dtype=np.int64)
    cells[place.to_numpy()] = counts
    return cells
