"""Sheets of workbooks: Excel (`.xlsx`, `.xls`, `.xlsb`) and OpenDocument (`.ods`)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from countwise.errors import TableError
from countwise.tables.dialect import MOST_TITLES, Reading

WORKBOOKS = (".xlsx", ".xlsm", ".xls", ".xlsb", ".ods")


def is_workbook(path: Path) -> bool:
    """Whether a file is read as a workbook."""
    return path.suffix.lower() in WORKBOOKS


def read_sheet(path: Path, reading: Reading) -> tuple[pl.DataFrame, int]:
    """A sheet as columns of text, and the number of its first row below the header."""
    grid = _grid(path, reading)
    header = _header(grid, reading.skip)
    if header is None:
        raise TableError(f"{path}: the sheet is empty below its first {reading.skip} rows.")
    names = grid.row(header)
    named = [(i, str(name).strip()) for i, name in enumerate(names) if name and str(name).strip()]
    texts = [name for _, name in named]
    twice = next((i for i, name in named if texts.count(name) > 1), None)
    if twice is not None:
        raise TableError(
            f"{path}: row {header + 1} gives two columns one name (column {twice + 1})."
        )
    below = grid[header + 1 :]
    return pl.DataFrame([below.to_series(i).alias(name) for i, name in named]), header + 2


def rows_above(path: Path, reading: Reading, wanted: Sequence[str]) -> int | None:
    """The number of rows above the first that has all `wanted` names; None if there is none."""
    for i, row in enumerate(_grid(path, reading).head(MOST_TITLES).iter_rows()):
        if set(wanted) <= {str(each).strip() for each in row if each is not None}:
            return i
    return None


def _header(grid: pl.DataFrame, skip: int) -> int | None:
    for i, row in enumerate(grid[skip:].iter_rows(), start=skip):
        if any(each is not None and str(each).strip() for each in row):
            return i
    return None


def _grid(path: Path, reading: Reading) -> pl.DataFrame:
    """Every cell of the sheet as text, in its own row and column."""
    try:
        import fastexcel
    except ImportError:
        raise TableError(
            f'{path}: workbooks are read with fastexcel. To fix, pip install "countwise[excel]", '
            "or save the sheet as CSV."
        ) from None
    try:
        book = fastexcel.read_excel(path)
        sheets = book.sheet_names
        return pl.DataFrame(
            book.load_sheet(
                _sheet(path, sheets, book, reading.sheet),
                header_row=None, skip_rows=0, dtypes="string",
            )
        )  # fmt: skip
    except fastexcel.FastExcelError as problem:
        raise TableError(
            f"{path}: can not be read as a workbook ({type(problem).__name__}). To fix, check that "
            "the file is whole, or save the sheet as CSV."
        ) from None


def _sheet(path: Path, sheets: Sequence[str], book: Any, wanted: str | None) -> int:
    """The number of the sheet asked for, or of the only one that has cells."""
    if wanted is None:
        full = [i for i in range(len(sheets)) if _has_cells(book, i)]
        if len(full) > 1:
            raise TableError(
                f"{path}: has {len(full)} sheets with cells. To fix, name one with --sheet, by its "
                "name or its number from 1."
            )
        return full[0] if full else 0
    if wanted in sheets:
        return list(sheets).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(sheets):
        return int(wanted) - 1
    raise TableError(
        f"{path}: has no sheet {wanted!r} among its {len(sheets)}. To fix, give its name, or its "
        "number from 1."
    )


def _has_cells(book: Any, number: int) -> bool:
    sheet = book.load_sheet(number, header_row=None, skip_rows=0, n_rows=MOST_TITLES)
    return bool(sheet.height)
