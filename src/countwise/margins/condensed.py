"""A tree with its equal branches drawn once, and weighted least squares along it.

Two nodes of a level are of one class where everything below them, and everything on the way up
from them, has the same shape. With noise of one variance a level their estimates have the same
variance, so the variances of a tree of a million nodes take some hundred numbers.
docs/explain/crossed-least-squares.md, section 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.tables.variable import Variable


@dataclass(frozen=True, kw_only=True, eq=False)
class Condensed:
    """The classes of the nodes of a tree, level by level from the root.

    `classes[l]` is the class of every node of a level, `nodes[l]` how many nodes a class has and
    `leaves[l]` how many leaves are below one of them; a class of level l ≥ 1 hangs below the class
    `parents[l - 1]` of the level above, `times[l - 1]` of its nodes below each.
    """

    classes: tuple[IntArray, ...]
    nodes: tuple[FloatArray, ...]
    leaves: tuple[FloatArray, ...]
    parents: tuple[IntArray, ...]
    times: tuple[FloatArray, ...]

    def below(self, level: int, values: FloatArray) -> FloatArray:
        """For each class of a level, the sum of a value over the children of one of its nodes."""
        weighted = self.times[level][:, None] * values
        starts = np.searchsorted(self.parents[level], np.arange(len(self.nodes[level])))
        return np.asarray(np.add.reduceat(weighted, starts, axis=0))


def condense(variable: Variable) -> Condensed:
    """The classes of the nodes of a variable."""
    shapes = _shapes(variable)
    classes, parents, times = [np.zeros(1, dtype=np.int64)], [], []
    for level in range(len(variable.levels)):
        above = variable.parents(level + 1, of=level)
        kinds = int(shapes[level + 1].max()) + 1
        pairs = classes[-1][above] * kinds + shapes[level + 1]
        found, inverse = np.unique(pairs, return_inverse=True)
        parents.append(found // kinds)
        size = np.bincount(classes[-1])
        classes.append(inverse.reshape(-1))
        times.append(np.bincount(classes[-1]) / size[parents[-1]])
    leaves = [
        _first(each, np.diff(variable.starts(level), append=variable.leaves))
        for level, each in enumerate(classes)
    ]
    return Condensed(
        classes=tuple(classes),
        nodes=tuple(np.bincount(each).astype(np.float64) for each in classes),
        leaves=tuple(leaves),
        parents=tuple(parents),
        times=tuple(times),
    )


def _first(classes: IntArray, values: IntArray) -> FloatArray:
    """The value of each class, which is the same at all its nodes."""
    return values[np.unique(classes, return_index=True)[1]].astype(np.float64)


def _shapes(variable: Variable) -> list[IntArray]:
    """For each level a number for every node, the same where what is below has one shape."""
    shapes = [np.zeros(variable.leaves, dtype=np.int64)]
    for offsets in reversed(variable.tree.offsets):
        children = shapes[-1]
        if children.max() == 0:
            keys = np.diff(offsets)
        else:
            nodes = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
            ordered = children[np.lexsort((children, nodes))]
            numbers: dict[bytes, int] = {}
            ends = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
            words = (ordered[a:b].tobytes() for a, b in ends)
            keys = np.array([numbers.setdefault(word, len(numbers)) for word in words])
        shapes.append(np.unique(keys, return_inverse=True)[1].reshape(-1))
    return shapes[::-1]


def coarsened(tree: Condensed, groups: int) -> Condensed:
    """A tree of fewer classes that is like it: those of similar size below one class become one.

    At most so many below each, equal in nodes; a class then has the mean number of children of each
    kind. For means over many nodes, which it changes by little.
    """
    merged = [np.zeros(1, dtype=np.int64)]
    nodes, leaves = [tree.nodes[0]], [tree.leaves[0]]
    parents, times = list[IntArray](), list[FloatArray]()
    for level in range(1, len(tree.nodes)):
        above = merged[-1][tree.parents[level - 1]]
        kinds = _quantiles(above, tree.leaves[level], tree.nodes[level], groups)
        _, first, inverse = np.unique(
            above * groups + kinds, return_index=True, return_inverse=True
        )
        merged.append(inverse.reshape(-1))
        parents.append(above[first])
        sizes = np.bincount(merged[-1], tree.nodes[level]).astype(np.float64)
        below = np.bincount(merged[-1], tree.nodes[level] * tree.leaves[level])
        times.append(sizes / nodes[-1][parents[-1]])
        nodes.append(sizes)
        leaves.append(below / sizes)
    return Condensed(
        classes=tuple(to[each] for to, each in zip(merged, tree.classes, strict=True)),
        nodes=tuple(nodes),
        leaves=tuple(leaves),
        parents=tuple(parents),
        times=tuple(times),
    )


def _quantiles(above: IntArray, leaves: FloatArray, nodes: FloatArray, groups: int) -> IntArray:
    """Below each class a number from 0 to groups - 1 by size, with about equally many nodes."""
    order = np.lexsort((leaves, above))
    running = np.cumsum(nodes[order]) - nodes[order] / 2
    totals = np.bincount(above, nodes)
    before = np.cumsum(totals) - totals
    part = (running - before[above[order]]) / totals[above[order]]
    found = np.empty(len(above), dtype=np.int64)
    found[order] = np.minimum((part * groups).astype(np.int64), groups - 1)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """How least squares along a tree averages, level by level: a row a class, a column a problem.

    Upwards a node's own observation counts with weight `own`, the sum of its children with the
    rest. Downwards a child takes the share `down` of what its parent's estimate has more than the
    sum of the children's. `variances` are those of the estimates in the end, infinite where
    nothing measured determines them.
    """

    own: tuple[FloatArray, ...]
    down: tuple[FloatArray, ...]
    variances: tuple[FloatArray, ...]


def weigh(tree: Condensed, precisions: FloatArray) -> Weights:
    """Weights and variances from the precision of the observations of each level (rows).

    A precision of 0 is a level without observations, an infinite one a level known exactly. What
    is not determined is shared by leaves: the solution of least norm in the cells.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        upwards, sums, own = _upwards(tree, precisions)
        down, variances = [np.ones_like(upwards[0])], [upwards[0]]
        for level in range(1, len(upwards)):
            above = tree.parents[level - 1]
            mine, together = upwards[level], sums[level - 1][above]
            by_leaves = (tree.leaves[level] / tree.leaves[level - 1][above])[:, None]
            share = np.where(together > 0, mine / together, 0.0)
            share = np.where(np.isinf(together), by_leaves, share)
            left = np.where(share < 1, mine * (1 - share), 0.0)
            down.append(share)
            variances.append(left + share**2 * variances[-1][above])
    return Weights(own=tuple(own), down=tuple(down), variances=tuple(variances))


