"""Counts that were noised elsewhere: one row a node of every level, signed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.files import load
from countwise.tables.hierarchy import ROOT, Hierarchy, build, check_level_names, listed
from countwise.tables.rowchecks import whole_numbers
from countwise.tables.table_file import TableFile


def read_noisy(
    path: str | Path, *, by: Sequence[str], noisy: Sequence[str]
) -> tuple[Hierarchy, list[tuple[IntArray, ...]]]:
    """The tree of a file and, for each noisy column, its values level by level.

    A row is a node: its level columns are filled down to its level and empty below. Every node
    that has cells below it, the grand total included, must have its row.
    """
    by = listed(by)
    check_level_names(by)
    source = load(Path(path), by, list(noisy))
    filled = source.frame.select(pl.col(by).is_not_null() & (pl.col(by) != ""))
    depth = filled.sum_horizontal().to_numpy()
    _refuse_gaps(source, filled, depth)
    cells = _cells(source, by)
    if not len(cells):
        raise TableError(f"{source.path}: no row has a label at every level.")
    hierarchy, _ = build(source.frame.select(by)[cells])
    places = [_places(source, hierarchy, level, depth) for level in range(len(by) + 1)]
    columns = [whole_numbers(source, name, least=None) for name in noisy]
    return hierarchy, [tuple(column[place] for place in places) for column in columns]


def _cells(source: TableFile, by: Sequence[str]) -> IntArray:
    """The rows with a label at every level."""
    filled = source.frame.select(pl.all_horizontal(pl.col(by).is_not_null() & (pl.col(by) != "")))
    return np.flatnonzero(filled.to_series().to_numpy())


def _refuse_gaps(source: TableFile, filled: pl.DataFrame, depth: IntArray) -> None:
    for level, name in enumerate(filled.columns):
        gap = ~filled[name].to_numpy() & (depth > level)
        if gap.any():
            raise TableError(
                f"{source.where(int(np.argmax(gap)))}: level column {name!r} is empty while an "
                "inner one is not. A node's labels are filled from the outer level down."
            )


def _places(source: TableFile, hierarchy: Hierarchy, level: int, depth: IntArray) -> IntArray:
    """For each node of a level, the row it stands in."""
    rows = np.flatnonzero(depth == level)
    by = list(hierarchy.by[:level])
    if not by:
        if len(rows) != 1:
            raise TableError(
                f"{source.path}: needs one row for the grand total, with every level column "
                f"empty (level {ROOT!r}); it has {len(rows)}."
            )
        return rows
    listed = source.frame.select(by)[rows].with_columns(pl.Series("row", rows))
    if listed.select(by).is_duplicated().any():
        again = int(rows[int((~listed.select(by).is_unique()).arg_max() or 0)])
        raise TableError(f"{source.where(again)}: this node has more than one row.")
    nodes = hierarchy.frame(level).select(pl.col(by).cast(pl.String))
    placed = nodes.join(listed, on=by, how="left", maintain_order="left")["row"]
    if placed.is_null().any():
        cells = source.frame.select(by).with_row_index("row")[_cells(source, hierarchy.by)]
        row = int(cells.join(listed, on=by, how="anti")["row"].to_numpy().min())
        raise TableError(
            f"{source.where(row)}: no row for the node above this cell at level "
            f"{hierarchy.levels[level]!r}. Every node above the cells needs its own noisy count."
        )
    if len(rows) > len(nodes):
        raise TableError(
            f"{source.path}: a row of level {hierarchy.levels[level]!r} has no cells below it."
        )
    return placed.to_numpy().astype(np.int64)
