"""The tables that a release publishes, and how counts of one are summed into another.

A cell is one category of every variable at its finest level. A margin is one level of each
variable, the root allowed: its counts are an array with one axis a variable, of length 1 where
people are counted together. A workload is the margins that are published together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from countwise.arrays import FloatArray, IntArray
from countwise.errors import TableError
from countwise.tables.hierarchy import ROOT, Hierarchy
from countwise.tables.variable import Variable, check_variables

Values = TypeVar("Values", IntArray, FloatArray)
MOST_CELLS = 10**8  # that memory holds, with their sums


@dataclass(frozen=True, order=True)
class Margin:
    """The level of each variable at which people are counted; 0 where all are counted together."""

    levels: tuple[int, ...]

    def covers(self, other: "Margin") -> bool:
        """Whether the counts of another margin are sums of counts of this one."""
        return all(a >= b for a, b in zip(self.levels, other.levels, strict=True))


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload:
    """Variables that cross each other, and the margins of their cells that are published."""

    variables: tuple[Variable, ...]
    margins: tuple[Margin, ...] = ()
    """None where the tables of these variables are not chosen yet."""

    def __post_init__(self) -> None:
        check_variables(self.variables)
        for i, margin in enumerate(self.margins):
            if margin in self.margins[:i]:
                raise TableError(f"table {self.name(margin)} is listed twice.")
        if self.cells > MOST_CELLS:
            raise TableError(_too_many_cells(self))
        if sum(map(self.size, self.margins)) > MOST_CELLS:
            raise TableError(_too_many_counts(self))

    @property
    def shape(self) -> tuple[int, ...]:
        """Leaves of every variable."""
        return tuple(each.leaves for each in self.variables)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return prod(self.shape)

    @property
    def finest(self) -> Margin:
        """The margin of the cells."""
        return Margin(tuple(len(each.levels) for each in self.variables))

    @cached_property
    def by(self) -> tuple[str, ...]:
        """All level columns, variable by variable."""
        return tuple(level for each in self.variables for level in each.levels)

    @property
    def level_labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels in use at each level column."""
        return tuple(labels for each in self.variables for labels in each.tree.labels)

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Levels of every variable by its name."""
        return {each.name: each.levels for each in self.variables}

    def describe(self) -> Iterator[tuple[str, int]]:
        """Every level, variable by variable, with its number of categories."""
        for each in self.variables:
            yield from zip(each.levels, each.sizes[1:], strict=True)

    def shape_of(self, margin: Margin) -> tuple[int, ...]:
        """Categories of each variable at the levels of a margin."""
        pairs = zip(self.variables, margin.levels, strict=True)
        return tuple(variable.sizes[level] for variable, level in pairs)

    def size(self, margin: Margin) -> int:
        """Number of counts of a margin."""
        return prod(self.shape_of(margin))

    def name(self, margin: Margin) -> str:
        """A margin as it is written: the levels it crosses, or the word for the grand total."""
        pairs = zip(self.variables, margin.levels, strict=True)
        names = [variable.levels[level - 1] for variable, level in pairs if level]
        return "*".join(names) or ROOT

    def find(self, name: str) -> Margin:
        """The margin of this name, among those published."""
        for margin in self.margins:
            if self.name(margin) == name:
                return margin
        raise TableError(
            f"there is no table {name!r}; there are {', '.join(map(self.name, self.margins))}."
        )

    def sums(self, values: Values, margin: Margin, *, of: Margin | None = None) -> Values:
        """The counts of a margin from those of a finer one, by default from the cells."""
        levels = (self.finest if of is None else of).levels
        for axis, (variable, fine, coarse) in enumerate(
            zip(self.variables, levels, margin.levels, strict=True)
        ):
            if coarse == 0 and fine > 0:
                values = values.sum(axis=axis, keepdims=True)
            elif coarse < fine:
                starts = variable.starts(coarse, within=fine)
                values = np.add.reduceat(values, starts, axis=axis)
        return values

    def spread(self, values: Values, margin: Margin, *, to: Margin | None = None) -> Values:
        """For every count of a finer margin, by default every cell, the value of its sum."""
        levels = (self.finest if to is None else to).levels
        for axis, (variable, fine, coarse) in enumerate(
            zip(self.variables, levels, margin.levels, strict=True)
        ):
            if coarse == fine:
                continue
            if variable.sizes[coarse] == 1:
                values = np.repeat(values, variable.sizes[fine], axis=axis)
            else:
                values = np.take(values, variable.parents(fine, of=coarse), axis=axis)
        return values

    def chain(self) -> tuple[Margin, ...] | None:
        """The margins from coarse to fine where each refines the one before, else None."""
        ordered = sorted(self.margins, key=lambda each: (sum(each.levels), each))
        refines = all(b.covers(a) for a, b in pairwise(ordered))
        return tuple(ordered) if refines else None

    def labels(self, margin: Margin) -> Iterator[tuple[str, pl.Series]]:
        """Every level column with its label at each count of a margin, null where summed over."""
        shape, size = self.shape_of(margin), self.size(margin)
        places = np.unravel_index(np.arange(size), shape)
        for variable, level, place in zip(self.variables, margin.levels, places, strict=True):
            tree: Hierarchy = variable.tree
            codes = tree.path_codes(level)
            for depth, name in enumerate(variable.levels):
                kind = pl.Enum(tree.labels[depth])
                if depth < level:
                    yield name, pl.Series(name, codes[depth][place]).cat.to(kind)
                else:
                    yield name, pl.Series(name, [None], dtype=kind).new_from_index(0, size)

    def frame(self, margin: Margin, **values: npt.NDArray[Any]) -> pl.DataFrame:
        """One row a count of a margin: level columns, the table's name as `level`, the values."""
        names = list(dict.fromkeys(self.name(each) for each in (*self.margins, margin)))
        kind = pl.Enum(names)
        level = pl.Series("level", [self.name(margin)], dtype=kind)
        return pl.DataFrame(
            [
                *(column for _, column in self.labels(margin)),
                level.new_from_index(0, self.size(margin)),
                *(pl.Series(name, each.reshape(-1)) for name, each in values.items()),
            ]
        )


def _too_many_cells(workload: Workload) -> str:
    """What is wrong, and which one level less would make it right."""
    fitting = []
    for variable in workload.variables:
        cells = workload.cells // variable.leaves * variable.sizes[-2]
        if cells <= MOST_CELLS:
            fitting.append(f"without {variable.levels[-1]} there are {cells:,}")
    ways = ", ".join(fitting) or "more than one level has to go"
    return (
        f"the variables cross to {workload.cells:,} cells, and the most is {MOST_CELLS:,}. To fix, "
        f"leave out a variable or its finest level: {ways}."
    )


def _too_many_counts(workload: Workload) -> str:
    """What is wrong, and which tables fit without the largest."""
    tables = sorted(workload.margins, key=workload.size)
    counts, dropped = sum(map(workload.size, tables)), []
    whole = counts
    while counts > MOST_CELLS:
        dropped.append(tables.pop())
        counts -= workload.size(dropped[-1])
    names = ", ".join(map(workload.name, dropped))
    return (
        f"the tables have {whole:,} counts together, and the most is {MOST_CELLS:,}. To fix, leave "
        f"out {names}: the others have {counts:,}."
    )


def stacked_margins(workload: Workload, **values: Sequence[npt.NDArray[Any]]) -> pl.DataFrame:
    """The counts of all margins of a workload, one after another, a column for each name."""
    return pl.concat(
        workload.frame(margin, **{name: each[i] for name, each in values.items()})
        for i, margin in enumerate(workload.margins)
    )
