"""What is wrong with a file that can not be read, told without showing any of it.

A parser quotes what it stumbled over, which is a count or a cell of a record. So its own text is
never passed on: the kind of fault is, and the row where it can be found again without the parser.
"""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import islice
from pathlib import Path

import polars as pl

from countwise.errors import TableError
from countwise.tables.dialect import PLAIN, UTF8, Reading, decoded, find_dialect

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
BINARY = dict.fromkeys(PARQUET, "Parquet") | dict.fromkeys(ARROW, "Arrow")
NOT_UTF8 = ("\0", "\ufffd")
"""What stands in the names of columns where the parser took bytes for UTF-8 that are not."""
PARSER_FAULTS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, UnicodeDecodeError)


@contextmanager
def parsing(path: Path, reading: Reading = PLAIN) -> Iterator[None]:
    """Faults of the parser and of the file system as refusals of the file."""
    try:
        yield
    except PARSER_FAULTS as problem:
        raise TableError(unreadable(path, type(problem).__name__, reading)) from None
    except OSError as problem:
        raise TableError(f"{path}: can not be read: {reason(problem)}.") from None


def reason(problem: OSError) -> str:
    """Why the system refused, in its own words and not in those of a library."""
    return os.strerror(problem.errno) if problem.errno else type(problem).__name__


def unreadable(path: Path, kind: str, reading: Reading = PLAIN) -> str:
    """Why a file can not be read, and in which row."""
    if path.suffix.lower() in BINARY:
        return (
            f"{path}: can not be read as {BINARY[path.suffix.lower()]} ({kind}). To fix, check "
            "that the file is whole, or write it again."
        )
    found = _broken_row(path, reading)
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
    if any(mark in name for name in names for mark in NOT_UTF8):
        return (
            f"{message} The file is not UTF-8. To fix, save it as UTF-8, or name its encoding, "
            "such as --encoding latin-1."
        )
    return (
        f"{message} To fix, check the names in its first line, which are not shown: where a header "
        "is missing they are data."
    )


def is_parquet(path: Path) -> bool:
    """Whether a file is read as Parquet."""
    return path.suffix.lower() in PARQUET


def _broken_row(path: Path, reading: Reading) -> tuple[int, str] | None:
    """The first row that no reader of CSV should take, and why."""
    if path.suffix.lower() == ".gz":
        return None
    try:
        dialect = find_dialect(path, reading)
        if dialect.encoding != UTF8:
            lines = _TextLines(BytesIO(decoded(path, dialect.encoding)))
            return _first_fault(lines, dialect.separator, dialect.skip)
        with path.open("rb") as file:
            return _first_fault(_TextLines(file), dialect.separator, dialect.skip)
    except OSError:
        return None


class _TextLines:
    """Lines of a file as text; the number of the last one, and what was wrong with it."""

    def __init__(self, file: Iterable[bytes]) -> None:
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
                self.fault = (
                    "not UTF-8. To fix, save the file as UTF-8, or name its encoding, such as "
                    "--encoding latin-1."
                )
                return


def _first_fault(lines: _TextLines, separator: str, skip: int) -> tuple[int, str] | None:
    width, first = None, skip + 1
    try:
        below = islice(iter(lines), skip, None)
        for fields in csv.reader(below, strict=True, delimiter=separator):
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
