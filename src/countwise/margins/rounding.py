"""Whole cells near a real table, with every margin near its own sums."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.kernels.whole_descent import descend
from countwise.margins.incidence import stacked_nodes
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

MOST_SWEEPS = 40
FEW_MOVES = 1e-4  # of the cells: a sweep that makes no more is the last
LEAST_GAIN = 1e-3  # of the weight of one cell: moves that gain less are not worth their time
CERTAIN = 1e6  # times the largest weight: no move gives an exact count away


def rounded_along(values: FloatArray, offset: float) -> IntArray:
    """Whole numbers whose sums from the first on are within 1 of those of the values.

    Systematic rounding: as a prefix is within 1 so is any run, so any node of the first variables.
    """
    ends = np.floor(np.cumsum(values.reshape(-1)) + offset).astype(np.int64)
    return np.diff(ends, prepend=np.int64(np.floor(offset))).reshape(values.shape)


def rounded(
    workload: Workload,
    values: FloatArray,
    variances: Mapping[Margin, float],
    *,
    free: BoolArray | None = None,
    exact: Mapping[Margin, tuple[BoolArray, IntArray]] | None = None,
    rng: np.random.Generator,
    sweeps: int = MOST_SWEEPS,
) -> IntArray:
    """Whole non-negative cells near a non-negative table, all margins near its sums.

    A margin's squared deviations count relative to the variance it has anyway, and all margins
    alike. `exact` has nodes of margins, and their counts, that are to be met whatever that costs;
    only cells that are `free` are changed, the others are 0.
    """
    exact = {} if exact is None else exact
    margins = list(dict.fromkeys([*variances, *exact]))
    nodes = stacked_nodes(workload, margins)
    weights = [_weights(workload, each, variances.get(each)) for each in margins]
    top = max(float(each.max()) for each in weights)
    open_ = np.ones(workload.cells, np.bool_) if free is None else free.reshape(-1)
    flat = np.where(open_, values.reshape(-1), 0.0)
    cells = rounded_along(flat, float(rng.random()))
    targets = [workload.sums(flat.reshape(workload.shape), each).reshape(-1) for each in margins]
    for weight, target, margin in zip(weights, targets, margins, strict=True):
        if margin in exact:
            certain, counts = (each.reshape(-1) for each in exact[margin])
            weight[certain] = CERTAIN * top
            target[certain] = counts[certain]
    sums = [workload.sums(cells.reshape(workload.shape), each).reshape(-1) for each in margins]
    deviations = np.concatenate(sums) - np.concatenate(targets)
    least = LEAST_GAIN * min(float(each.min()) for each in weights)
    _descend(workload, cells, open_, nodes, deviations, np.concatenate(weights), least, sweeps, rng)
    return cells.reshape(workload.shape)


def _weights(workload: Workload, margin: Margin, variance: float | None) -> FloatArray:
    size = workload.size(margin)
    return np.full(size, 1e-12 if variance is None else 1.0 / (size * variance))


def _descend(
    workload: Workload,
    cells: IntArray,
    free: BoolArray,
    nodes: np.ndarray,
    deviations: FloatArray,
    weights: FloatArray,
    least: float,
    sweeps: int,
    rng: np.random.Generator,
) -> None:
    shape = workload.shape
    strides = np.array([prod(shape[axis + 1 :]) for axis in range(len(shape))], dtype=np.int64)
    sizes = np.array(shape, dtype=np.int64)
    places = [np.arange(workload.cells) // strides[a] % sizes[a] for a in range(len(shape))]
    for s in range(sweeps):
        order = rng.permutation(workload.cells)
        others = np.stack(
            [_near(each, places[a], rng) for a, each in enumerate(workload.variables)]
        )
        made = descend(
            cells, free, nodes, deviations, weights, order, others, strides, sizes, least
        )
        if made <= FEW_MOVES * workload.cells:
            break


def _near(variable: Variable, places: IntArray, rng: np.random.Generator) -> IntArray:
    """For each category a random one with the same parent, at times with a higher ancestor."""
    depth = len(variable.levels)
    level = depth - 1
    while level > 0 and rng.random() < 0.25:
        level -= 1
    starts = np.append(variable.starts(level), variable.leaves)
    above = variable.parents(depth, of=level)[places]
    first = starts[above]
    return first + (rng.random(places.size) * (starts[above + 1] - first)).astype(np.int64)
