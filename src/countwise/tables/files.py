"""Columns of files and data frames, whole or some rows of them.

Every refusal names the file, the row as an editor shows it, and a column that was asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from glob import glob
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from countwise.errors import TableError
from countwise.tables.dialect import (
    PLAIN,
    UTF8,
    Reading,
    decoded,
    find_dialect,
    lines_above,
)
from countwise.tables.file_faults import ARROW, is_parquet, missing_column, parsing
from countwise.tables.frames import NAME, Table
from countwise.tables.statistical import is_statistical, read_statistical
from countwise.tables.table_file import FilePart, TableFile
from countwise.tables.workbooks import is_workbook, read_sheet, rows_above

ROW = "countwise row"


Loader = Callable[[Table, Sequence[str], str], TableFile]
"""From a table, level columns and a count column to one row a cell with those columns."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Some rows of a file: a range, and of these the ones that meet a condition."""

    first: int
    count: int | None
    condition: pl.Expr | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenedTable:
    """A table whose rows are not read yet, and the number of its first row."""

    lazy: pl.LazyFrame
    first_row: int


def load(
    table: Table,
    by: Sequence[str],
    others: Sequence[str],
    *,
    rows: Rows | None = None,
    reading: Reading = PLAIN,
) -> TableFile:
    """The named columns of a table: labels as text without spaces around them, as is all of CSV."""
    path, files = name_of(table), _files(table)
    if files:
        return _joined(path, [load(each, by, others, reading=reading) for each in files])
    columns = [*by, *others]
    _refuse_empty(table, columns)
    with parsing(path, reading):
        found = opened(table, reading, columns, row_index=None if rows is None else ROW)
        schema = checked_schema(table, found.lazy, by, others, reading=reading)
        labels = [label(name, schema[name]) for name in by]
        if rows is not None:
            return _part(path, found, labels, others, rows)
        frame = found.lazy.select(*labels, *others).collect()
    if frame.is_empty():
        raise TableError(f"{path}: the file has a header and no rows; it needs one row a cell.")
    orders = {name: kind for name in by if isinstance(kind := schema[name], pl.Enum)}
    return TableFile(
        path=path,
        frame=frame,
        first_row=found.first_row,
        thousands=reading.thousands,
        orders=orders,
    )


def _part(
    path: Path, found: OpenedTable, labels: Sequence[pl.Expr], others: Sequence[str], rows: Rows
) -> TableFile:
    chosen = found.lazy.slice(rows.first, rows.count)
    if rows.condition is not None:
        chosen = chosen.filter(rows.condition)
    frame = chosen.select(ROW, *labels, *others).collect(engine="streaming").sort(ROW)
    places = frame[ROW].cast(pl.Int64).to_numpy()
    return TableFile(path=path, frame=frame.drop(ROW), first_row=found.first_row, rows=places)


def _joined(path: Path, sources: list[TableFile]) -> TableFile:
    frames = [each.frame for each in sources]
    try:
        frame = pl.concat(frames, how="vertical_relaxed")
    except pl.exceptions.PolarsError:
        raise TableError(
            f"{path}: the files have columns of one name and different types. To fix, save them "
            "the same way."
        ) from None
    parts = tuple(
        FilePart(path=each.path, first_row=each.first_row, height=len(each.frame))
        for each in sources
    )
    return replace(sources[0], path=path, frame=frame, parts=parts)


def without_blank(source: TableFile) -> TableFile:
    """The rows that have anything in the wanted columns: spreadsheets leave others at the end."""
    filled = pl.any_horizontal(
        pl.col(name).is_not_null()
        & (pl.col(name).str.strip_chars() != "" if kind == pl.String else True)
        for name, kind in source.frame.schema.items()
    )
    kept = np.flatnonzero(source.frame.select(filled).to_series().to_numpy())
    if len(kept) == len(source.frame):
        return source
    if not len(kept):
        raise TableError(f"{source.path}: all rows are empty; the table needs one row a cell.")
    return source.kept(kept)


def label(name: str, kind: pl.DataType) -> pl.Expr:
    """A column of labels as text without spaces around it, whole numbers without a point."""
    column = pl.col(name)
    # Labels that are numbered already stay so: it is the numbers that are wanted in the end.
    if kind == pl.Categorical:
        return column
    if kind.is_float():
        whole = column.cast(pl.Int64, strict=False)
        spelled = pl.when(whole == column).then(whole.cast(pl.String))
        return spelled.otherwise(column.fill_nan(None).cast(pl.String)).alias(name)
    text = column.cast(pl.String)
    return text.str.strip_chars() if kind == pl.String else text


