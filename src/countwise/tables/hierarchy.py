"""A tree of cells in flat arrays.

Level 0 is the root, named `total`; level d holds the nodes given by the first d level columns.
Nodes of a level are sorted by their path, by the order of the labels of each level, so the
children of a node are neighbours: those of node i of level d are
`offsets[d][i] : offsets[d][i+1]` of level d+1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from countwise.arrays import BoolArray, CodeArray, FloatArray, IntArray, frozen
from countwise.errors import TableError
from countwise.tables.order import natural

Numbers = TypeVar("Numbers", IntArray, FloatArray)

ROOT = "total"
RESERVED = (ROOT, "level", "count", "low", "high", "noisy")


class Shaped(Protocol):
    """Level columns, and how many nodes each level has: all that a budget depends on."""

    @property
    def by(self) -> tuple[str, ...]:
        """Level columns from outer to inner."""
        ...

    def describe(self) -> Iterator[tuple[str, int]]:
        """Level names with their number of nodes."""
        ...


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a tree that is nowhere whole."""

    by: tuple[str, ...]
    sizes: tuple[int, ...]

    def describe(self) -> Iterator[tuple[str, int]]:
        """Level names with their number of nodes."""
        return iter(zip((ROOT, *self.by), self.sizes, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Hierarchy:
    """Level names, the labels in use at each, and the shape of the tree.

    >>> rows = {"region": ["N", "N", "S"], "age": ["old", "young", "old"]}
    >>> tree, _ = build(pl.DataFrame(rows))
    >>> tree.levels, tree.sizes
    (('total', 'region', 'age'), (1, 2, 3))
    >>> [values.tolist() for values in tree.sums(np.array([3, 0, 5]))]
    [[8], [3, 5], [3, 0, 5]]
    >>> tree.path(2, 1), tree.parent(2, 1), tree.children(1, 0)
    (('N', 'young'), 0, slice(0, 2, None))
    """

    by: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    codes: tuple[CodeArray, ...]
    offsets: tuple[IntArray, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of the levels from the root to the cells."""
        return (ROOT, *self.by)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of nodes at each level."""
        return (1, *(len(codes) for codes in self.codes))

    @property
    def cells(self) -> int:
        """Number of cells, the nodes of the last level."""
        return self.sizes[-1]

    @property
    def nodes(self) -> int:
        """Number of nodes of all levels."""
        return sum(self.sizes)

    def sums(self, cells: Numbers) -> tuple[Numbers, ...]:
        """The value of every node, level by level, from the values of the cells."""
        values = [cells]
        for offsets in reversed(self.offsets):
            values.append(np.add.reduceat(values[-1], offsets[:-1]))
        return tuple(reversed(values))

    def above(self, level: int) -> "Hierarchy":
        """The tree down to a level, whose nodes are its cells."""
        return Hierarchy(
            by=self.by[:level],
            labels=self.labels[:level],
            codes=self.codes[:level],
            offsets=self.offsets[:level],
        )

    def parents(self, level: int) -> IntArray:
        """For each node of a level below the root, its parent's position one level up."""
        fan_out = np.diff(self.offsets[level - 1])
        return np.repeat(np.arange(len(fan_out)), fan_out)

    def parent(self, level: int, node: int) -> int:
        """The position of a node's parent one level up: that of one entry of `parents`."""
        return int(np.searchsorted(self.offsets[level - 1], node, side="right")) - 1

    def children(self, level: int, parent: int) -> slice:
        """Where the children of a parent at a level stand one level down."""
        start, stop = self.offsets[level][parent : parent + 2].tolist()
        return slice(start, stop)

    def path_codes(self, level: int) -> tuple[CodeArray, ...]:
        """For each node of a level, the codes of its labels from outer to inner."""
        columns: list[CodeArray] = []
        for depth in range(1, level + 1):
            parents = self.parents(depth)
            columns = [column[parents] for column in columns]
            columns.append(self.codes[depth - 1])
        return tuple(columns)

    def frame(self, level: int, **values: npt.NDArray[Any]) -> pl.DataFrame:
        """One row a node: level columns (empty below the node's level), `level`, then values."""
        size = self.sizes[level]
        columns = []
        path = self.path_codes(level)
        for depth, name in enumerate(self.by):
            kind = pl.Enum(self.labels[depth])
            if depth < level:
                columns.append(pl.Series(name, path[depth]).cat.to(kind))
            else:
                columns.append(pl.Series(name, [None], dtype=kind).new_from_index(0, size))
        columns.append(
            pl.Series("level", [self.levels[level]], dtype=pl.Enum(self.levels)).new_from_index(
                0, size
            )
        )
        return pl.DataFrame([*columns, *(pl.Series(name, v) for name, v in values.items())])

    def path(self, level: int, node: int) -> tuple[str, ...]:
        """The labels of one node, from outer to inner; the root's path is empty."""
        labels: list[str] = []
        for depth in range(level, 0, -1):
            labels.append(self.labels[depth - 1][int(self.codes[depth - 1][node])])
            node = self.parent(depth, node)
        return tuple(reversed(labels))

    @cached_property
    def _positions(self) -> tuple[dict[str, int], ...]:
        return tuple({label: i for i, label in enumerate(labels)} for labels in self.labels)

    def find(self, path: Sequence[str]) -> tuple[int, int]:
        """Level and position of the node with this path."""
        node = 0
        for depth, label in enumerate(path):
            here = self.children(depth, node)
            code = self._positions[depth].get(label, -1)
            children = self.codes[depth][here]
            place = int(np.searchsorted(children, code)) if code >= 0 else len(children)
            if place == len(children) or children[place] != code:
                raise TableError(
                    f"no node {'/'.join(path)!r}: level {self.by[depth]!r} has no {label!r} there."
                )
            node = here.start + place
        return len(path), node

    def describe(self) -> Iterator[tuple[str, int]]:
        """Level names with their number of nodes."""
        return iter(zip(self.levels, self.sizes, strict=True))


def listed(by: Sequence[str]) -> tuple[str, ...]:
    """Level columns from a list, or from one text with commas between them."""
    return tuple(name.strip() for name in by.split(",")) if isinstance(by, str) else tuple(by)


def check_level_names(by: Sequence[str]) -> None:
    """Level columns must exist, differ, and leave the names of the output columns free."""
    if not by or by == ("",):
        raise TableError("no level columns given. To fix, name them outer to inner: --by a,b,c")
    for name in by:
        if by.count(name) > 1:
            raise TableError(f"level column {name!r} is named twice in --by.")
        if name in RESERVED:
            raise TableError(
                f"a level column can not be called {name!r}, a name the release uses itself. "
                "To fix, rename the column."
            )


def build(cells: pl.DataFrame) -> tuple[Hierarchy, IntArray]:
    """The hierarchy over the rows of a frame of level columns (strings, none empty).

    Returns it with the row that each cell came from. Rows are sorted by their labels, so their
    order in a file, which may depend on counts, leaves no trace: labels are in the order of the
    categories where a column is an `Enum`, as of a public domain, else in natural order. Two rows
    of one cell are left side by side for the caller to find: the hierarchy then has both.
    """
    by = tuple(cells.columns)
    coded = [_coded(cells[name]) for name in by]
    labels, columns = tuple(each[0] for each in coded), [each[1] for each in coded]
    order = np.arange(len(cells))
    if not _sorted(columns):
        coded_rows = pl.DataFrame({name: codes for name, (_, codes) in zip(by, coded, strict=True)})
        order = coded_rows.select(pl.arg_sort_by(by)).to_series().to_numpy().astype(np.int64)
        columns = [column[order] for column in columns]
    starts = _starts(columns)
    offsets = [np.array([0, len(starts[0])])]
    for outer, inner in pairwise(starts):
        offsets.append(np.append(np.searchsorted(inner, outer), len(inner)))
    return Hierarchy(
        by=by,
        labels=labels,
        codes=tuple(
            frozen(np.ascontiguousarray(column[start], dtype=np.uint32))
            for column, start in zip(columns, starts, strict=True)
        ),
        offsets=tuple(frozen(each.astype(np.int64)) for each in offsets),
    ), order


def _coded(column: pl.Series) -> tuple[tuple[str, ...], CodeArray]:
    """The labels of a column in their order, and for each row the number of its label."""
    kind = column.dtype
    if isinstance(kind, pl.Enum):
        physical = column.to_physical().to_numpy()
        used = np.unique(physical)
        return tuple(kind.categories[used].to_list()), _renumbered(physical, used)
    interned = column.cast(pl.Categorical)
    distinct = interned.unique()
    texts = distinct.cast(pl.String)
    order = natural(texts)
    used = distinct.to_physical().to_numpy()[order]
    return tuple(texts[order].to_list()), _renumbered(interned.to_physical().to_numpy(), used)


def _renumbered(codes: npt.NDArray[Any], used: npt.NDArray[Any]) -> CodeArray:
    """Codes by their places in the list of those that are used."""
    numbers = np.zeros(int(used.max(initial=0)) + 1, dtype=np.uint32)
    numbers[used] = np.arange(len(used))
    return np.asarray(numbers[codes], dtype=np.uint32)


def _sorted(columns: list[CodeArray]) -> bool:
    equal = np.ones(max(len(columns[0]) - 1, 0), dtype=np.bool_)
    for column in columns:
        if bool(np.any(equal & (column[1:] < column[:-1]))):
            return False
        equal &= column[1:] == column[:-1]
    return True


def _starts(columns: list[CodeArray]) -> list[IntArray]:
    """For each level, the first row of every node; each row is a node of the last level."""
    new: BoolArray = np.zeros(len(columns[0]), dtype=np.bool_)
    new[0] = True
    starts = []
    for column in columns[:-1]:
        new[1:] |= column[1:] != column[:-1]
        starts.append(np.flatnonzero(new))
    return [*starts, np.arange(len(columns[0]))]
