"""A public tree cut into pieces, each small enough to be held in memory.

The tree is cut below a level: what is above is the top, and whole subtrees below it, side by
side, make a piece. Nothing here depends on a count.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl

from countwise.arrays import IntArray, frozen
from countwise.errors import TableError
from countwise.tables.domain import CELLS, Domain
from countwise.tables.file_faults import parsing
from countwise.tables.files import ROW, Rows, load, scan
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.order import as_published
from countwise.tables.rowchecks import refuse_bad_labels

PIECE = 2_000_000
"""Cells of a piece, about; a piece holds one subtree at least, however large."""
FIRST, LAST = "countwise first", "countwise last"


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """Where a tree is cut: the nodes of level `depth` by their paths, gathered into pieces.

    Piece i has the subtrees of nodes `bounds[i]` to `bounds[i + 1] - 1`. `spans` has, for the
    nodes of a file, the first and the last row of each.
    """

    by: tuple[str, ...]
    depth: int
    paths: pl.DataFrame
    cells: IntArray
    bounds: IntArray
    spans: tuple[IntArray, IntArray] | None = None
    whole: Hierarchy | None = None
    """The tree where it is not cut: the top is all of it, and there is no piece."""

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def top(self) -> Hierarchy:
        """The tree above the cut, whose last level has the nodes that were cut off."""
        return self.whole or build(as_published(self.paths))[0]

    @property
    def total(self) -> int:
        """Cells of the whole tree."""
        return int(self.cells.sum())

    def nodes(self, piece: int) -> slice:
        """The nodes of level `depth` in a piece."""
        return slice(int(self.bounds[piece]), int(self.bounds[piece + 1]))

    def within(self, piece: int) -> pl.Expr:
        """Rows from the first path of the piece up to that of the next: every row is in one.

        Rows with an empty label are in the first, where they are found and refused.
        """
        here = pl.lit(value=True)
        if piece > 0:
            here = here & self._from(self.paths.row(int(self.bounds[piece])))
        if piece < len(self) - 1:
            here = here & ~self._from(self.paths.row(int(self.bounds[piece + 1])))
        if piece == 0:
            here = here | pl.any_horizontal(pl.col(self.paths.columns).is_null())
        return here

    def _from(self, path: tuple[str, ...]) -> pl.Expr:
        """Whether a row's path is this one or a later one."""
        found = pl.lit(value=True)
        for name, label in zip(reversed(self.paths.columns), reversed(path), strict=True):
            column = pl.col(name).cast(pl.String)
            found = (column > label) | ((column == label) & found)
        return found

    def rows(self, piece: int) -> Rows:
        """Where the cells of a piece stand in the file that was cut."""
        assert self.spans is not None
        here = self.nodes(piece)
        first, last = int(self.spans[0][here].min()), int(self.spans[1][here].max())
        count = last - first + 1
        alone = count == int(self.cells[here].sum())
        return Rows(first=first, count=count, condition=None if alone else self.within(piece))


def uncut(hierarchy: Hierarchy) -> Cut:
    """A tree that memory holds."""
    return Cut(
        by=hierarchy.by,
        depth=len(hierarchy.by),
        paths=pl.DataFrame(),
        cells=frozen(np.array([hierarchy.cells])),
        bounds=frozen(np.zeros(1, np.int64)),
        whole=hierarchy,
    )


def cut_file(path: Path, *, by: tuple[str, ...], most: int = PIECE) -> Cut | None:
    """A file of cells cut at the outermost level whose subtrees are small; None if it need not be.

    A table of one level is one family of siblings and can not be cut.
    """
    load(path, by, [], rows=Rows(first=0, count=1))
    if height(path) <= most:
        return None
    for depth in range(1, len(by)):
        outer = list(by[:depth])
        grouped = _grouped(path, outer)
        _refuse_empty(path, grouped, outer)
        largest = int(grouped[CELLS].to_numpy().max())
        if largest <= most or depth == len(by) - 1:
            nodes = grouped.sort(outer)
            spans = tuple(frozen(nodes[name].to_numpy().copy()) for name in (FIRST, LAST))
            cells = nodes[CELLS].to_numpy().copy()
            return cut_of(by, nodes.select(outer), cells, most, spans=(spans[0], spans[1]))
    return None


def _grouped(path: Path, outer: list[str]) -> pl.DataFrame:
    """The nodes of a level, each with its number of cells and its first and last row."""
    with parsing(path):
        return (
            scan(path, row_index=ROW)
            .group_by(pl.col(outer).cast(pl.String))
            .agg(
                pl.len().cast(pl.Int64).alias(CELLS),
                pl.col(ROW).min().cast(pl.Int64).alias(FIRST),
                pl.col(ROW).max().cast(pl.Int64).alias(LAST),
            )
            .collect(engine="streaming")
        )


def height(path: Path) -> int:
    """Rows of a file."""
    with parsing(path):
        return int(scan(path).select(pl.len()).collect(engine="streaming").item())


def _refuse_empty(path: Path, grouped: pl.DataFrame, outer: list[str]) -> None:
    """An empty label would be in no piece; its row is told."""
    empty = grouped.filter(pl.any_horizontal(pl.col(outer).is_null() | (pl.col(outer) == "")))
    if len(empty):
        first = int(empty[FIRST].to_numpy().min())
        refuse_bad_labels(load(path, outer, [], rows=Rows(first=first, count=1)), outer)
        raise TableError(f"{path}: a level column is empty.")


def cut_domain(domain: Domain, *, most: int = PIECE) -> Cut | None:
    """A product of lists cut at the outermost level whose subtrees are small."""
    if domain.size <= most:
        return None
    for depth in range(1, len(domain.by)):
        nodes = domain.nodes(depth)
        if int(nodes[CELLS].to_numpy().max()) <= most or depth == len(domain.by) - 1:
            outer = list(domain.by[:depth])
            nodes = nodes.sort(outer)
            return cut_of(domain.by, nodes.select(outer), nodes[CELLS].to_numpy().copy(), most)
    return None


def cut_of(
    by: tuple[str, ...],
    paths: pl.DataFrame,
    cells: IntArray,
    most: int,
    *,
    spans: tuple[IntArray, IntArray] | None = None,
) -> Cut:
    """The cut at nodes given by their paths, in their order, and the number of cells of each."""
    return Cut(
        by=by,
        depth=len(paths.columns),
        paths=paths,
        cells=frozen(cells),
        bounds=frozen(gathered(cells, most)),
        spans=spans,
    )


def gathered(cells: IntArray, most: int) -> IntArray:
    """Bounds of runs of nodes with at most so many cells each, or one node."""
    ends = np.cumsum(cells)
    bounds = [0]
    while bounds[-1] < len(cells):
        before = int(ends[bounds[-1] - 1]) if bounds[-1] else 0
        bounds.append(max(int(np.searchsorted(ends, before + most, "right")), bounds[-1] + 1))
    return np.array(bounds, dtype=np.int64)
