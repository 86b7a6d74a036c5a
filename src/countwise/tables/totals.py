"""Rows that hold totals: checked against the sums of their cells, then left out.

In a frame of cells a total row has null in the level columns it sums over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from countwise.errors import TableError
from countwise.tables.rowchecks import refuse_bad_labels, whole_numbers
from countwise.tables.table_file import TableFile

SUM = "countwise sum"


def marked(source: TableFile, by: Sequence[str], codes: Mapping[str, str]) -> TableFile:
    """The same rows with null where a level column holds its total code."""
    refuse_bad_labels(source, by)
    marks = [
        pl.when(pl.col(name) == codes[name]).then(None).otherwise(pl.col(name)).alias(name)
        for name in by
        if name in codes
    ]
    return replace(source, frame=source.frame.with_columns(marks))


def without_totals(source: TableFile, by: Sequence[str], count: str) -> TableFile:
    """The rows of cells, once every total row has been found to equal the sum of its cells."""
    summed = source.frame.select(pl.col(by).is_null())
    is_total = summed.select(pl.any_horizontal(pl.all())).to_series().to_numpy()
    if not is_total.any():
        return source
    if is_total.all():
        raise TableError(f"{source.path}: every row is a total; the table has no cells.")
    counts = whole_numbers(source, count, least=0)
    table = source.frame.select(by).with_columns(pl.Series(SUM, counts))
    cells = table.filter(pl.Series(~is_total))
    for pattern in summed.filter(pl.Series(is_total)).unique().iter_rows():
        within = [name for name, over in zip(by, pattern, strict=True) if not over]
        same = [pl.col(name) == over for name, over in zip(by, pattern, strict=True)]
        rows = np.flatnonzero(summed.select(pl.all_horizontal(same)).to_series().to_numpy())
        expected = _sums(cells, within, table[rows])
        wrong = expected != counts[rows]
        if wrong.any():
            row = int(rows[int(np.argmax(wrong))])
            raise TableError(
                f"{source.where(row)}: this total is not the sum of its cells. To fix, correct "
                "the table, or leave its total rows out."
            )
    return source.kept(np.flatnonzero(~is_total))


def without_total_rows(source: TableFile, by: Sequence[str]) -> TableFile:
    """The rows of cells, their counts unseen."""
    whole = source.frame.select(pl.all_horizontal(pl.col(by).is_not_null())).to_series()
    if not whole.any():
        raise TableError(f"{source.path}: every row is a total; the table has no cells.")
    return source.kept(np.flatnonzero(whole))


def _sums(cells: pl.DataFrame, within: list[str], totals: pl.DataFrame) -> pl.Series:
    """For each total row, the sum of the cells that agree in the columns it does not sum over."""
    if not within:
        return pl.Series([cells[SUM].sum()]).new_from_index(0, len(totals))
    sums = cells.group_by(within).agg(pl.col(SUM).sum())
    found = totals.select(within).join(sums, on=within, how="left", maintain_order="left")
    return found[SUM].fill_null(0)
