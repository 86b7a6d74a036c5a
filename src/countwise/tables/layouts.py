"""Layouts of tables of counts as agencies keep them, read into one row a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from countwise.errors import TableError
from countwise.tables.crosstab import load_crosstab
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.domain import PLACE, Domain, Factor
from countwise.tables.files import load, without_blank
from countwise.tables.frames import Table
from countwise.tables.labels import CODES, refuse_totals, refuse_totals_of_domain, total_labels
from countwise.tables.rowchecks import refuse_bad_labels
from countwise.tables.sdmx import TOTAL, load_sdmx
from countwise.tables.table_file import TableFile
from countwise.tables.totals import marked, without_total_rows, without_totals

LAYOUTS = ("long", "wide", "sdmx")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a table of counts is laid out.

    `long` has one row a cell; `wide` has one column a category of the last level; `sdmx` is
    SDMX-CSV. `totals` has the code that marks a total row, by level column, or for all columns
    under the name `*`. Level columns that a domain derives from codes of a hierarchy are read
    from the column of codes; inner codes are total rows. Other labels that name a total are
    refused unless there are `no_totals`. `reading` is what is said of the file itself.
    """

    kind: str = "long"
    totals: Mapping[str, str] = field(default_factory=dict)
    domain: Domain | None = None
    no_totals: bool = False
    reading: Reading = PLAIN

    def __post_init__(self) -> None:
        if self.kind not in LAYOUTS:
            raise TableError(f"layout must be one of {', '.join(LAYOUTS)}; got {self.kind!r}.")

    def __call__(self, table: Table, by: Sequence[str], count: str) -> TableFile:
        """The table as one row a cell, totals checked and left out."""
        return without_totals(self._nodes(table, by, count), by, count)

    def cells(self, table: Table, by: Sequence[str], count: str = "") -> TableFile:
        """The cells alone, by their labels; no count is looked at."""
        return without_total_rows(self._nodes(table, by, count), by)

    def public(self, table: Table, by: Sequence[str], count: str = "") -> TableFile:
        """The rows of a public list of cells, whose faulty labels can be shown."""
        if not self.plain:
            return self.cells(table, by, count)
        source = without_blank(load(table, by, []))
        refuse_bad_labels(source, by)
        if not self.no_totals:
            labels = {name: source.frame[name].unique().cast(pl.String) for name in by}
            refuse_totals_of_domain(labels, where=str(source.path))
        return source

    @property
    def plain(self) -> bool:
        """Whether a file is read as it stands: one row a cell, and nothing said of it."""
        return self == Layout(no_totals=self.no_totals)

    def _nodes(self, table: Table, by: Sequence[str], count: str) -> TableFile:
        """Rows of cells and of totals, which have null in the levels they sum over."""
        coded = self._coded(by)
        columns = _columns(by, coded)
        source = self._load(table, columns, count)
        source = marked(source, columns, self._codes(columns))
        if not self.no_totals:
            self._refuse_totals(source, columns)
        for factor in coded:
            source = _with_levels(source, factor)
        return source

    def _refuse_totals(self, source: TableFile, columns: Sequence[str]) -> None:
        labels = {name: source.frame[name].unique().cast(pl.String) for name in columns}
        found = total_labels(labels, more=CODES if self.kind == "sdmx" else ())

        def where(level: str, label: str) -> str:
            here = source.frame[level].cast(pl.String) == label
            return source.where(int(here.arg_max() or 0))

        refuse_totals(found, where=where)

    def _load(self, table: Table, columns: Sequence[str], count: str) -> TableFile:
        if self.kind == "wide":
            return load_crosstab(table, columns, count, self.reading)
        if self.kind == "sdmx":
            return load_sdmx(table, columns, count, self.reading)
        others = [count] if count else []
        return without_blank(load(table, columns, others, reading=self.reading))

    def _codes(self, columns: Sequence[str]) -> dict[str, str]:
        for name in self.totals:
            if name != "*" and name not in columns:
                raise TableError(
                    f"total code for {name!r}, which is not one of {', '.join(columns)}."
                )
        default = self.totals.get("*", TOTAL if self.kind == "sdmx" else None)
        found = {name: self.totals.get(name, default) for name in columns}
        return {name: code for name, code in found.items() if code is not None}

    def _coded(self, by: Sequence[str]) -> list[Factor]:
        factors = () if self.domain is None else self.domain.factors
        return [each for each in factors if each.inner is not None and set(each.columns) <= set(by)]


def _columns(by: Sequence[str], coded: list[Factor]) -> list[str]:
    """The columns of the file: a column of codes stands for the levels derived from it."""
    code = {name: factor.keys[0] for factor in coded for name in factor.columns}
    return list(dict.fromkeys(code.get(name, name) for name in by))


def _with_levels(source: TableFile, factor: Factor) -> TableFile:
    """The level columns of each code; null below an inner code, and everywhere for a total."""
    (code,) = factor.keys
    assert factor.inner is not None
    leaves = factor.known.select(code).hstack(factor.cells[factor.known[PLACE].to_list()])
    levels = pl.concat([leaves, factor.inner])
    unknown = source.frame[code].is_not_null() & ~source.frame[code].is_in(levels[code].implode())
    if unknown.any():
        row = int(unknown.arg_max() or 0)
        raise TableError(
            f"{source.where(row)}: column {code!r} has a code that is not in the hierarchy."
        )
    joined = source.frame.join(levels, on=code, how="left", maintain_order="left")
    return replace(source, frame=joined)