def checked_schema(
    table: Table,
    lazy: pl.LazyFrame,
    by: Sequence[str],
    others: Sequence[str],
    *,
    reading: Reading = PLAIN,
) -> pl.Schema:
    """The types of a table's columns, once those asked for are there and labels can be text."""
    schema = lazy.collect_schema()
    names = [name for name in schema if name != ROW]
    wanted = (*by, *others)
    for column in wanted:
        if column not in names:
            message = missing_column(str(name_of(table)), column, names)
            above = _lines_above(table, reading, wanted) or _lines_above(table, reading, by)
            if above is not None and above > reading.skip:
                message = (
                    f"{message.partition(' To fix')[0]} The names asked for stand in line "
                    f"{above + 1}. To fix, add --skip {above} for the lines above them."
                )
            raise TableError(message)
    for name in by:
        _refuse_no_label(name_of(table), name, schema[name])
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


def opened(
    table: Table,
    reading: Reading = PLAIN,
    wanted: Sequence[str] = (),
    *,
    row_index: str | None = None,
) -> OpenedTable:
    """A table to be read, in part where its format allows, its rows numbered if asked.

    Rows have the number that an editor or viewer gives them: 1 is the header of a text file.
    """
    first_row = 1
    if isinstance(table, pl.DataFrame):
        lazy, first_row = table.lazy(), 0
    elif is_parquet(table):
        lazy = pl.scan_parquet(table, glob=False, row_index_name=row_index)
        return OpenedTable(lazy=_stripped(lazy), first_row=1)
    elif is_workbook(table):
        frame, first_row = read_sheet(table, reading)
        lazy = frame.lazy()
    elif is_statistical(table):
        lazy = read_statistical(table).lazy()
    elif table.suffix.lower() in ARROW:
        lazy = pl.read_ipc(table).lazy()
    else:
        return _text(table, reading, wanted, row_index)
    if row_index is not None:
        lazy = lazy.with_row_index(row_index)
    return OpenedTable(lazy=_stripped(lazy), first_row=first_row)


def _text(
    path: Path, reading: Reading, wanted: Sequence[str], row_index: str | None
) -> OpenedTable:
    dialect = find_dialect(path, reading, wanted)
    lazy = pl.scan_csv(
        path if dialect.encoding == UTF8 else BytesIO(decoded(path, dialect.encoding)),
        infer_schema=False,
        glob=False,
        separator=dialect.separator,
        skip_lines=dialect.skip,
        row_index_name=row_index,
    )
    return OpenedTable(lazy=_stripped(lazy), first_row=dialect.skip + 2)


def _stripped(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """With no spaces around the names of columns, where that leaves them different."""
    names = lazy.collect_schema().names()
    bare = [name.strip() for name in names]
    changed = {
        old: new
        for old, new in zip(names, bare, strict=True)
        if old != new and bare.count(new) == 1
    }
    return lazy.rename(changed) if changed else lazy


def scan(
    table: Table,
    *,
    row_index: str | None = None,
    reading: Reading = PLAIN,
    wanted: Sequence[str] = (),
) -> pl.LazyFrame:
    """A table to be read in part, its rows numbered if asked."""
    return opened(table, reading, wanted, row_index=row_index).lazy


def column_names(table: Table, reading: Reading = PLAIN, wanted: Sequence[str] = ()) -> list[str]:
    """The columns of a table; those of the first file where there are several."""
    table = next(iter(_files(table)), table)
    _refuse_empty(table, wanted)
    with parsing(name_of(table), reading):
        return scan(table, reading=reading, wanted=wanted).collect_schema().names()


def name_of(table: Table) -> Path:
    """What messages call a table."""
    return Path(NAME) if isinstance(table, pl.DataFrame) else table


def refuse_missing(table: Table) -> None:
    """A file must be there to be read."""
    if isinstance(table, Path) and not table.is_file() and not _files(table):
        raise TableError(f"{table}: there is no such file.")


def _refuse_empty(table: Table, columns: Sequence[str]) -> None:
    refuse_missing(table)
    if isinstance(table, Path) and table.stat().st_size == 0:
        needs = f"; it needs the columns {', '.join(columns)}" if columns else ""
        raise TableError(f"{table}: the file is empty{needs}.")


def _files(table: Table) -> list[Path]:
    """The files that a pattern such as `counts-*.csv` stands for; none for the name of a file."""
    if isinstance(table, pl.DataFrame) or table.exists():
        return []
    return [Path(name) for name in sorted(glob(str(table))) if Path(name).is_file()]


def files_of(table: Table) -> list[Path]:
    """The files of a table: one, those of a pattern, or none of a data frame."""
    if isinstance(table, pl.DataFrame):
        return []
    return _files(table) or [table]


def is_text(table: Table) -> bool:
    """Whether a table is one text file."""
    if isinstance(table, pl.DataFrame) or not table.is_file():
        return False
    other = is_parquet(table) or is_workbook(table) or is_statistical(table)
    return not other and table.suffix.lower() not in ARROW


def _lines_above(table: Table, reading: Reading, wanted: Sequence[str]) -> int | None:
    """The number of lines above the header, if it is further down."""
    if isinstance(table, Path) and is_workbook(table):
        return rows_above(table, reading, wanted)
    if isinstance(table, Path) and is_text(table):
        return lines_above(table, reading, wanted)
    return None
