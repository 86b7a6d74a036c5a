"""Cells that share a law with cells of like expectation: gamma-Poisson scatter about raked means.

The natural expectation of a cell, given the margins, is that of raking (maximum entropy). How far
cells scatter about it is learned from their noisy counts, by class of expectation, with the exact
law of the noise. A prior only says how sums are divided: the shrunken cells are tilted until their
sums meet the margins again.
"""

from collections.abc import Sequence

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.gamma_poisson import scattered
from countwise.margins.nonnegative import HELD, Target, held_to
from countwise.privacy.laws import IntegerLaw
from countwise.tables.workload import Workload

SHAPES = (0.05, 0.15, 0.4, 1.0, 2.5, 6.0, 15.0, 60.0, 400.0)  # gamma shapes, a factor 2.5 apart
CLASSES = 6
ENOUGH = 2_000  # cells of a class tell its shape well enough
NEGLIGIBLE = 1e-13  # of the largest probability of the noise
LEAST_MEAN = 1e-6
LEAST_VARIANCE = 1e-6


def raked(workload: Workload, targets: Sequence[Target], total: float) -> FloatArray:
    """The table of most entropy whose sums are near the targets."""
    flat = np.full(workload.shape, max(total, 1.0) / workload.cells)
    centre = Target(margin=workload.finest, counts=flat, variances=flat)
    return held_to(workload, centre, targets, held=HELD, tilted=True)


def shrunk(
    noisy: IntArray, law: IntegerLaw, means: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Posterior means and variances of cells from their noisy counts, by class of expectation."""
    noise = law.pmf(np.arange(_reach(law) + 1))
    flat, seen = np.maximum(means.reshape(-1), LEAST_MEAN), noisy.reshape(-1)
    found, spread = np.empty((2, flat.size))
    diffuse = 1.0 / (flat.size + 1)
    edges = np.quantile(flat, np.arange(1, CLASSES) / CLASSES)
    classes = np.digitize(flat, edges)
    for each in np.unique(classes):
        members = np.flatnonzero(classes == each)
        some = rng.permutation(members)[:ENOUGH]
        fits = [float(scattered(seen[some], flat[some], shape, diffuse, noise)[2].sum())
                for shape in SHAPES]
        shape = SHAPES[int(np.argmax(fits))]
        found[members], spread[members], _ = scattered(
            seen[members], flat[members], shape, diffuse, noise
        )
    return (
        np.maximum(found, LEAST_MEAN).reshape(noisy.shape),
        np.maximum(spread, LEAST_VARIANCE).reshape(noisy.shape),
    )


def _reach(law: IntegerLaw) -> int:
    return max(law.margin(1.0 - NEGLIGIBLE), 1)
