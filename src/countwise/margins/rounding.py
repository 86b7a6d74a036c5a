"""Whole cells near a real table, with every margin near its own sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from countwise.arrays import BoolArray, FloatArray, Int32Array, IntArray
from countwise.kernels.whole_descent import descend
from countwise.margins.certainties import Certainties
from countwise.margins.incidence import stacked_nodes
from countwise.margins.matching import matched
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

MOST_SWEEPS = 60  # small tables settle before; see MOST_VISITS for others
MOST_PLACES = 500_000_000  # nodes of cells that are held, two gigabytes
MOST_VISITS = 6_000_000  # of cells, all sweeps together; at least two sweeps
FEW_MOVES = 1e-4  # of the cells: a sweep that makes no more is the last
LEAST_GAIN = 1e-3  # of the smallest weight: moves that gain less are not worth their time
CERTAIN = 1e6  # times the largest weight: no move gives an exact count away
WIDER = 0.25  # of the sweeps look for partners one level further up


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Nodes of all margins in turn, how far they are from their targets, and what that weighs."""

    margins: Sequence[Margin]
    nodes: Int32Array
    targets: FloatArray
    weights: FloatArray

    def deviations(self, workload: Workload, cells: IntArray) -> FloatArray:
        """Sums of the cells less the targets."""
        table = cells.reshape(workload.shape)
        sums = [workload.sums(table, each).reshape(-1) for each in self.margins]
        return np.concatenate(sums) - self.targets


def rounded(
    workload: Workload,
    values: FloatArray,
    variances: Mapping[Margin, float],
    known: Certainties,
    rng: np.random.Generator,
) -> IntArray:
    """Whole non-negative cells near a non-negative table, all margins near its sums.

    A margin's squared deviations count relative to the variance that it has anyway, and all margins
    alike. Exact counts are met whatever that costs, and cells that are not free are 0.
    """
    free = known.free.reshape(-1)
    values = np.where(known.free, values, 0.0)
    sums = _sums(workload, values, variances, known)
    cells = rounded_along(values.reshape(-1), float(rng.random()))
    _descend(workload, cells, free, sums, rng)
    if not _meets(workload, cells, known):
        cells = matched(workload, values, known.free, known.sums)
        _descend(workload, cells, free, sums, rng)
    return cells.reshape(workload.shape)


def rounded_along(values: FloatArray, offset: float) -> IntArray:
    """Whole numbers whose sums over any run of them are within 1 of those of the values.

    Systematic rounding: a node of the first variables is a run, so all their sums start out well.
    """
    ends = np.floor(np.cumsum(values) + offset).astype(np.int64)
    return np.diff(ends, prepend=np.int64(np.floor(offset)))


def _sums(
    workload: Workload, values: FloatArray, variances: Mapping[Margin, float], known: Certainties
) -> _Sums:
    margins = _minded(workload, variances, known)
    targets = [workload.sums(values, each).reshape(-1) for each in margins]
    sizes = np.array([workload.size(each) for each in margins])
    inverse = sizes * np.array([variances.get(each, np.inf) for each in margins])
    weights = [np.full(size, 1.0 / each) for size, each in zip(sizes, inverse, strict=True)]
    for margin, target, weight in zip(margins, targets, weights, strict=True):
        if margin in known.sums:
            certain, counts = (each.reshape(-1) for each in known.sums[margin])
            target[certain] = counts[certain]
            weight[certain] = CERTAIN / inverse.min()
    return _Sums(
        margins=margins,
        nodes=stacked_nodes(workload, margins),
        targets=np.concatenate(targets),
        weights=np.concatenate(weights),
    )


def _minded(
    workload: Workload, variances: Mapping[Margin, float], known: Certainties
) -> list[Margin]:
    """The margins that rounding minds: all, or, where memory ends, those of fewest counts.

    The cells and the margins with exact counts are always among them.
    """
    needed = [workload.finest, *(each for each in known.sums if each != workload.finest)]
    others = sorted(set(variances) - set(needed), key=lambda each: (workload.size(each), each))
    return [*needed, *others[: max(MOST_PLACES // workload.cells - len(needed), 0)]]


def _meets(workload: Workload, cells: IntArray, known: Certainties) -> bool:
    table = cells.reshape(workload.shape)
    return all(
        np.array_equal(workload.sums(table, margin)[certain], counts[certain])
        for margin, (certain, counts) in known.sums.items()
    )


def _descend(
    workload: Workload, cells: IntArray, free: BoolArray, sums: _Sums, rng: np.random.Generator
) -> None:
    """Sweep until next to nothing moves, in random order, with random partners."""
    shape = workload.shape
    strides = np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))], dtype=np.int64)
    sizes = np.array(shape, dtype=np.int64)
    places = np.unravel_index(np.arange(workload.cells), shape)
    deviations = sums.deviations(workload, cells)
    least = LEAST_GAIN * float(sums.weights[sums.weights > 0.0].min(initial=np.inf))
    for _ in range(min(max(MOST_VISITS // workload.cells, 2), MOST_SWEEPS)):
        order = rng.permutation(workload.cells)
        pairs = zip(workload.variables, places, strict=True)
        others = np.stack([_near(variable, place, rng) for variable, place in pairs])
        made = descend(
            cells,
            free,
            sums.nodes,
            deviations,
            sums.weights,
            order,
            others,
            strides,
            sizes,
            least,
        )
        if made <= FEW_MOVES * workload.cells:
            break


def _near(variable: Variable, places: IntArray, rng: np.random.Generator) -> IntArray:
    """For each category a random one with the same parent, at times with a higher ancestor."""
    depth = len(variable.levels)
    level = depth - 1
    while level > 0 and rng.random() < WIDER:
        level -= 1
    starts = np.append(variable.starts(level), variable.leaves)
    above = variable.parents(depth, of=level)[places]
    first, last = starts[above], starts[above + 1]
    return np.asarray(first + (rng.random(places.size) * (last - first)).astype(np.int64))
