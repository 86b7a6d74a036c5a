"""A table of any length inside a page: searched and paged there, and read without scripts too.

Labels are written once and rows by the numbers of their labels, squeezed, so that some hundred
thousand rows fit a page; a small script of the page itself unpacks and shows them. Who runs no
scripts reads the first rows as a table.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import compress
from typing import Any

import numpy as np
import polars as pl
from markupsafe import Markup

from countwise.pages.page import render

PLAIN_ROWS = 2_000
"""Rows that are there as a table, without scripts."""
PAGE = 50  # rows shown at once


@dataclass(frozen=True, kw_only=True)
class NumberColumn:
    """A column of numbers: its heading, and its places after the point.

    A `range` has its lower ends in the column of its name and the upper ends in that of `upper`.
    """

    name: str
    heading: str
    places: int = 0
    upper: str = ""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A frame to be listed: columns of labels, empty where a row is a sum, and of numbers."""

    frame: pl.DataFrame
    labels: Sequence[str]
    numbers: Sequence[NumberColumn]
    name: str

    def packed(self) -> str:
        """All rows as text: JSON, squeezed, in letters."""
        data = {
            "labels": [{"name": name, **_coded(self.frame[name])} for name in self.labels],
            "numbers": [self._packed(each) for each in self.numbers],
        }
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return b64encode(compress(text.encode(), mtime=0)).decode()

    def _packed(self, column: NumberColumn) -> dict[str, Any]:
        unit = 10**column.places
        values = _whole(self.frame[column.name], unit)
        data = {"heading": column.heading, "places": column.places, "values": values.tolist()}
        if column.upper:
            data["widths"] = (_whole(self.frame[column.upper], unit) - values).tolist()
        return data

    def html(self) -> Markup:
        """The listing as part of a page."""
        return Markup(
            render(
                "listing.html",
                name=self.name,
                rows=len(self.frame),
                heads=[*self.labels, *(each.heading for each in self.numbers)],
                words=len(self.labels),
                plain=self._plain(),
                plain_rows=PLAIN_ROWS,
                page=PAGE,
                packed=self.packed(),
            )
        )

    def _plain(self) -> list[tuple[str, ...]]:
        first = self.frame.head(PLAIN_ROWS)
        columns = [first[name].cast(pl.String).fill_null("").to_list() for name in self.labels]
        columns += [in_words(first, each) for each in self.numbers]
        return list(zip(*columns, strict=True))


def in_words(frame: pl.DataFrame, column: NumberColumn) -> list[str]:
    """A column of numbers as it is read."""
    form = f",.{column.places}f"
    lower = [format(value, form) for value in frame[column.name].to_list()]
    if not column.upper:
        return lower
    return [
        f"{low} to {high:{form}}"
        for low, high in zip(lower, frame[column.upper].to_list(), strict=True)
    ]


def _whole(values: pl.Series, unit: int) -> Any:
    return np.rint(values.to_numpy().astype(np.float64) * unit).astype(np.int64)


def _coded(column: pl.Series) -> dict[str, Any]:
    """The labels of a column, and for each row the number of its label, or -1: as steps."""
    texts = column.cast(pl.String)
    labels = texts.drop_nulls().unique(maintain_order=True)
    codes = texts.cast(pl.Enum(labels)).to_physical().cast(pl.Int64).fill_null(-1)
    return {"labels": labels.to_list(), "steps": codes.diff().fill_null(codes).to_list()}
