"""A table as people draw it, rows by columns with totals, with the range of every count in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from countwise.pages.page import render

Numbers = Sequence[Sequence[int | None]]


@dataclass(frozen=True, kw_only=True)
class DrawnTable:
    """Labels of rows under the names of their levels; in every column a count and its range.

    A count is None where a row has no such category, and a range where it is not known.
    """

    name: str
    heads: Sequence[str]
    labels: Sequence[tuple[str, ...]]
    columns: Sequence[str]
    counts: Numbers
    low: Numbers
    high: Numbers
    total: str

    @property
    def size(self) -> int:
        """Number of counts."""
        return len(self.labels) * len(self.columns)

    def html(self) -> Markup:
        """The table as part of a page: ranges are seen on pointing, in print, and when asked."""
        return Markup(render("drawn.html", table=self, rows=self._rows()))

    def _rows(self) -> list[tuple[bool, list[str], list[tuple[str, str]]]]:
        """Rows with whether they are totals; a label that goes on is said once."""
        found, above = [], ("",) * len(self.heads)
        for labels, *numbers in zip(self.labels, self.counts, self.low, self.high, strict=True):
            same, said = True, []
            for label, before in zip(labels, above, strict=True):
                same = same and label == before
                said.append("" if same else label)
            cells = [
                ("" if count is None else f"{count:,}", range_in_words(low, high))
                for count, low, high in zip(*numbers, strict=True)
            ]
            found.append((self.total in labels, said, cells))
            above = labels
        return found


def range_in_words(low: int | None, high: int | None) -> str:
    """A range as it is read; nothing where it is not known."""
    return "" if low is None or high is None else f"{low:,} to {high:,}"
