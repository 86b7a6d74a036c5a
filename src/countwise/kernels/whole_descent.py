"""Whole cells whose sums come near targets: descent by the smallest moves of a crossed table.

A move adds 1 to some cells and takes 1 from others: one cell; two cells of a line, which keeps
every sum along that line; or the four corners of a rectangle, which keeps both. A move is made when
it lowers Σ weight·deviation² over all nodes of all margins.
"""

from countwise.arrays import BoolArray, FloatArray, Int32Array, IntArray
from countwise.kernels.compilation import compiled, inner


@inner
def _shift(
    cells: IntArray,
    nodes: Int32Array,
    deviations: FloatArray,
    weights: FloatArray,
    cell: int,
    by: int,
) -> float:
    """Change a cell by 1 up or down; the change of the objective."""
    gain = 0.0
    cells[cell] += by
    for k in range(nodes.shape[0]):
        node = nodes[k, cell]
        gain += weights[node] * (2.0 * by * deviations[node] + 1.0)
        deviations[node] += by
    return gain


@inner
def _pull(
    nodes: Int32Array, deviations: FloatArray, weights: FloatArray, cell: int
) -> tuple[float, float]:
    """Half the slope of the objective in one cell, and half its curvature."""
    slope, curvature = 0.0, 0.0
    for k in range(nodes.shape[0]):
        node = nodes[k, cell]
        slope += weights[node] * deviations[node]
        curvature += weights[node]
    return slope, curvature


@compiled
def descend(
    cells: IntArray,
    free: BoolArray,
    nodes: Int32Array,
    deviations: FloatArray,
    weights: FloatArray,
    order: IntArray,
    others: IntArray,
    strides: IntArray,
    sizes: IntArray,
    least: float,
) -> int:
    """One sweep over the cells in an order; how many moves were made.

    `nodes[k, c]` is the place of cell c's node of margin k among all deviations and weights. In
    `others[a, c]` stands the category of variable a that a move of cell c tries beside its own.
    Only cells that are free change; a move that gains less than `least` is not made.
    """
    made = 0
    axes = sizes.size
    for c in order:
        if not free[c]:
            continue
        slope, curvature = _pull(nodes, deviations, weights, c)
        by = 1 if slope < 0.0 else -1
        if 2.0 * by * slope + curvature < -least and cells[c] + by >= 0:
            _shift(cells, nodes, deviations, weights, c, by)
            made += 1
            continue
        for a in range(axes):
            along = c + (others[a, c] - (c // strides[a]) % sizes[a]) * strides[a]
            if along == c or not free[along]:
                continue
            if cells[c] + by < 0 or cells[along] - by < 0:
                continue
            gain = _shift(cells, nodes, deviations, weights, c, by)
            gain += _shift(cells, nodes, deviations, weights, along, -by)
            if gain < -least:
                made += 1
                break
            for b in range(a):
                beyond = (others[b, c] - (c // strides[b]) % sizes[b]) * strides[b]
                side, corner = c + beyond, along + beyond
                if beyond == 0 or not (free[side] and free[corner]):
                    continue
                if cells[side] - by < 0 or cells[corner] + by < 0:
                    continue
                more = _shift(cells, nodes, deviations, weights, side, -by)
                more += _shift(cells, nodes, deviations, weights, corner, by)
                if gain + more < -least:
                    gain += more
                    break
                _shift(cells, nodes, deviations, weights, side, by)
                _shift(cells, nodes, deviations, weights, corner, -by)
            if gain < -least:
                made += 1
                break
            _shift(cells, nodes, deviations, weights, c, -by)
            _shift(cells, nodes, deviations, weights, along, by)
    return made
