"""The variables of a workload as least squares sees them: one spine, and axes that cross it.

Along an axis a table is split into what its levels add: the mean of all, what the means of the
first level differ from it, and so on to the cells. Noise of a margin stays white in each part, and
where every category of a level has equally many leaves a sum over leaves only scales it. A flat
variable and a balanced tree are such axes; the spine may be any tree.
docs/explain/crossed-least-squares.md, section 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.condensed import Condensed, condense
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedAxis:
    """A variable split into the parts that its levels add."""

    variable: Variable

    @cached_property
    def balanced(self) -> bool:
        """Whether all categories of a level have equally many children, at every level."""
        fan_outs = (np.diff(offsets) for offsets in self.variable.tree.offsets)
        return all(bool((each == each[0]).all()) for each in fan_outs)

    @cached_property
    def dimensions(self) -> tuple[int, ...]:
        """Free numbers in the part that each level adds."""
        sizes = self.variable.sizes
        return tuple(int(each) for each in np.diff(sizes, prepend=0))

    @cached_property
    def gains(self) -> FloatArray:
        """What the sums of a level (columns) multiply a part (rows) by; 0 where it sums it away.

        In a tree that is not balanced, the mean over the part: tr(P·A'A) / dim P.
        """
        count = len(self.variable.sizes)
        traces = np.zeros((count + 1, count))
        for part in range(count):
            for level in range(part, count):
                within = self.leaves(level) ** 2
                traces[part + 1, level] = (within / self._leaves_above(level, part)).sum()
        differences = np.triu(np.diff(traces, axis=0))
        dimensions = np.array(self.dimensions, dtype=np.float64)[:, None]
        return np.divide(
            differences, dimensions, out=np.zeros_like(differences), where=dimensions > 0
        )

    def diagonal(self, level: int) -> FloatArray:
        """Variance that each part up to a level (rows) has at its categories, at unit variance."""
        leaves = self.leaves(level)
        shares = [leaves**2 / self._leaves_above(level, part) for part in range(level + 1)]
        rows = np.diff(np.array(shares), axis=0, prepend=0.0)
        return rows[:, :1] if self.balanced else rows

    def mean_diagonal(self, level: int) -> FloatArray:
        """The mean of the diagonal over the categories of a level."""
        size = self.variable.sizes[level]
        means = self.gains[: level + 1, level] * np.array(self.dimensions[: level + 1]) / size
        return np.asarray(means)

    def means(self, values: FloatArray, place: int) -> list[FloatArray]:
        """Means over the leaves of every category, level by level, along the axis at a place."""
        found, sums = [values], values
        for level in range(len(self.variable.levels) - 1, -1, -1):
            sums = np.add.reduceat(sums, self.variable.tree.offsets[level][:-1], axis=place)
            leaves = self.leaves(level).reshape(-1, *(1 for _ in values.shape[place + 1 :]))
            found.append(sums / leaves)
        return found[::-1]

    def part(self, means: Sequence[FloatArray], part: int, place: int) -> FloatArray:
        """What a level adds: its means less those of the level above."""
        if part == 0:
            return means[0]
        return means[part] - self.down(means[part - 1], part, place)

    def down(self, values: FloatArray, level: int, place: int) -> FloatArray:
        """For every category of a level, the value of the one above it."""
        if values.shape[place] == 1:
            return values
        return np.take(values, self.variable.parents(level, of=level - 1), axis=place)

    def leaves(self, level: int) -> FloatArray:
        """How many leaves are below each category of a level."""
        starts = self.variable.starts(level)
        return np.diff(starts, append=self.variable.leaves).astype(np.float64)

    def _leaves_above(self, level: int, above: int) -> FloatArray:
        return self.leaves(above)[self.variable.parents(level, of=above)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Crossing:
    """A spine, by its place among the variables, and the axes of the other variables."""

    workload: Workload
    spine: int
    axes: tuple[CrossedAxis, ...]
    tree: Condensed

    @property
    def variable(self) -> Variable:
        """The variable along the spine."""
        return self.workload.variables[self.spine]

    @property
    def exact(self) -> bool:
        """Whether the parts do not mix, so that least squares takes one pass."""
        return all(axis.balanced for axis in self.axes)

    def split(self, margin: Margin) -> tuple[int, tuple[int, ...]]:
        """The level of the spine, and those of the axes."""
        levels = margin.levels
        return levels[self.spine], (*levels[: self.spine], *levels[self.spine + 1 :])

    def finest_at(self, level: int) -> Margin:
        """The margin of this level of the spine and all leaves of the axes."""
        levels = list(self.workload.finest.levels)
        levels[self.spine] = level
        return Margin(tuple(levels))

    def leaves(self, margin: Margin) -> FloatArray:
        """For each count of a margin, how many leaves of the axes it is summed over."""
        _, levels = self.split(margin)
        columns = [axis.leaves(level) for axis, level in zip(self.axes, levels, strict=True)]
        product: FloatArray = np.asarray(reduce(np.multiply.outer, columns, np.ones(1)))
        return np.moveaxis(product, 0, self.spine)

    def gains(self, levels: Sequence[int]) -> FloatArray:
        """What summing to these levels of the axes multiplies each combination of parts by."""
        columns = [axis.gains[:, level] for axis, level in zip(self.axes, levels, strict=True)]
        return np.asarray(reduce(np.multiply.outer, columns, np.array(1.0)))


@lru_cache(maxsize=2)
def crossing(workload: Workload) -> Crossing:
    """The variables of a workload, along the tree that most needs to be the spine.

    That is one that is not balanced, the one with most classes of leaves if there are several;
    else the one with most levels.
    """
    axes = [CrossedAxis(variable=each) for each in workload.variables]
    trees = {i: condense(axis.variable) for i, axis in enumerate(axes) if not axis.balanced}

    def need(i: int) -> tuple[int, int, int]:
        sizes = axes[i].variable.sizes
        return len(trees[i].nodes[-1]) if i in trees else 0, len(sizes), sizes[-1]

    spine = max(range(len(axes)), key=need)
    tree = trees.get(spine) or condense(workload.variables[spine])
    others = (*axes[:spine], *axes[spine + 1 :])
    return Crossing(workload=workload, spine=spine, axes=others, tree=tree)
