"""A table as a frame of the columns that were asked for, able to say where a row stands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from countwise.arrays import IntArray


@dataclass(frozen=True, kw_only=True)
class FilePart:
    """One of several files that are read as one table."""

    path: Path
    first_row: int
    height: int


@dataclass(frozen=True, kw_only=True, eq=False)
class TableFile:
    """A table as a frame of the wanted columns, able to say where a row stands."""

    path: Path
    frame: pl.DataFrame
    first_row: int
    rows: IntArray | None = None
    """For each row of the frame its row in the file, where some were left out."""
    parts: tuple[FilePart, ...] = ()
    """The files that a pattern stands for, in the order of the rows."""
    thousands: str | None = None
    orders: Mapping[str, pl.Enum] = field(default_factory=dict)
    """The order of labels where a column declares one by its type."""

    def where(self, row: int) -> str:
        """The place of a row of the frame, counted as an editor or viewer of the file counts."""
        return f"{self.path}, {self.place(row)}"

    def place(self, row: int) -> str:
        """The same within the file."""
        return self.place_in_file(row if self.rows is None else int(self.rows[row]))

    def place_in_file(self, row: int) -> str:
        """The place of a row of the file, counted from 0."""
        for part in self.parts:
            if row < part.height:
                return f"row {row + part.first_row} of {part.path.name}"
            row -= part.height
        return f"row {row + self.first_row}"

    def subject(self, column: str) -> str:
        """How a message speaks of a count of this column."""
        return f"column {column!r}"

    def ordered(self, by: Sequence[str]) -> pl.DataFrame:
        """The labels of level columns, with the order that they declare."""
        return self.frame.select(pl.col(name).cast(self.orders.get(name, pl.String)) for name in by)

    def kept(self, keep: IntArray) -> "TableFile":
        """The same with some of its rows."""
        rows = keep if self.rows is None else self.rows[keep]
        return replace(self, frame=self.frame[keep], rows=rows)
