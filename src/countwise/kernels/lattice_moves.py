"""Whole cells drawn from their law given noisy sums, by moves on the lattice of cells.

A move adds d to some cells and takes d from others: one cell; two cells of a line, which keeps
every sum along that line; the corners of a rectangle or a box, which keep all sums that run along
one of its sides. Here d is drawn from its law given all else, cut to a window. The window's length
does not depend on the cells, and where the present cells are in it is drawn evenly, so any two
tables of one window meet in it as often from either: the law of all cells is kept exactly.
"""

from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np

from countwise.arrays import BoolArray, FloatArray, Int32Array, IntArray
from countwise.kernels.compilation import compiled, inner

POISSON = 1e8  # gamma shapes from here on scatter less than can be told
SIDES = 3  # of a box at most: eight corners
LONGEST = 40  # values of a window
REACH = 5.0  # standard deviations of a move that a window spans
FARTHEST = 1_000  # step between the values of a window, where noise is wide
WIDER = 0.25  # of the moves look for partners one level further up


class LatticeNoise(NamedTuple):
    """What noisy counts say: ``nodes[j, c]`` is the place of cell c's node of measurement j.

    log P(deviation) = -squares·deviation² - slopes·|deviation| + peaks·[deviation = 0], up to a
    constant, for each measurement; every law of noise has this form. `exact` counts must stay.
    """

    nodes: Int32Array
    exact: BoolArray
    squares: FloatArray
    slopes: FloatArray
    peaks: FloatArray
    precisions: FloatArray


class CellGrid(NamedTuple):
    """Cells as an array of several axes, and for every category the range it has partners in.

    At level l above the leaves of axis a category i has the leaves ``firsts[k]`` to ``lasts[k]``
    as partners, k = ``places[a]`` + l·size + i.
    """

    free: BoolArray
    strides: IntArray
    sizes: IntArray
    depths: IntArray
    places: IntArray
    firsts: IntArray
    lasts: IntArray


class CellScatter(NamedTuple):
    """The prior of a cell: a gamma-Poisson law about its mean, and a diffuse part of this weight.

    π(x) = (1 - diffuse)·NB(x; mean, shape) + diffuse/((x+1)(x+2)).
    """

    shapes: FloatArray
    diffuse: float


@inner
def log_scattered(x: int, mean: float, shape: float) -> float:
    """log of the gamma-Poisson probability of a count."""
    if shape >= POISSON:
        return x * log(mean) - mean - lgamma(x + 1.0)
    rise = lgamma(x + shape) - lgamma(shape) - lgamma(x + 1.0)
    return rise + shape * log(shape / (shape + mean)) + x * log(mean / (shape + mean))


@inner
def _risen(x: int, by: int, mean: float, shape: float) -> float:
    """NB(x + by)/NB(x), by either sign."""
    ratio = 1.0
    if shape >= POISSON:
        for y in range(x, x + by):
            ratio *= mean / (y + 1.0)
        for y in range(x + by, x):
            ratio *= (y + 1.0) / mean
        return ratio
    odds = mean / (shape + mean)
    for y in range(x, x + by):
        ratio *= (y + shape) / (y + 1.0) * odds
    for y in range(x + by, x):
        ratio *= (y + 1.0) / ((y + shape) * odds)
    return ratio


@inner
def _times_prior(
    weights: FloatArray,
    first: int,
    last: int,
    x: int,
    step: int,
    mean: float,
    shape: float,
    diffuse: float,
) -> None:
    """Weights first..last times the prior of x + step·i, from its most probable one outwards."""
    mode = mean if shape >= POISSON else mean * max(1.0 - 1.0 / shape, 0.0)
    at = (mode - x) / step
    anchor = int(min(max(at, first), last))
    top = x + step * anchor
    here = log_scattered(top, mean, shape)
    scale = here
    spread = 0.0
    if diffuse > 0.0:
        scale = max(here, log(diffuse) - log((top + 1.0) * (top + 2.0)))
        spread = diffuse * exp(-scale)
    fitted = (1.0 - diffuse) * exp(here - scale)
    value, relative = top, 1.0
    for i in range(anchor, last + 1):
        if i > anchor:
            relative *= _risen(value, step, mean, shape)
            value += step
        weights[i] *= fitted * relative + spread / ((value + 1.0) * (value + 2.0))
    value, relative = top, 1.0
    for i in range(anchor - 1, first - 1, -1):
        relative *= _risen(value, -step, mean, shape)
        value -= step
        weights[i] *= fitted * relative + spread / ((value + 1.0) * (value + 2.0))


