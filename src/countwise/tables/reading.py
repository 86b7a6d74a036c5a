"""Tables of counts and lists of cells from files and data frames.

Every refusal names the file, the row as an editor shows it, and a column that was asked for. None
shows a count or a label: in a faulty file what stands for a label can be a count.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import overload

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.confidential import Confidential
from countwise.tables.files import ROW, Loader, files_of, name_of
from countwise.tables.frames import as_table
from countwise.tables.hierarchy import Hierarchy, build, check_level_names, listed
from countwise.tables.layouts import Layout
from countwise.tables.order import as_listed
from countwise.tables.provenance import provenance_of
from countwise.tables.rowchecks import refuse_alike, refuse_bad_labels, whole_numbers
from countwise.tables.table_file import TableFile
from countwise.tables.workload import Workload

NO_DOMAIN = (
    "the list of cells must be public, because a cell that appears only when someone is in it "
    "tells that someone is. To fix, give the public list with --domain cells.csv, or state with "
    "--cells-are-public that the rows of the table are that list (empty cells included, as zeros)."
)

TWICE = (
    "Every cell must have one row. To fix, name every column that tells cells apart with --by, or "
    "add rows of one cell up with --sum-duplicates."
)
SUM = "countwise sum"


class PublicCellsWarning(UserWarning):
    """The rows of a table were taken as the public list of cells without saying so."""


Across = str | Mapping[str, Sequence[str]]
"""Variables that cross the first: `age: band > year, sex`, or their levels by their names."""


@overload
def read_counts(
    table: object,
    *,
    by: Sequence[str],
    count: str,
    across: None = None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
    sum_duplicates: bool = False,
) -> Confidential: ...
@overload
def read_counts(
    table: object,
    *,
    by: Sequence[str],
    count: str,
    across: Across,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
    sum_duplicates: bool = False,
) -> Confidential[Workload]: ...
@overload
def read_counts(
    table: object,
    *,
    by: Sequence[str],
    count: str,
    across: Across | None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
    sum_duplicates: bool = False,
) -> Confidential | Confidential[Workload]: ...
def read_counts(
    table: object,
    *,
    by: Sequence[str],
    count: str,
    across: Across | None = None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
    sum_duplicates: bool = False,
) -> Confidential | Confidential[Workload]:
    """The confidential table in a file: one row a cell, level columns outer to inner, a count.

    Files are CSV, Parquet, Arrow, workbooks, and those of Stata and SPSS, or many under a
    pattern; data frames and Arrow tables are taken too. The cells are those of the public
    `domain` file; cells without a row are zeros. Without a domain the rows of the table are the
    cells, which is right only when that list is public: say so with `cells_are_public=True`.
    Variables `across` cross that of the levels `by`; the cells are then all combinations of the
    categories listed. A `loader` such as `Layout` reads other layouts and is told what can not be
    seen of a file. Rows of one cell are refused, unless `sum_duplicates` adds them up.
    """
    given = as_table(table)
    counted = provenance_of(files_of(given))
    if domain is None and cells_are_public is False:
        raise TableError(NO_DOMAIN)
    if domain is None and cells_are_public is None:
        warnings.warn(
            f"the rows of {name_of(given)} are taken as the public list of cells. Say so with "
            "cells_are_public=True, or give the list with domain=…",
            PublicCellsWarning,
            stacklevel=2,
        )
    if across is not None:
        from countwise.tables.crossed_cells import variables_of

        names = variables_of(listed(by), across)
        levels = [each for levels in names.values() for each in levels]
        source, counts = _rows(given, levels, count, loader, domain, sum_duplicates)
        return Confidential(*_crossed_counts(source, counts, names, domain, loader), counted)
    return Confidential(
        *read_public_counts(
            given, by=by, count=count, domain=domain, loader=loader, sum_duplicates=sum_duplicates
        ),
        counted,
    )


def _crossed_counts(
    source: TableFile,
    counts: IntArray,
    names: Mapping[str, tuple[str, ...]],
    domain: str | Path | None,
    loader: Loader | None,
) -> tuple[Workload, IntArray]:
    """The cells of variables that cross, and their counts."""
    from countwise.tables.crossed_cells import listed_domain, places_in, read_crossed_domain

    if domain is None:
        crossing = listed_domain(source, names)
    else:
        said = Layout(no_totals=isinstance(loader, Layout) and loader.no_totals)
        crossing = read_crossed_domain(domain, names, layout=said)
    workload = crossing.workload
    place = places_in(workload, source.frame)
    where = source.path if domain is None else Path(domain)
    return workload, located(source, counts, place, cells=workload.cells, domain=where)


def read_public_counts(
    table: object,
    *,
    by: Sequence[str],
    count: str,
    domain: str | Path | Hierarchy | None = None,
    loader: Loader | None = None,
    sum_duplicates: bool = False,
) -> tuple[Hierarchy, IntArray]:
    """Counts that need no protection, such as a public stand-in: the cells and their counts.

    A `domain` that was read already is its cells.
    """
    by = listed(by)
    source, counts = _rows(table, by, count, loader, domain, sum_duplicates)
    if isinstance(domain, Hierarchy):
        return domain, placed(source, counts, domain)
    if domain is not None:
        said = loader if isinstance(loader, Layout) else Layout()
        like = Layout(totals=said.totals, no_totals=said.no_totals)
        hierarchy = read_domain(domain, by=by, layout=like)
        return hierarchy, placed(source, counts, hierarchy, domain=Path(domain))
    hierarchy, order = unique_cells(replace(source, frame=source.ordered(by)), by)
    return hierarchy, counts[order]


def read_public_cells(
    table: object,
    *,
    names: Mapping[str, tuple[str, ...]],
    count: str,
    cells: Workload | None = None,
    loader: Loader | None = None,
) -> tuple[Workload, IntArray]:
    """The same for variables that cross, by name: their cells, and the counts as a grid.

    `cells` that were read already are the domain, else all combinations of what the rows have.
    """
    from countwise.tables.crossed_cells import places_in

    levels = [each for own in names.values() for each in own]
    source, counts = _rows(table, levels, count, loader, cells, sum_duplicates=False)
    if cells is None:
        space, found = _crossed_counts(source, counts, names, None, loader)
        return space, found.reshape(space.shape)
    place = places_in(cells, source.frame)
    found = located(source, counts, place, cells=cells.cells, domain=None)
    return cells, found.reshape(cells.shape)


def _rows(
    table: object,
    by: Sequence[str],
    count: str,
    loader: Loader | None,
    domain: object,
    sum_duplicates: bool,
) -> tuple[TableFile, IntArray]:
    """The rows of a table, checked, and the count of each."""
    check_level_names(tuple(by))
    if count in by:
        raise TableError(f"column {count!r} can not be a level and the count.")
    loader = Layout() if loader is None else loader
    source = loader(as_table(table), by, count)
    refuse_bad_labels(source, by)
    counts = whole_numbers(source, count, least=0)
    if sum_duplicates:
        source, counts = _summed(source, counts, by)
    _refuse_alike(source, by, shown=domain is None)
    return source, counts


def _summed(source: TableFile, counts: IntArray, by: Sequence[str]) -> tuple[TableFile, IntArray]:
    """One row a cell, with the sum of the rows that have its labels."""
    rows = source.frame.select(by).with_row_index(ROW)
    rows = rows.with_columns(pl.Series(SUM, counts), pl.col(ROW).cast(pl.Int64))
    cells = rows.group_by(by, maintain_order=True).agg(pl.col(ROW).first(), pl.col(SUM).sum())
    return source.kept(cells[ROW].to_numpy()), cells[SUM].to_numpy()


def _refuse_alike(source: TableFile, by: Sequence[str], *, shown: bool) -> None:
    """Refuse labels that differ in capitals or spaces only; those of public cells are shown."""
    labels = {name: source.frame[name].unique().cast(pl.String) for name in by}
    refuse_alike(source.path, labels, shown=shown)


def read_domain(
    path: str | Path, *, by: Sequence[str], count: str = "", layout: Layout | None = None
) -> Hierarchy:
    """The public cells: one row each, level columns outer to inner, or a domain in TOML.

    A table of another `layout` is a list of its cells too; its counts are not looked at.
    """
    by, path, layout = listed(by), Path(path), layout or Layout()
    check_level_names(by)
    if path.suffix.lower() == ".toml":
        from countwise.tables.domainfile import read_domain_file

        return read_domain_file(path, by=by, no_totals=layout.no_totals).hierarchy
    source = layout.public(path, by, count)
    _refuse_alike(source, by, shown=True)
    return unique_cells(replace(source, frame=as_listed(source.frame.select(by))), by)[0]


def unique_cells(source: TableFile, by: Sequence[str]) -> tuple[Hierarchy, IntArray]:
    """The tree of cells that are each listed once, and the row that each came from."""
    hierarchy, order = build(source.frame.select(by))
    codes, parents = hierarchy.codes[-1], hierarchy.parents(len(by))
    twin = np.flatnonzero((codes[1:] == codes[:-1]) & (parents[1:] == parents[:-1]))
    if len(twin):
        first, second = sorted((int(order[twin[0]]), int(order[twin[0] + 1])))
        raise TableError(
            f"{source.where(second)}: duplicate of the cell in {source.place(first)}. {TWICE}"
        )
    return hierarchy, order


def placed(
    source: TableFile, counts: IntArray, hierarchy: Hierarchy, *, domain: Path | None = None
) -> IntArray:
    """The counts of a domain's cells; those without a row are zeros."""
    by = list(hierarchy.by)
    listed = hierarchy.frame(len(by)).select(pl.col(by).cast(pl.String)).with_row_index("cell")
    labels = source.frame.select(pl.col(by).cast(pl.String))
    place = labels.join(listed, on=by, how="left", maintain_order="left")["cell"]
    return located(source, counts, place, cells=hierarchy.cells, domain=domain)


def located(
    source: TableFile, counts: IntArray, place: pl.Series, *, cells: int, domain: Path | None
) -> IntArray:
    """The counts of all cells, from the cell of each row; null where there is none."""
    outside = place.is_null()
    if outside.any():
        row, named = int(outside.arg_max() or 0), "" if domain is None else f" {domain}"
        raise TableError(
            f"{source.where(row)}: this cell is not in the domain{named}. "
            "To fix, correct its labels, or leave the row out. The list of cells must stay what "
            "was public before anyone looked at the table."
        )
    again = ~place.is_first_distinct()
    if again.any():
        row = int(again.arg_max() or 0)
        first = int((place == place[row]).arg_max() or 0)
        raise TableError(
            f"{source.where(row)}: duplicate of the cell in {source.place(first)}. {TWICE}"
        )
    found = np.zeros(cells, dtype=np.int64)
    found[place.to_numpy()] = counts
    return found
