"""What is wrong with a file that can not be read, told without showing any of it.

A parser quotes what it stumbled over, which is a count or a cell of a record. So its own text is
never passed on: the kind of fault is, and the row where it can be found again without the parser.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from countwise.errors import TableError

PARQUET = (".parquet", ".pq")
PARSER_FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError)


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Faults of the parser and of the file system as refusals of the file."""
    try:
        yield
    except PARSER_FAULTS as problem:
        raise TableError(unreadable(path, type(problem).__name__)) from None
    except OSError as problem:
        raise TableError(f"{path}: can not be read: {reason(problem)}.") from None


def reason(problem: OSError) -> str:
    """Why the system refused, in its own words and not in those of a library."""
    return os.strerror(problem.errno) if problem.errno else type(problem).__name__


def unreadable(path: Path, kind: str) -> str:
    """Why a file can not be read, and in which row."""
    if is_parquet(path):
        return (
            f"{path}: can not be read as Parquet ({kind}). To fix, check that the file is whole, "
            "or write it again."
        )
    found = _broken_row(path)
    if found is None:
        return (
            f"{path}: can not be read as CSV ({kind}). To fix, check its quotation marks, and that "
            "all rows have as many fields as the first."
        )
    row, fault = found
    return f"{path}, row {row}: {fault}"


def missing_column(place: str, column: str, names: Sequence[str]) -> str:
    """That a column is not there; the names that are may be data, so they are counted only."""
    message = f"{place}: no column {column!r} among its {len(names)}."
    if any(name.strip().casefold() == column.casefold() for name in names):
        return f"{message} One differs from it in capitals or spaces only."
    if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
        return f"{message} Columns must be separated by commas."
    if any("\0" in name for name in names):
        return f"{message} The file is not UTF-8. To fix, save it as UTF-8."
    return (
        f"{message} To fix, check the names in its first line, which are not shown: where a header "
        "is missing they are data."
    )


def is_parquet(path: Path) -> bool:
    """Whether a file is read as Parquet."""
    return path.suffix.lower() in PARQUET


def _broken_row(path: Path) -> tuple[int, str] | None:
    """The first row that no reader of CSV should take, and why."""
    if path.suffix.lower() == ".gz":
        return None
    try:
        with path.open("rb") as file:
            return _first_fault(_TextLines(file))
    except OSError:
        return None


class _TextLines:
    """Lines of a file as text; the number of the last one, and what was wrong with it."""

    def __init__(self, file: Iterator[bytes]) -> None:
        self.file, self.row, self.fault = file, 0, ""

    def __iter__(self) -> Iterator[str]:
        for line in self.file:
            self.row += 1
            if b"\0" in line:
                self.fault = "has zero bytes. To fix, save the file as text in UTF-8."
                return
            try:
                yield line.decode("utf-8")
            except UnicodeDecodeError:
                self.fault = "not UTF-8. To fix, save the file as UTF-8."
                return


def _first_fault(lines: _TextLines) -> tuple[int, str] | None:
    width, first = None, 1
    try:
        for fields in csv.reader(iter(lines), strict=True):
            if lines.fault:
                break
            width = len(fields) if width is None else width
            if len(fields) > width:
                return first, "has more fields than the first line."
            first = lines.row + 1
    except csv.Error:
        if not lines.fault:
            return first, (
                "a quotation mark is never closed, or text goes on behind one. To fix, put every "
                "field that has a quotation mark in quotation marks and double those within."
            )
    return (lines.row, lines.fault) if lines.fault else None
