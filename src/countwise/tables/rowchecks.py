"""What can be wrong with the rows of a table of counts, and in which row it is.

Each check is an expression, so that it can be made of a frame or, a part at a time, of a file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.confidential import MAX_COUNT
from countwise.tables.file_faults import parsing
from countwise.tables.files import ROW, checked_schema, opened, type_name
from countwise.tables.labels import alike, refuse_totals, total_labels
from countwise.tables.table_file import TableFile

Check = tuple[str, pl.Expr]
"""What is to be said of a row, and the rows of which it is true."""
GAPS = {" ": "[ \u00a0\u2009\u202f]", ",": ",", ".": r"\.", "'": "['’]"}
"""What stands between the digits of large counts, by the name it is asked for."""
WITHHELD = r"^([<>≤≥]=?\s*\d+|[^\d\s+\-][^\d\s]{0,2}|[-–—]{1,3}|(?i:suppressed|conf|n\.a\.))$"
"""What offices write in place of a count that they do not show."""


def label_checks(by: Sequence[str]) -> list[Check]:
    """Every row has a label at every level, and a label is one line.

    A label of several lines is what a quotation mark that is not closed makes of the rows behind
    it, with their counts.
    """
    checks = []
    for name in by:
        label = pl.col(name).cast(pl.String)
        empty = (
            f"level column {name!r} is empty. Every row must be a cell with a label at every "
            "level; totals are not rows, they are sums. To fix, fill the labels in, and take out "
            "notes below the table."
        )
        lines = (
            f"level column {name!r} has a label of several lines. To fix, check the quotation "
            "marks there and in the rows above."
        )
        checks += [(empty, label.is_null() | (label == "")), (lines, label.str.contains(r"[\r\n]"))]
    return checks


def _space_checks(by: Sequence[str]) -> list[Check]:
    """Of a table in pieces, whose labels are compared as they stand in its file."""
    words = "level column {!r} has spaces around its label. To fix, take them out."
    text = [(name, pl.col(name).cast(pl.String)) for name in by]
    return [(words.format(name), label != label.str.strip_chars()) for name, label in text]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """A column that is to hold whole numbers within ±10^15, and none below `least`.

    Text may have a decimal mark before zeros, and `thousands` between groups of three digits.
    `subject` is how a message speaks of a value.
    """

    name: str
    kind: pl.DataType
    least: int | None
    thousands: str | None = None
    subject: str

    @property
    def numbers(self) -> pl.Expr:
        """The values as whole numbers, null where they are none."""
        if self.kind != pl.String:
            return self._given.cast(pl.Int64, strict=False)
        return self._given.str.replace(r"[.,]0*$", "").cast(pl.Int64, strict=False)

    @property
    def size(self) -> pl.Expr:
        """The sum of the values without their signs, which can not overflow."""
        return self.numbers.cast(pl.Float64).abs().sum()

    @property
    def checks(self) -> list[Check]:
        """What can be wrong with a value, each given that those before it are not."""
        given, numbers = self._given, self.numbers
        blank = given.is_null() | (given == "") if self.kind == pl.String else given.is_null()
        outside = numbers.is_null() | (numbers > MAX_COUNT) | (numbers < -MAX_COUNT)
        rule = "A count must be a whole number from 0 to 10^15."
        found = [(f"is missing. {rule} To fix, write 0 where there is nobody.", blank)]
        if self.kind == pl.String and self.least is not None:
            found += [
                (
                    "has a mark there in place of a number, such as *, <5, c or : of suppressed "
                    "counts. A confidential table must have the true count of every cell; the "
                    "noise is what protects it. To fix, give the table from before suppression.",
                    given.str.contains(WITHHELD),
                ),
                (
                    "has marks between its digits. To fix, say what stands between thousands, "
                    "such as --thousands comma (or point, space, apostrophe), or write counts as "
                    "digits alone.",
                    ~self._whole & given.str.contains(r"^[+-]?\d{1,3}([\s,.'’]\d{3})+([.,]\d+)?$"),
                ),
            ]
        found += [
            (f"is not a whole number. {rule}", ~self._whole),
            (f"is larger than 10^15. {rule}", outside),
        ]
        if self.least is not None:
            found.append((f"is negative; counts are 0 or more. {rule}", numbers < self.least))
        return [(f"{self.subject} {what}", bad) for what, bad in found]

    def refuse_sum(self, path: Path, size: float) -> None:
        """The values together are within bounds too."""
        if size > MAX_COUNT:
            raise TableError(f"{path}: column {self.name!r} adds up to more than 10^15.")

    @property
    def _given(self) -> pl.Expr:
        column = pl.col(self.name)
        if self.kind != pl.String:
            return column
        text = column.str.strip_chars()
        if self.thousands is None:
            return text
        gap = GAPS[self.thousands]
        grouped = text.str.contains(rf"^[+-]?\d{{1,3}}({gap}\d{{3}})+([.,]\d*)?$")
        return pl.when(grouped).then(text.str.replace_all(gap, "")).otherwise(text)

    @property
    def _whole(self) -> pl.Expr:
        given = self._given
        if self.kind == pl.String:
            return given.str.contains(self._pattern)
        if self.kind.is_float():
            return given.is_finite() & (given.round(0) == given)
        return given % 1 == 0 if self.kind.is_decimal() else given.is_not_null()

    @property
    def _pattern(self) -> str:
        """Digits, and zeros behind a decimal mark: not three of them, which may be thousands."""
        if self.thousands is None:
            return r"^[+-]?[0-9]+([.,](0{1,2}|0{4,}))?$"
        mark = {",": r"\.", ".": ","}.get(self.thousands, "[.,]")
        return rf"^[+-]?[0-9]+({mark}0+)?$"


def counts_of(
    path: Path,
    name: str,
    kind: pl.DataType,
    *,
    least: int | None,
    thousands: str | None = None,
    subject: str | None = None,
) -> Counts:
    """The counts in a column of a file; a type that has no numbers is refused."""
    if kind not in (pl.String, pl.Null) and not kind.is_numeric():
        raise TableError(
            f"{path}: column {name!r} has values of type {type_name(kind)}. A count must be a "
            "whole number from 0 to 10^15."
        )
    subject = subject or f"column {name!r}"
    return Counts(name=name, kind=kind, least=least, thousands=thousands, subject=subject)


def refuse_bad_labels(source: TableFile, by: Sequence[str]) -> None:
    """Refuse the first row whose labels are none."""
    found = _failed(source.frame.lazy().with_row_index(ROW), label_checks(by))
    if found is not None:
        raise TableError(f"{source.where(found[0])}: {found[1]}")


def whole_numbers(source: TableFile, column: str, *, least: int | None) -> IntArray:
    """A column of whole numbers, none below `least`, that add up to no more than 10^15."""
    counts = counts_of(
        source.path,
        column,
        source.frame.schema[column],
        least=least,
        thousands=source.thousands,
        subject=source.subject(column),
    )
    found = _failed(source.frame.lazy().with_row_index(ROW), counts.checks)
    if found is not None:
        raise TableError(f"{source.where(found[0])}: {found[1]}")
    numbers, size = source.frame.select(counts.numbers), source.frame.select(counts.size)
    counts.refuse_sum(source.path, size.item())
    return numbers.to_series().to_numpy().copy()


def refuse_bad_rows(path: Path, by: Sequence[str], column: str, *, no_totals: bool = False) -> None:
    """Refuse a file for the labels and counts of any row, and hold none of them."""
    with parsing(path):
        found = opened(path, wanted=[*by, column], row_index=ROW)
        schema = checked_schema(path, found.lazy, by, [column])
        counts = counts_of(path, column, schema[column], least=0)
        checks = [*label_checks(by), *_space_checks(by), *counts.checks]
        failed = _failed(found.lazy, checks)
        size = found.lazy.select(counts.size).collect(engine="streaming").item()
    if failed is not None:
        raise TableError(f"{path}, row {failed[0] + found.first_row}: {failed[1]}")
    counts.refuse_sum(path, size)
    with parsing(path):
        labels = {name: _distinct(found.lazy, name) for name in by}
    refuse_alike(path, labels, shown=False)
    if not no_totals:
        refuse_totals(total_labels(labels), where=lambda *_: str(path))


def refuse_alike(path: Path, labels: Mapping[str, Iterable[str]], *, shown: bool) -> None:
    """Refuse two labels of a level that differ in capitals or spaces only, shown if public."""
    for level, texts in labels.items():
        found = alike(texts)
        if found is not None:
            which = f": {found[0]!r} and {found[1]!r}" if shown else ""
            raise TableError(
                f"{path}: level column {level!r} has two labels that differ in capitals or spaces "
                f"only{which}. To fix, spell them one way, or differently."
            )


def _distinct(lazy: pl.LazyFrame, name: str) -> pl.Series:
    column = pl.col(name).cast(pl.String).unique()
    return lazy.select(column).collect(engine="streaming").to_series()


def _failed(lazy: pl.LazyFrame, checks: Sequence[Check]) -> tuple[int, str] | None:
    """The first check that fails, by the first row where it does."""
    rows = [
        pl.col(ROW).filter(bad.fill_null(value=False)).min().cast(pl.Int64).alias(str(i))
        for i, (_, bad) in enumerate(checks)
    ]
    first = lazy.select(rows).collect(engine="streaming").row(0)
    for row, (what, _) in zip(first, checks, strict=True):
        if row is not None:
            return row, what
    return None
