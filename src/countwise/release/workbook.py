"""A release as an Excel workbook: its certificate, its tables as people draw them, every count."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from countwise.errors import InputError, ReleaseError
from countwise.pages.drawn import DrawnTable
from countwise.pages.text_blocks import Line
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.drawn_tables import drawn_tables
from countwise.release.publication import Publication

MOST_ROWS = 1_048_576
"""Rows of a sheet, the limit of the file format."""
MOST_COLUMNS, LONGEST = 16_384, 31
"""Columns of a sheet and characters of its name, limits too."""
BLOCKS = ("Count", "Range from", "Range to")


def write_workbook(release: Release | CrossedRelease, path: Path) -> None:
    """Write the workbook; labels are written as text, whatever they begin with.

    Each table that is no total of another has a sheet: its counts, and beside them in the same
    rows and columns the lowest and the highest counts of their ranges.
    """
    try:
        import xlsxwriter
    except ImportError:
        raise InputError(
            "Excel files need a writer that is not installed. To fix, "
            'pip install "countwise[excel]"'
        ) from None
    if release.size >= MOST_ROWS:
        raise ReleaseError(
            f"the release has {release.size:,} counts, and an Excel sheet holds "
            f"{MOST_ROWS - 1:,}. To fix, use counts.csv or counts.parquet."
        )
    with xlsxwriter.Workbook(path, {"strings_to_formulas": False}) as book:
        _write_certificate(book, certificate_lines(release))
        for i, table in enumerate(fitting(drawn_tables(release)), start=1):
            title = re.sub(r"[\[\]:*?/\\']", " ", table.name)[: LONGEST - 4]
            _write_drawn(book, f"{i} {title}", table)
        _write_table(book, "Counts", release.table())


def fitting(tables: Iterable[DrawnTable]) -> Iterator[DrawnTable]:
    """The tables that a sheet can hold, with their ranges."""
    for table in tables:
        width = len(table.heads) + len(BLOCKS) * (1 + len(table.columns))
        if width <= MOST_COLUMNS and len(table.labels) + 2 < MOST_ROWS:
            yield table


def certificate_lines(release: Publication) -> list[Line]:
    """The certificate as lines of cells, each with whether it is a heading."""
    imprint: Line = (False, [release.imprint.line or "countwise"])
    return [imprint, *(line for each in release.certificate_blocks() for line in each.lines())]


def _write_certificate(book: Any, lines: Sequence[Line]) -> None:
    sheet = book.add_worksheet("Certificate")
    sheet.set_column(0, 0, 32)
    sheet.set_column(1, 6, 18)
    bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
    text = book.add_format({"text_wrap": True, "valign": "top"})
    for row, (heading, cells) in enumerate(lines):
        form = bold if heading else text
        if len(cells) == 1:
            sheet.merge_range(row, 0, row, 6, "", form)
            sheet.set_row(row, 15 * (1 + len(cells[0]) // 130))
        for column, cell in enumerate(cells):
            sheet.write_string(row, column, cell, form)


def _write_drawn(book: Any, title: str, table: DrawnTable) -> None:
    """Labels, then counts, lowest and highest counts side by side, each under its name."""
    sheet = book.add_worksheet(title)
    bold, number = book.add_format({"bold": True}), book.add_format({"num_format": "#,##0"})
    for column, name in enumerate(table.heads):
        sheet.write_string(1, column, name, bold)
    for row, labels in enumerate(table.labels, start=2):
        for column, label in enumerate(labels):
            sheet.write_string(row, column, label)
    first = len(table.heads)
    for name, rows in zip(BLOCKS, (table.counts, table.low, table.high), strict=True):
        sheet.write_string(0, first, name, bold)
        for column, heading in enumerate(table.columns, start=first):
            sheet.write_string(1, column, heading, bold)
        for row, values in enumerate(rows, start=2):
            for column, value in enumerate(values, start=first):
                if value is not None:
                    sheet.write_number(row, column, value, number)
        first += len(table.columns) + 1
    sheet.set_column(0, max(len(table.heads) - 1, 0), 18)
    sheet.freeze_panes(2, len(table.heads))


def _write_table(book: Any, title: str, table: pl.DataFrame) -> None:
    sheet = book.add_worksheet(title)
    bold = book.add_format({"bold": True})
    for column, name in enumerate(table.columns):
        sheet.write_string(0, column, name, bold)
        for row, value in enumerate(table[name].to_list(), start=1):
            if isinstance(value, str):
                sheet.write_string(row, column, value)
            elif value is not None:
                sheet.write_number(row, column, value)
    sheet.set_column(0, len(table.columns) - 1, 18)
    sheet.freeze_panes(1, 0)
    sheet.autofilter(0, 0, len(table), len(table.columns) - 1)
