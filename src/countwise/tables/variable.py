"""A classification of people: levels from coarse to fine, whose categories form a tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from countwise.arrays import IntArray, frozen
from countwise.errors import TableError
from countwise.tables.hierarchy import Hierarchy, build

LEAF = "countwise leaf"


@dataclass(frozen=True, kw_only=True, eq=False)
class Variable:
    """One classification by its tree of categories; the root stands for all of them together.

    A flat variable has one level below the root.
    """

    name: str
    tree: Hierarchy

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of its levels from coarse to fine, without the root."""
        return self.tree.by

    @property
    def sizes(self) -> tuple[int, ...]:
        """Categories of each level, the root first."""
        return self.tree.sizes

    @property
    def leaves(self) -> int:
        """Categories of the finest level."""
        return self.tree.cells

    @cached_property
    def _starts(self) -> tuple[IntArray, ...]:
        """For each level, the first leaf of every category."""
        starts = [np.arange(self.leaves)]
        for offsets in reversed(self.tree.offsets):
            starts.append(starts[-1][offsets[:-1]])
        return tuple(frozen(each) for each in reversed(starts))

    def starts(self, level: int, *, within: int | None = None) -> IntArray:
        """The first category of a finer level (the leaves) below each category of a level."""
        if within is None or within == len(self.levels):
            return self._starts[level]
        return np.searchsorted(self._starts[within], self._starts[level])

    def parents(self, level: int, *, of: int) -> IntArray:
        """For each category of a level, the position of the one above it at a coarser level."""
        found = np.searchsorted(self._starts[of], self._starts[level], side="right") - 1
        return np.asarray(found, dtype=np.int64)

    def places(self, rows: pl.DataFrame) -> pl.Series:
        """For each row of labels its leaf; null where the variable has none of that path."""
        paths = self.tree.frame(len(self.levels)).select(pl.col(self.levels).cast(pl.String))
        listed = paths.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(LEAF))
        wanted = rows.select(pl.col(self.levels).cast(pl.String))
        return wanted.join(listed, on=self.levels, how="left", maintain_order="left")[LEAF]


def make_variable(name: str, categories: pl.DataFrame) -> tuple[Variable, IntArray]:
    """The variable over a frame of level columns, and the row each of its leaves came from."""
    tree, order = build(categories)
    if sum(tree.sizes[-1:]) != len(categories.unique()):
        raise TableError(f"variable {name!r} lists a category twice.")
    return Variable(name=name, tree=tree), order


def check_variables(variables: Sequence[Variable]) -> None:
    """No two levels of a table have one name, and there is a variable at all."""
    names = [level for each in variables for level in each.levels]
    for name in names:
        if names.count(name) > 1:
            raise TableError(f"level {name!r} is named twice. To fix, give each level one name.")
