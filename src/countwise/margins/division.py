"""How sums divide among cells, learned from noisy margins: the prior of joint draws.

A cell scatters about its mean as a gamma-Poisson law. The mean is a factor for everyone times one
for every node of each measured margin above the cells: a gamma of mean 1, whose shape says how far
counts of such nodes lie from what the coarser margins imply. Nothing is said about the size of the
total. The shapes, a few numbers, are learned beforehand; the factors are not, they are drawn with
the cells, so that no noisy count is used twice. docs/explain/crossed-draws.md.
"""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.gamma_poisson import scattered
from countwise.kernels.lattice_moves import POISSON
from countwise.margins.measurement import Measurement
from countwise.margins.nonnegative import LEAST_MEAN
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.scatter import SHAPES, raked, reach
from countwise.tables.workload import Margin, Workload

NODES = 200  # of a class at least, if there are two
CLASSES = 6  # of sizes, where there are enough nodes
ENOUGH = 1_000  # nodes of a class tell its shape well enough
DOUBT = 1.5  # standard deviation of the logarithm of a shape, before any count is seen
LIKELY = 1e4  # terms of a law of noise: of a wider one the shape is not learned
FLAT = 1.0, 0.0  # shape and rate of the factor of everyone, under which any total is as likely


@dataclass(frozen=True, kw_only=True, eq=False)
class CellDivision:
    """Margins from coarse to fine, everyone first, and gamma shapes and rates of their factors.

    `scatter` has the shape of every cell about its mean, `diffuse` the weight of no scatter.
    """

    margins: tuple[Margin, ...]
    shapes: tuple[FloatArray, ...]
    rates: tuple[FloatArray, ...]
    scatter: FloatArray
    diffuse: float

    def words(self) -> str:
        """What is assumed."""
        return (
            "learned (any total as likely; how a sum divides is a factor for every count of the "
            "measured tables, which scatter as far as the noisy counts show, and cells about that)"
        )


def undivided(workload: Workload) -> CellDivision:
    """Cells alike but for chance, one factor for everyone."""
    everyone = Margin((0,) * len(workload.variables))
    return CellDivision(
        margins=(everyone,),
        shapes=(np.full(1, FLAT[0]),),
        rates=(np.full(1, FLAT[1]),),
        scatter=np.ones(workload.cells),
        diffuse=1.0 / (workload.cells + 1),
    )


def learned_division(seen: Reconstruction, rng: np.random.Generator) -> CellDivision:
    """The division of sums that noisy margins show; `rng` takes samples of many nodes."""
    workload = seen.workload
    everyone = Margin((0,) * len(workload.variables))
    measured = {each.margin for each in seen.measurements} - {everyone, workload.finest}
    margins = sorted(measured, key=lambda each: (workload.size(each), each))
    shapes = [_shapes(seen, each, rng) for each in margins]
    own = seen.own
    scatter = np.full(workload.shape, POISSON)
    if own is not None:
        scatter = _shapes(seen, workload.finest, rng)
    return CellDivision(
        margins=(everyone, *margins),
        shapes=(np.full(1, FLAT[0]), *(each.reshape(-1) for each in shapes)),
        rates=(np.full(1, FLAT[1]), *(each.reshape(-1) for each in shapes)),
        scatter=scatter.reshape(-1),
        diffuse=1.0 / (workload.cells + 1),
    )


def _shapes(seen: Reconstruction, margin: Margin, rng: np.random.Generator) -> FloatArray:
    """For every node of a measured margin how it scatters about what coarser margins imply."""
    own = min(
        (each for each in seen.measurements if each.margin == margin),
        key=lambda each: each.law.variance,
    )
    means = _implied(seen, margin)
    return learned(own, means, rng) if reach(own.law) < LIKELY else np.ones(means.shape)


def _implied(seen: Reconstruction, margin: Margin) -> FloatArray:
    """The table of most entropy of the margins that a margin refines."""
    workload = seen.workload
    coarser = [
        each for each in seen.targets if each.margin != margin and margin.covers(each.margin)
    ]
    total = float(seen.estimates.cells.sum())
    return workload.sums(raked(workload, coarser, total, seen.known.free), margin)


def learned(own: Measurement, means: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The most probable shape of each class of mean, given its noisy counts."""
    flat = np.maximum(means.reshape(-1), LEAST_MEAN)
    noise = own.law.pmf(np.arange(reach(own.law) + 1))
    noisy = own.noisy.reshape(-1)
    drawn = np.ones(flat.size, np.bool_) if own.exact is None else ~own.exact.reshape(-1)
    classes = min(max(int(drawn.sum()) // NODES, 1), CLASSES)
    bounds = np.quantile(flat, np.arange(1, classes) / classes)
    places, shapes = np.digitize(flat, bounds), np.ones(flat.size)
    doubts = [-0.5 * (np.log(each) / DOUBT) ** 2 for each in SHAPES]
    for each in np.unique(places):
        some = rng.permutation(np.flatnonzero((places == each) & drawn))[:ENOUGH]
        if not some.size:
            continue
        fits = [
            float(scattered(noisy[some], flat[some], shape, 1 / (flat.size + 1), noise)[2].sum())
            for shape in SHAPES
        ]
        shapes[places == each] = SHAPES[int(np.argmax(np.add(fits, doubts)))]
    return shapes.reshape(means.shape)