@inner
def _partner(grid: CellGrid, axis: int, category: int, rng: np.random.Generator) -> int:
    """Another category of an axis, most often of the same parent; perhaps the same one."""
    above = 0
    while above + 1 < grid.depths[axis] and rng.random() < WIDER:
        above += 1
    k = grid.places[axis] + above * grid.sizes[axis] + category
    return int(grid.firsts[k] + int(rng.random() * (grid.lasts[k] - grid.firsts[k])))


@inner
def _touched(nodes: Int32Array, j: int, corners: IntArray, sides: int) -> bool:
    """Whether a move changes sums of a measurement: it tells the corners of every side apart."""
    for side in range(sides):  # noqa: SIM110
        if nodes[j, corners[1 << side]] == nodes[j, corners[0]]:
            return False
    return True


@inner
def _drawn(weights: FloatArray, first: int, last: int, uniform: float) -> int:
    """An index with a probability in proportion to its weight; -1 where all are 0."""
    total = 0.0
    for i in range(first, last + 1):
        total += weights[i]
    if not 0.0 < total < np.inf:
        return -1
    rest = total * uniform
    for i in range(first, last + 1):
        rest -= weights[i]
        if rest < 0.0:
            return i
    return last


@inner
def _spring(
    deviations: IntArray, noise: LatticeNoise, corners: IntArray, signs: IntArray, sides: int
) -> tuple[float, float, float, float]:
    """What noise says of a move by d: its precision, and the -d², -d and -|d| parts of its log.

    The precision is -1 where an exact count would change.
    """
    precision = square = pull = slope = 0.0
    for j in range(noise.nodes.shape[0]):
        if not _touched(noise.nodes, j, corners, sides):
            continue
        for k in range(1 << sides):
            node = noise.nodes[j, corners[k]]
            if noise.exact[node]:
                return -1.0, 0.0, 0.0, 0.0
            precision += noise.precisions[j]
            square += noise.squares[j]
            pull += 2.0 * noise.squares[j] * signs[k] * deviations[node]
            slope += noise.slopes[j]
    return precision, square, pull, slope


@inner
def _window(precision: float, rng: np.random.Generator) -> tuple[int, int, int]:
    """How many moves a window has, the step between them, and the place of the move by 0.

    None of them depends on the cells.
    """
    wanted = REACH / np.sqrt(precision) if precision > 0.0 else np.inf
    length, step = int(min(wanted + 3.0, LONGEST)), 1
    farther = min(wanted / LONGEST, FARTHEST)
    if farther > 1.0 and rng.random() < 0.5:
        step += int(rng.random() * farther)
    return length, step, int(rng.random() * length)


@inner
def _possible(
    cells: IntArray, corners: IntArray, signs: IntArray, count: int, step: int, length: int, at: int
) -> tuple[int, int]:
    """The first and the last place of a window that leave no cell negative."""
    first, last = 0, length - 1
    for k in range(count):
        most = cells[corners[k]] // step
        if signs[k] > 0:
            first = max(first, at - most)
        else:
            last = min(last, at + most)
    return first, last


