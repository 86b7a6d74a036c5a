"""The order of the labels of a level.

A public domain says it. Without one it follows from the labels: numbers by size, ages by age,
others by their text. The order of the rows of a confidential table is never kept, since it may
depend on its counts. A frame carries an order as the categories of its columns (`polars.Enum`).
"""

import numpy as np
import polars as pl

from countwise.arrays import IntArray

AGE = (
    r"^(?<before>under|below|less than|up to|<|≤)?\s*"
    r"(?<from>[+-]?\d+(?:[.,]\d+)?)"
    r"(?:\s*(?:-|–|to|bis|until)\s*\d+(?:[.,]\d+)?)?"
    r"\s*(?<after>\+|and over|and older|and more|and above|or over|or older|or more|und mehr)?"
    r"(?:\s*(?:years?|yrs?|jahre?)(?: old| of age)?)?"
    r"\s*(?<later>\+|and over|and older|and more|and above|or over|or older|or more)?$"
)
"""A number, a range of numbers, or what is below or above a number."""


def by_size(labels: pl.Series) -> IntArray | None:
    """The order of different labels as numbers or ages, others last; None if most are neither."""
    parts = pl.DataFrame({"label": labels}).with_columns(
        pl.col("label").str.to_lowercase().str.extract_groups(AGE).alias("parts")
    )
    found = parts.unnest("parts")
    number = pl.col("from").str.replace(",", ".").cast(pl.Float64, strict=False)
    side = (
        pl.when(pl.col("before").is_not_null()).then(-1)
        .when(pl.col("after").is_not_null() | pl.col("later").is_not_null()).then(1)
        .otherwise(0)
    )  # fmt: skip
    found = found.select("label", number.alias("number"), side.alias("side"))
    if found["number"].is_not_null().sum() * 2 <= len(found):
        return None
    order = found.select(pl.arg_sort_by("number", "side", "label", nulls_last=True))
    return order.to_series().to_numpy().astype(np.int64)


def natural(labels: pl.Series) -> IntArray:
    """The order of different labels by size if most are numbers or ages, else by their text."""
    codes = labels.str.contains(r"^[0-9]+$").all() and labels.str.len_bytes().n_unique() == 1
    found = None if codes else by_size(labels)  # of digits of one length the text says the size
    return labels.arg_sort().to_numpy().astype(np.int64) if found is None else found


def as_listed(cells: pl.DataFrame) -> pl.DataFrame:
    """Public cells with the labels of each column in their public order.

    One column is a list, in the order it is written in. In a list of cells with several columns
    the order of the rows says less: numbers and ages are by size, others as they come first.
    """
    alone = len(cells.columns) == 1
    return cells.select(_enum(column, _listed(column, alone=alone)) for column in cells)


def _listed(column: pl.Series, *, alone: bool) -> pl.Series:
    labels = column.cast(pl.String).unique(maintain_order=True)
    found = None if alone else by_size(labels)
    return labels if found is None else labels[found]


def as_published(cells: pl.DataFrame) -> pl.DataFrame:
    """Cells of a table in pieces or of a release: in the order they carry, else by their text."""
    return cells.select(
        column
        if isinstance(column.dtype, pl.Enum)
        else _enum(column, column.cast(pl.String).unique().drop_nulls().sort())
        for column in cells
    )


def _enum(column: pl.Series, labels: pl.Series) -> pl.Series:
    return column.cast(pl.String).cast(pl.Enum(labels))
