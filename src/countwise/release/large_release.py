"""A release folder read in pieces, for those who compute with a large one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.noise.laws import IntegerLaw
from countwise.release.manifest import (
    levels_of,
    read_noise,
    read_tree_manifest,
    refuse_changed,
)
from countwise.release.plan import from_dict
from countwise.tables.cut import PIECE, Cut, cut_of
from countwise.tables.domain import CELLS
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.order import as_published


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedPiece:
    """One piece: its tree, and the noisy and released counts of the levels from the cut down."""

    hierarchy: Hierarchy
    noisy: dict[int, IntArray]
    counts: dict[int, IntArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeRelease:
    """The tables of a release by level and piece; nothing of them is held."""

    folder: Path
    by: tuple[str, ...]
    laws: tuple[IntegerLaw, ...]
    sizes: tuple[int, ...]
    cut: Cut
    bounds: tuple[IntArray, ...]
    """For each level below the cut, where the nodes of each piece begin."""

    @cached_property
    def top(self) -> PublishedPiece:
        """The tree down to the cut."""
        levels = range(self.cut.depth + 1)
        return PublishedPiece(
            hierarchy=self.cut.top,
            noisy={d: self._column("noisy", d, 0, self.sizes[d]) for d in levels},
            counts={d: self._column("count", d, 0, self.sizes[d]) for d in levels},
        )

    def piece(self, i: int) -> PublishedPiece:
        """The tree of a piece; at the cut it has the counts of its own nodes."""
        last = len(self.by)
        start, stop = self._range(last, i)
        labels = _rows(self.folder, "counts.parquet", sum(self.sizes[:last]) + start, stop - start)
        cells = as_published(labels.select(list(self.by)).collect())
        levels = range(self.cut.depth, last + 1)
        return PublishedPiece(
            hierarchy=build(cells)[0],
            noisy={d: self._column("noisy", d, *self._range(d, i)) for d in levels},
            counts={d: self._column("count", d, *self._range(d, i)) for d in levels},
        )

    def _range(self, level: int, i: int) -> tuple[int, int]:
        bounds = self.cut.bounds
        if level > self.cut.depth:
            bounds = self.bounds[level - self.cut.depth - 1]
        return int(bounds[i]), int(bounds[i + 1])

    def _column(self, name: str, level: int, start: int, stop: int) -> IntArray:
        table = "counts.parquet" if name == "count" else "measurements.parquet"
        found = _rows(self.folder, table, sum(self.sizes[:level]) + start, stop - start)
        return found.select(name).collect()[name].to_numpy().copy()


def _rows(folder: Path, table: str, first: int, count: int) -> pl.LazyFrame:
    path = folder / table
    files: Any = sorted(path.glob("[0-9]*.parquet")) if path.is_dir() else path
    return pl.scan_parquet(files, glob=False).slice(first, count)


def read_large_release(folder: str | Path, *, most: int = PIECE) -> LargeRelease | None:
    """The release in a folder, in pieces of about so many cells; None if memory can hold it.

    Releases with joint noise or exact counts are made in memory, and read there. Refused unless
    its files are those that were released.
    """
    folder = Path(folder).absolute()
    manifest = read_tree_manifest(folder)
    by, budget = levels_of(manifest), read_noise(manifest)
    sizes = tuple(each.nodes for each in budget)
    plan = from_dict(manifest["plan"], where=f"{folder}/release.json")
    coupled = plan.joint or any(each.exact for each in budget)
    if sizes[-1] <= most or len(by) == 1 or coupled:
        return None
    refuse_changed(folder, manifest)
    for depth in range(1, len(by)):
        cells = _below(folder, by, sizes, depth, len(by))
        if int(cells.max()) <= most or depth == len(by) - 1:
            break
    outer = list(by[:depth])
    nodes = _rows(folder, "counts.parquet", sum(sizes[:depth]), sizes[depth])
    cut = cut_of(by, as_published(nodes.select(outer).collect()), cells, most)
    inner = [*(_below(folder, by, sizes, depth, d) for d in range(depth + 1, len(by))), cells]
    ends = [np.concatenate([[0], np.cumsum(each)])[cut.bounds] for each in inner]
    laws = tuple(each.law for each in budget)
    return LargeRelease(folder=folder, by=by, laws=laws, sizes=sizes, cut=cut, bounds=tuple(ends))


def _below(
    folder: Path, by: Sequence[str], sizes: Sequence[int], depth: int, level: int
) -> IntArray:
    """For each node at a depth, how many nodes of a level are below it; rows are in order."""
    rows = _rows(folder, "counts.parquet", sum(sizes[:level]), sizes[level])
    outer = list(by[:depth])
    groups = rows.group_by(pl.col(outer).cast(pl.String), maintain_order=True)
    counted = groups.agg(pl.len().cast(pl.Int64).alias(CELLS))
    return counted.collect(engine="streaming")[CELLS].to_numpy().copy()
