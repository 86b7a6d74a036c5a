"""Numeric columns cut into bins at public edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan
from typing import TYPE_CHECKING, Any

from countwise.errors import TableError

if TYPE_CHECKING:
    import ibis.expr.types as ir

OUTSIDE = -1  # the code of what is in no bin


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Intervals closed on the left and open on the right, and the label of each.

    Bin i holds the x with `edges[i] <= x < edges[i+1]`. An edge may be infinite, so that the
    first or last bin is open; what lies in no bin is outside the domain.
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def code(self, column: "ir.Column") -> "ir.Value":
        """The number of the bin a value lies in, -1 outside, null where there is no value.

        Text that is no number is outside. The comparisons form a balanced tree, so a value is
        compared with few edges however many there are.
        """
        import ibis

        numbers = as_numbers(column)
        inside = (numbers >= self.edges[0]) & (numbers < self.edges[-1])
        code = ibis.ifelse(inside, self._search(numbers, 0, len(self.labels)), OUTSIDE)
        missing = is_missing(column)
        if column.type().is_string():
            missing = missing | numbers.isnan()
        return ibis.ifelse(missing, ibis.null("int16"), ibis.coalesce(code, OUTSIDE))

    def _search(self, numbers: "ir.Value", first: int, stop: int) -> Any:
        import ibis

        if stop - first == 1:
            return ibis.literal(first, "int16")
        middle = (first + stop) // 2
        return ibis.ifelse(
            numbers < self.edges[middle],
            self._search(numbers, first, middle),
            self._search(numbers, middle, stop),
        )


def as_numbers(column: "ir.Column") -> "ir.Value":
    """A column of numbers as it is, and one of text as the numbers it spells, null otherwise."""
    return column.try_cast("float64") if column.type().is_string() else column


def is_missing(column: "ir.Column") -> "ir.BooleanValue":
    """Where a record has no value: null, empty text, or a number that is none."""
    if column.type().is_string():
        return column.isnull() | (column == "")
    if column.type().is_floating():
        return column.isnull() | column.isnan()
    return column.isnull()


def make_bins(edges: Sequence[Any], labels: Sequence[str] | None, *, where: str) -> Bins:
    """Bins from public edges that rise, named by their limits unless labels are given."""
    if len(edges) < 2 or not all(_is_number(edge) for edge in edges):
        raise TableError(f"{where}: edges must be two numbers or more, such as [0, 18, 65, inf].")
    if any(below >= above for below, above in pairwise(edges)):
        raise TableError(f"{where}: edges must rise from each to the next.")
    named = labels if labels is not None else [f"[{a}, {b})" for a, b in pairwise(edges)]
    if len(named) != len(edges) - 1:
        raise TableError(
            f"{where}: {len(edges)} edges make {len(edges) - 1} bins, and there are "
            f"{len(named)} labels. To fix, give one label a bin."
        )
    return Bins(edges=tuple(edges), labels=tuple(named))


def _is_number(edge: object) -> bool:
    return isinstance(edge, int | float) and not isinstance(edge, bool) and not isnan(edge)
