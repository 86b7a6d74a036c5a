"""Tables of counts and lists of cells from CSV and Parquet files.

Every refusal names the file, the row as an editor shows it, and a column that was asked for. None
shows a count or a label: in a faulty file what stands for a label can be a count.
"""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.confidential import Confidential
from countwise.tables.files import Loader, TableFile, load
from countwise.tables.hierarchy import Hierarchy, build, check_level_names, listed
from countwise.tables.rowchecks import refuse_bad_labels, whole_numbers
from countwise.tables.workload import Workload

NO_DOMAIN = (
    "the list of cells must be public, because a cell that appears only when someone is in it "
    "tells that someone is. To fix, give the public list with --domain cells.csv, or state with "
    "--cells-are-public that the rows of the table are that list (empty cells included, as zeros)."
)


class PublicCellsWarning(UserWarning):
    """The rows of a table were taken as the public list of cells without saying so."""


Across = str | Mapping[str, Sequence[str]]
"""Variables that cross the first: `age: band > year, sex`, or their levels by their names."""


@overload
def read_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    across: None = None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
) -> Confidential: ...
@overload
def read_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    across: Across,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
) -> Confidential[Workload]: ...
@overload
def read_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    across: Across | None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
) -> Confidential | Confidential[Workload]: ...
def read_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    across: Across | None = None,
    domain: str | Path | None = None,
    cells_are_public: bool | None = None,
    loader: Loader | None = None,
) -> Confidential | Confidential[Workload]:
    """The confidential table in a file: one row a cell, level columns outer to inner, a count.

    The cells are those of the public `domain` file; cells without a row are zeros. Without a
    domain the rows of the table are the cells, which is right only when that list is public:
    say so with `cells_are_public=True`. Variables `across` cross that of the levels `by`; the
    cells are then all combinations of the categories listed. A `loader` reads files of another
    layout.
    """
    if domain is None and cells_are_public is False:
        raise TableError(NO_DOMAIN)
    if domain is None and cells_are_public is None:
        warnings.warn(
            f"the rows of {path} are taken as the public list of cells. Say so with "
            "cells_are_public=True, or give the list with domain=…",
            PublicCellsWarning,
            stacklevel=2,
        )
    if across is not None:
        return Confidential(*_crossed_counts(path, by, across, count, domain, loader))
    return Confidential(*read_public_counts(path, by=by, count=count, domain=domain, loader=loader))


def _crossed_counts(
    path: str | Path,
    by: Sequence[str],
    across: Across,
    count: str,
    domain: str | Path | None,
    loader: Loader | None,
) -> tuple[Workload, IntArray]:
    """The cells of variables that cross, and their counts."""
    from countwise.tables.crossed_cells import (
        listed_domain,
        places_in,
        read_crossed_domain,
        variables_of,
    )

    names = variables_of(listed(by), across)
    source, counts = _rows(
        path, [each for levels in names.values() for each in levels], count, loader
    )
    crossing = (
        listed_domain(source, names) if domain is None else read_crossed_domain(domain, names)
    )
    workload = crossing.workload
    place = places_in(workload, source.frame)
    where = Path(path if domain is None else domain)
    return workload, located(source, counts, place, cells=workload.cells, domain=where)


def read_public_counts(
    path: str | Path,
    *,
    by: Sequence[str],
    count: str,
    domain: str | Path | None = None,
    loader: Loader | None = None,
) -> tuple[Hierarchy, IntArray]:
    """Counts that need no protection, such as a public stand-in: the cells and their counts."""
    by = listed(by)
    source, counts = _rows(path, by, count, loader)
    if domain is not None:
        hierarchy = read_domain(domain, by=by)
        return hierarchy, placed(source, counts, hierarchy, domain=Path(domain))
    hierarchy, order = unique_cells(source, by)
    return hierarchy, counts[order]


def _rows(
    path: str | Path, by: Sequence[str], count: str, loader: Loader | None
) -> tuple[TableFile, IntArray]:
    """The rows of a file, checked, and the count of each."""
    check_level_names(by)
    if count in by:
        raise TableError(f"column {count!r} can not be a level and the count.")
    source = load(Path(path), by, [count]) if loader is None else loader(Path(path), by, count)
    refuse_bad_labels(source, by)
    return source, whole_numbers(source, count, least=0)


def read_domain(path: str | Path, *, by: Sequence[str]) -> Hierarchy:
    """The public cells: one row each, level columns outer to inner, or a domain in TOML."""
    by = listed(by)
    check_level_names(by)
    if Path(path).suffix.lower() == ".toml":
        from countwise.tables.domainfile import read_domain_file

        return read_domain_file(path, by=by).hierarchy
    source = load(Path(path), by, [])
    refuse_bad_labels(source, by)
    return unique_cells(source, by)[0]


def unique_cells(source: TableFile, by: Sequence[str]) -> tuple[Hierarchy, IntArray]:
    """The tree of cells that are each listed once, and the row that each came from."""
    hierarchy, order = build(source.frame.select(by))
    codes, parents = hierarchy.codes[-1], hierarchy.parents(len(by))
    twin = np.flatnonzero((codes[1:] == codes[:-1]) & (parents[1:] == parents[:-1]))
    if len(twin):
        first, second = sorted((int(order[twin[0]]), int(order[twin[0] + 1])))
        raise TableError(
            f"{source.where(second)}: duplicate of the cell in {source.place(first)}. Every cell "
            "must have one row."
        )
    return hierarchy, order


def placed(source: TableFile, counts: IntArray, hierarchy: Hierarchy, *, domain: Path) -> IntArray:
    """The counts of a domain's cells; those without a row are zeros."""
    by = list(hierarchy.by)
    listed = hierarchy.frame(len(by)).select(pl.col(by).cast(pl.String)).with_row_index("cell")
    labels = source.frame.select(pl.col(by).cast(pl.String))
    place = labels.join(listed, on=by, how="left", maintain_order="left")["cell"]
    return located(source, counts, place, cells=hierarchy.cells, domain=domain)


def located(
    source: TableFile, counts: IntArray, place: pl.Series, *, cells: int, domain: Path
) -> IntArray:
    """The counts of all cells, from the cell of each row; null where there is none."""
    outside = place.is_null()
    if outside.any():
        row = int(outside.arg_max() or 0)
        raise TableError(
            f"{source.where(row)}: this cell is not in the domain {domain}. "
            "To fix, add it to the public list of cells or correct its labels."
        )
    again = ~place.is_first_distinct()
    if again.any():
        row = int(again.arg_max() or 0)
        first = int((place == place[row]).arg_max() or 0)
        raise TableError(
            f"{source.where(row)}: duplicate of the cell in {source.place(first)}. Every cell must "
            "have one row."
        )
    found = np.zeros(cells, dtype=np.int64)
    found[place.to_numpy()] = counts
    return found
