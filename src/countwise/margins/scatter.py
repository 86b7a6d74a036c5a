"""Cells that share a law with cells of like expectation: gamma-Poisson scatter about raked means.

The natural expectation of a cell, given the margins, is that of raking (maximum entropy). How far
cells scatter about it is learned from their noisy counts, by class of expectation, with the exact
law of the noise. A prior only says how sums are divided: the shrunken cells are tilted until their
sums meet the margins again. docs/explain/crossed-whole-cells.md, section 3.
"""

from collections.abc import Sequence

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.kernels.gamma_poisson import scattered
from countwise.margins.nonnegative import HELD, LEAST_MEAN, Target, held_to
from countwise.noise.laws import IntegerLaw
from countwise.tables.workload import Workload

SHAPES = (0.05, 0.15, 0.4, 1.0, 2.5, 6.0, 15.0, 60.0, 400.0)  # gamma shapes, a factor 2.5 apart
CLASSES = 6  # of sizes, as many nodes in each
ENOUGH = 2_000  # cells of a class tell its shape well enough
NEGLIGIBLE = 1e-13  # of the largest probability of the noise
LEAST_VARIANCE = 1e-6  # far below that of any noise


def raked(
    workload: Workload, targets: Sequence[Target], total: float, free: BoolArray
) -> FloatArray:
    """The table of most entropy whose sums are near the targets, with nobody but in free cells."""
    flat = np.where(free, max(total, 1.0) / max(int(free.sum()), 1), LEAST_MEAN)
    centre = Target(margin=workload.finest, counts=flat, variances=flat)
    return held_to(workload, centre, [each.tightened(HELD) for each in targets], tilted=True)


def shrunk(
    noisy: IntArray, law: IntegerLaw, means: FloatArray, shapes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior means and variances of cells, from expectations and gamma shapes about them."""
    noise = _probabilities(law)
    found, spread = np.empty((2, noisy.size))
    seen, expected = noisy.reshape(-1), np.maximum(means.reshape(-1), LEAST_MEAN)
    for shape in np.unique(shapes):
        alike = np.flatnonzero(shapes.reshape(-1) == shape)
        found[alike], spread[alike], _ = scattered(
            seen[alike], expected[alike], float(shape), 1.0 / (noisy.size + 1), noise
        )
    return (
        np.maximum(found, LEAST_MEAN).reshape(noisy.shape),
        np.maximum(spread, LEAST_VARIANCE).reshape(noisy.shape),
    )


def learned_shapes(
    noisy: IntArray, law: IntegerLaw, means: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """For each class of expectation the shape under which its noisy counts are most likely."""
    noise = _probabilities(law)
    flat, seen = np.maximum(means.reshape(-1), LEAST_MEAN), noisy.reshape(-1)
    classes = np.digitize(flat, np.quantile(flat, np.arange(1, CLASSES) / CLASSES))
    shapes = np.empty(flat.size)
    for each in np.unique(classes):
        some = rng.permutation(np.flatnonzero(classes == each))[:ENOUGH]
        fits = [
            float(scattered(seen[some], flat[some], shape, 1.0 / (flat.size + 1), noise)[2].sum())
            for shape in SHAPES
        ]
        shapes[classes == each] = SHAPES[int(np.argmax(fits))]
    return shapes.reshape(means.shape)


def reach(law: IntegerLaw) -> int:
    """The noise beyond which all is negligible."""
    return max(law.margin(1.0 - NEGLIGIBLE), 1)


def _probabilities(law: IntegerLaw) -> FloatArray:
    """Those of noise 0, 1, … down to where they are negligible."""
    return law.pmf(np.arange(reach(law) + 1))
