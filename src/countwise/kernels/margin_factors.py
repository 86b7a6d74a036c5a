"""Expectations of cells as products of a factor for every node of some margins, drawn in turn.

A cell counts Poisson(mean·g), g gamma of mean 1 with the cell's own shape; the mean is the product
of its nodes' factors, each gamma too. Given all cells and all else, a factor is gamma again: its
shape gains the count of its node, its rate what the node would count if the factor were 1.
"""

from math import exp

import numpy as np

from countwise.arrays import BoolArray, FloatArray, Int32Array, IntArray
from countwise.kernels.compilation import compiled
from countwise.kernels.lattice_moves import POISSON, CellScatter, log_scattered

LEAST = 1e-30  # of a factor and of a mean: gamma draws of small shape may be 0


@compiled
def draw_factors(
    cells: IntArray,
    means: FloatArray,
    prior: CellScatter,
    free: BoolArray,
    nodes: Int32Array,
    starts: IntArray,
    factors: FloatArray,
    shapes: FloatArray,
    rates: FloatArray,
    rng: np.random.Generator,
) -> None:
    """Every factor once, given the cells; `means` are renewed.

    The nodes of margin e are ``starts[e]`` to ``starts[e + 1]`` - 1 among all factors. A cell that
    is drawn to be of the diffuse part says nothing of its mean.
    """
    counted, exposed = np.zeros((2, cells.size))
    for c in range(cells.size):
        if not free[c]:
            continue
        x, mean, shape = cells[c], means[c], prior.shapes[c]
        other = prior.diffuse / ((x + 1.0) * (x + 2.0))
        own = (1.0 - prior.diffuse) * exp(log_scattered(x, mean, shape))
        if rng.random() * (own + other) < other:
            continue
        counted[c] = x
        exposed[c] = 1.0
        if shape < POISSON:
            exposed[c] = rng.standard_gamma(shape + x) / (shape + mean)
    counts, exposures = np.empty((2, factors.size))
    for e in range(nodes.shape[0]):
        first, last = starts[e], starts[e + 1]
        counts[first:last] = 0.0
        exposures[first:last] = 0.0
        for c in range(cells.size):
            counts[nodes[e, c]] += counted[c]
            exposures[nodes[e, c]] += exposed[c] * means[c]
        for u in range(first, last):
            rate = rates[u] + exposures[u] / factors[u]
            if rate > 0.0:
                drawn = max(rng.standard_gamma(shapes[u] + counts[u]) / rate, LEAST)
                exposures[u] = drawn / factors[u]
                factors[u] = drawn
            else:
                exposures[u] = 1.0
        for c in range(cells.size):
            means[c] *= exposures[nodes[e, c]]
    for c in range(cells.size):
        mean = 1.0
        for e in range(nodes.shape[0]):
            mean *= factors[nodes[e, c]]
        means[c] = max(mean, LEAST)