@inner
def _move(
    cells: IntArray,
    deviations: IntArray,
    means: FloatArray,
    prior: CellScatter,
    noise: LatticeNoise,
    corners: IntArray,
    signs: IntArray,
    sides: int,
    weights: FloatArray,
    rng: np.random.Generator,
) -> bool:
    """Draw how far the cells of a box move; whether they did."""
    precision, square, pull, slope = _spring(deviations, noise, corners, signs, sides)
    if precision < 0.0:
        return False
    length, step, at = _window(precision, rng)
    count = 1 << sides
    first, last = _possible(cells, corners, signs, count, step, length, at)
    if first == last:
        return False
    for i in range(first, last + 1):
        d = float(step * (i - at))
        weights[i] = -(square * d + pull) * d
    if slope > 0.0:
        _add_slopes(weights, first, last, at, step, deviations, noise, corners, signs, sides)
    highest = weights[first : last + 1].max()
    for i in range(first, last + 1):
        weights[i] = exp(weights[i] - highest)
    for k in range(count):
        c, by = corners[k], signs[k] * step
        shape, start = prior.shapes[c], cells[c] - by * at
        _times_prior(weights, first, last, start, by, means[c], shape, prior.diffuse)
    chosen = _drawn(weights, first, last, rng.random())
    if chosen in (-1, at):
        return False
    _make(cells, deviations, noise.nodes, corners, signs, sides, step * (chosen - at))
    return True


@inner
def _make(
    cells: IntArray,
    deviations: IntArray,
    nodes: Int32Array,
    corners: IntArray,
    signs: IntArray,
    sides: int,
    by: int,
) -> None:
    """Move the corners of a box."""
    for k in range(1 << sides):
        cells[corners[k]] += signs[k] * by
    for j in range(nodes.shape[0]):
        if _touched(nodes, j, corners, sides):
            for k in range(1 << sides):
                deviations[nodes[j, corners[k]]] += signs[k] * by


@inner
def _add_slopes(
    weights: FloatArray,
    first: int,
    last: int,
    at: int,
    step: int,
    deviations: IntArray,
    noise: LatticeNoise,
    corners: IntArray,
    signs: IntArray,
    sides: int,
) -> None:
    """Logarithms of noise that falls with the absolute deviation."""
    for j in range(noise.nodes.shape[0]):
        if noise.slopes[j] == 0.0 or not _touched(noise.nodes, j, corners, sides):
            continue
        for k in range(1 << sides):
            deviation = deviations[noise.nodes[j, corners[k]]]
            for i in range(first, last + 1):
                value = deviation + signs[k] * step * (i - at)
                weights[i] -= noise.slopes[j] * abs(value)
                if value == 0:
                    weights[i] += noise.peaks[j]


@compiled
def move_cells(
    cells: IntArray,
    deviations: IntArray,
    means: FloatArray,
    prior: CellScatter,
    noise: LatticeNoise,
    grid: CellGrid,
    rng: np.random.Generator,
) -> int:
    """One sweep: every free cell by itself, then with partners along up to three axes.

    `deviations` are the sums of the cells less the noisy counts, for all nodes of all measurements.
    Returned is how many moves were not 0.
    """
    axes = grid.sizes.size
    corners, signs = np.empty((2, 1 << SIDES), np.int64)
    turn, weights = np.arange(axes), np.empty(LONGEST + 1)
    signs[0], made = 1, 0
    for c in range(cells.size):
        if not grid.free[c]:
            continue
        corners[0] = c
        made += _move(cells, deviations, means, prior, noise, corners, signs, 0, weights, rng)
        sides = 1 + int(rng.random() * min(axes, SIDES))
        possible = True
        for side in range(sides):
            other = side + int(rng.random() * (axes - side))
            turn[side], turn[other] = turn[other], turn[side]
            axis = turn[side]
            category = (c // grid.strides[axis]) % grid.sizes[axis]
            along = (_partner(grid, axis, category, rng) - category) * grid.strides[axis]
            possible = possible and along != 0
            for k in range(1 << side):
                corners[k + (1 << side)] = corners[k] + along
                signs[k + (1 << side)] = -signs[k]
                possible = possible and grid.free[corners[k + (1 << side)]]
        if possible:
            made += _move(
                cells, deviations, means, prior, noise, corners, signs, sides, weights, rng
            )
    return made