def _upwards(
    tree: Condensed, precisions: FloatArray
) -> tuple[list[FloatArray], list[FloatArray], list[FloatArray]]:
    """From the leaves up: variances of the estimates, of the sums of children, and own weights."""
    last = len(precisions) - 1
    below: FloatArray = np.full((len(tree.nodes[last]), precisions.shape[1]), np.inf)
    upwards, sums, own = list[FloatArray](), list[FloatArray](), list[FloatArray]()
    for level in range(last, -1, -1):
        if level < last:
            below = tree.below(level, upwards[-1])
        precision = np.broadcast_to(precisions[level], below.shape)
        variance = 1 / (precision + 1 / below)
        weight = np.where(np.isinf(precision), 1.0, precision * variance)
        own.append(np.where(precision > 0, weight, 0.0))
        upwards.append(variance)
        sums.append(below)
    return upwards[::-1], sums[::-1], own[::-1]


def fit_tree(
    variable: Variable,
    tree: Condensed,
    weights: Weights,
    problem: int,
    observed: Sequence[FloatArray | None],
) -> FloatArray:
    """Estimates of the leaves from what was observed at each level, along the first axis.

    Level by level up, then down; the other axes are as many trees, all with these weights. None
    stands for zeros.
    """
    trailing = next(each.shape[1:] for each in observed if each is not None)

    def at_nodes(values: Sequence[FloatArray], level: int) -> FloatArray:
        column = values[level][:, problem]
        column = column if len(column) == 1 else column[tree.classes[level]]
        return column.reshape(-1, *(1 for _ in trailing))

    finest = observed[-1]
    estimate = np.zeros((variable.leaves, *trailing)) if finest is None else finest
    estimates, sums = [estimate], list[FloatArray]()
    for level in range(len(observed) - 2, -1, -1):
        below = np.add.reduceat(estimates[-1], variable.tree.offsets[level][:-1], axis=0)
        own, value = at_nodes(weights.own, level), observed[level]
        estimate = below * (1 - own) if value is None else below + own * (value - below)
        estimates.append(estimate)
        sums.append(below)
    estimates.reverse()
    sums.reverse()
    for level, below in enumerate(sums):
        missing = (estimates[level] - below)[variable.parents(level + 1, of=level)]
        missing *= at_nodes(weights.down, level + 1)
        estimates[level + 1] = estimates[level + 1] + missing
    return estimates[-1]
