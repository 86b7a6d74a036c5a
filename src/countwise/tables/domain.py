"""The public domain: which cells there are, and which cell a record belongs to.

A domain is a product of factors. A factor is one column with its list of levels or bins, or
several columns whose labels belong together, such as the counties of each state. Nothing here
is read from the data.
"""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.binning import Bins
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.order import as_listed, as_published

MOST_CELLS = 10**10  # of a product, of which a release in pieces holds a few at a time
PLACE = "countwise place"
CELLS = "countwise cells"


@dataclass(frozen=True, kw_only=True, eq=False)
class Factor:
    """Level columns that are filled together, and the record columns that decide how.

    `cells` has one row a place: its label in each level column. `known` has the record columns
    `keys` as text and the place they lead to. `missing` and `other` are the places of records
    without a value and of records that `known` does not list, where such places are declared.
    `inner` lists codes that stand for several places, as total rows of tables have them.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    cells: pl.DataFrame
    known: pl.DataFrame
    missing: int | None = None
    other: int | None = None
    bins: Bins | None = None
    inner: pl.DataFrame | None = None

    def places(self, groups: pl.DataFrame) -> IntArray:
        """For each row of texts, its place in `cells`; -1 where it has none."""
        wanted = groups.select(self.keys)
        found = wanted.join(self.known, on=self.keys, how="left", maintain_order="left")[PLACE]
        places = found.fill_null(-1).to_numpy().copy()
        if self.missing is not None:
            blank = wanted.select(
                pl.any_horizontal(pl.col(key).is_null() | (pl.col(key) == "") for key in self.keys)
            )
            places[blank.to_series().to_numpy()] = self.missing
        return places


@dataclass(frozen=True, kw_only=True, eq=False)
class Domain:
    """The factors of a product of cells, for level columns in the order of `by`."""

    by: tuple[str, ...]
    factors: tuple[Factor, ...]

    def __post_init__(self) -> None:
        if not self.size:
            raise TableError("the domain has no cells. To fix, list one level or more a column.")
        if self.size > MOST_CELLS:
            raise TableError(
                f"the domain is a product of {self.size:,} cells, and the most is {MOST_CELLS:,}. "
                "To fix, leave a level column out, use coarser bins, or give the list of cells "
                "that can exist in a file."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Places of each factor."""
        return tuple(len(factor.cells) for factor in self.factors)

    @property
    def size(self) -> int:
        """Cells of the product."""
        return prod(self.shape)

    @property
    def keys(self) -> tuple[str, ...]:
        """Record columns that decide the cell of a record."""
        return tuple(key for factor in self.factors for key in factor.keys)

    @cached_property
    def _built(self) -> tuple[Hierarchy, IntArray]:
        columns: dict[str, pl.Series] = {}
        for factor, places in zip(
            self.factors, np.unravel_index(np.arange(self.size), self.shape), strict=True
        ):
            listed = as_listed(factor.cells)
            for name in factor.columns:
                columns[name] = listed[name].gather(places)
        return build(pl.DataFrame([columns[name] for name in self.by]))

    def nodes(self, depth: int) -> pl.DataFrame:
        """The nodes of a level by their labels, each with the number of its cells."""
        outer = self.by[:depth]
        found = pl.DataFrame({CELLS: [1]})
        for factor in self.factors:
            within = [name for name in factor.columns if name in outer]
            if not within:
                found = found.with_columns(pl.col(CELLS) * len(factor.cells))
                continue
            sizes = factor.cells.group_by(within).agg(pl.len().cast(pl.Int64).alias(PLACE))
            found = found.join(sizes, how="cross").with_columns(pl.col(CELLS) * pl.col(PLACE))
            found = found.drop(PLACE)
        return found.select(*outer, CELLS)

    def below(self, paths: pl.DataFrame) -> tuple[Hierarchy, IntArray]:
        """The tree over the cells below the given nodes, and the number of each in the product."""
        cells, places = paths, []
        for i, factor in enumerate(self.factors):
            places.append(f"{PLACE} {i}")
            listed = factor.cells.with_row_index(places[-1])
            within = [name for name in factor.columns if name in paths.columns]
            if within:
                cells = cells.join(listed, on=within, how="inner")
            else:
                cells = cells.join(listed, how="cross")
        hierarchy, order = build(as_published(cells.select(self.by)))
        found = [cells[name].to_numpy()[order].astype(np.int64) for name in places]
        return hierarchy, np.asarray(np.ravel_multi_index(tuple(found), self.shape))

    def owners(self, paths: pl.DataFrame, numbers: IntArray) -> IntArray:
        """For numbers of cells in the product, the row of the node above each in `paths`.

        `paths` has all nodes of a level, by their labels.
        """
        places = np.unravel_index(numbers, self.shape)
        found, shape = np.zeros(len(numbers), dtype=np.int64), 1
        listed = np.zeros(len(paths), dtype=np.int64)
        for factor, place in zip(self.factors, places, strict=True):
            within = [name for name in factor.columns if name in paths.columns]
            if not within:
                continue
            parts = factor.cells.select(within).unique().with_row_index(PLACE)
            here = factor.cells.join(parts, on=within, how="left", maintain_order="left")[PLACE]
            there = paths.join(parts, on=within, how="left", maintain_order="left")[PLACE]
            found = found * len(parts) + here.to_numpy()[place]
            listed = listed * len(parts) + there.to_numpy()
            shape *= len(parts)
        rows = np.empty(shape, dtype=np.int64)
        rows[listed] = np.arange(len(paths))
        return rows[found]

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree over the cells of the product."""
        return self._built[0]

    @property
    def order(self) -> IntArray:
        """For each cell of the hierarchy, its number in the product."""
        return self._built[1]


def factor_of(
    labels: pl.DataFrame,
    *,
    codes: pl.DataFrame | None = None,
    missing: str | None = None,
    other: str | None = None,
    bins: Bins | None = None,
    inner: pl.DataFrame | None = None,
) -> Factor:
    """A factor from a frame of level columns, with its places for missing and other.

    Records hold the labels themselves, or the `codes` beside them. The places for missing and
    other are cells whose every label is the declared one, added unless they are listed.
    """
    columns = labels.columns
    extra = [(label,) * len(columns) for label in (missing, other) if label is not None]
    added = pl.DataFrame(extra, schema=dict.fromkeys(columns, pl.String), orient="row")
    cells = pl.concat([labels, added]).unique(maintain_order=True, keep="first")
    placed = cells.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(PLACE))
    known = placed
    if codes is not None:
        places = labels.join(placed, on=columns, how="left", maintain_order="left")[PLACE]
        known = codes.with_columns(places)
    return Factor(
        columns=tuple(columns),
        keys=tuple(known.drop(PLACE).columns),
        cells=cells,
        known=known,
        missing=_place(placed, missing),
        other=_place(placed, other),
        bins=bins,
        inner=inner,
    )


def _place(placed: pl.DataFrame, label: str | None) -> int | None:
    if label is None:
        return None
    every = pl.all_horizontal(pl.all().exclude(PLACE) == label)
    return int(placed.filter(every)[PLACE][0])
