"""Layouts of tables of counts as agencies keep them, read into one row a cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from countwise.errors import TableError
from countwise.tables.crosstab import load_crosstab
from countwise.tables.domain import PLACE, Domain, Factor
from countwise.tables.files import TableFile, load
from countwise.tables.sdmx import TOTAL, load_sdmx
from countwise.tables.totals import marked, without_totals

LAYOUTS = ("long", "wide", "sdmx")


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a table of counts is laid out.

    `long` has one row a cell; `wide` has one column a category of the last level; `sdmx` is
    SDMX-CSV. `totals` has the code that marks a total row, by level column, or for all columns
    under the name `*`. Level columns that a domain derives from codes of a hierarchy are read
    from the column of codes; inner codes are total rows.
    """

    kind: str = "long"
    totals: Mapping[str, str] = field(default_factory=dict)
    domain: Domain | None = None

    def __post_init__(self) -> None:
        if self.kind not in LAYOUTS:
            raise TableError(f"layout must be one of {', '.join(LAYOUTS)}; got {self.kind!r}.")

    def __call__(self, path: Path, by: Sequence[str], count: str) -> TableFile:
        """The table of a file as one row a cell, totals checked and left out."""
        coded = self._coded(by)
        columns = _columns(by, coded)
        source = self._load(path, columns, count)
        source = marked(source, columns, self._codes(columns))
        for factor in coded:
            source = _with_levels(source, factor)
        return without_totals(source, by, count)

    def _load(self, path: Path, columns: Sequence[str], count: str) -> TableFile:
        if self.kind == "wide":
            return load_crosstab(path, columns, count)
        return (load_sdmx if self.kind == "sdmx" else _load_long)(path, columns, count)

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


def _load_long(path: Path, columns: Sequence[str], count: str) -> TableFile:
    return load(path, columns, [count])


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
