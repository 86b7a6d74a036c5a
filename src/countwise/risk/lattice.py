"""Expected squared error under geometric noise as a sum over the lattice, with a proven bound.

Summed is what the estimator itself loses, computed in doubles, over all noise within a window:
of each bin alone where bins do not interact, of the differences of neighbours where three bins
are merged (`triples` says why), of all bins together otherwise.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import expm1, sqrt

import numpy as np
from flint import arb

from countwise.adjust.histogram import ESTIMATORS
from countwise.arrays import FloatArray
from countwise.errors import InputError
from countwise.noise.laws import Geometric
from countwise.risk.closed import PRICES, whole_bins
from countwise.risk.tails import geometric_balls, outside

MOST_POINTS = 3_000_000  # noise vectors that are summed over in seconds
CHUNK = 200_000  # of them at once, in some megabytes
ROUNDING = 2.0**-53  # half a unit in the last place of a double near 1
ALONE = ("identity", "clipped")
Grid = tuple[FloatArray, FloatArray]  # noise vectors and their probabilities


def points(name: str, bins: int, law: Geometric) -> int:
    """How many noise vectors are summed over."""
    reach = _reach(law)
    if name in ALONE:
        return 2 * reach + 1
    if name in PRICES and bins == 3:
        return (4 * reach + 1) ** 2
    return int((2 * reach + 1) ** bins)


def lattice_sum(name: str, bins: Sequence[Fraction], law: Geometric) -> tuple[float, arb]:
    """The expected squared error and a bound on how far off that may be."""
    whole_bins(bins)
    size = points(name, len(bins), law)
    if size > MOST_POINTS:
        raise InputError(
            "the sum over all noise is too long; simulate it, or use a larger epsilon."
        )
    counts = np.array([float(h) for h in bins])
    reach = _reach(law)
    if name in ALONE:
        line = _product(law, reach, 1)
        sums = [_mean_loss(name, counts[i : i + 1], law, line) for i in range(len(bins))]
        value, weight = (sum(each[i] for each in sums) for i in (0, 1))
    elif name in PRICES and len(bins) == 3:
        gain, weight = _mean_loss(name, counts, law, _differences(law, 2 * reach), gain=True)
        value = 3 * law.variance + gain
        weight += 3 * law.variance
    else:
        value, weight = _mean_loss(name, counts, law, _product(law, reach, len(bins)))
    tail = outside(bins, geometric_balls(law.scale), arb(reach))
    return value, tail + _rounding(weight, counts, reach, terms=size)


def _reach(law: Geometric) -> int:
    """How far the noise of a bin is followed: to a probability of 1e-14."""
    return int(32 / law.rate) + 2


def _mean_loss(
    name: str, counts: FloatArray, law: Geometric, grid: Grid, *, gain: bool = False
) -> tuple[float, float]:
    """Σ of probability times loss, or times what it adds to the squared noise; Σ of sizes."""
    total = size = 0.0
    for start in range(0, len(grid[1]), CHUNK):
        noise, weights = (each[start : start + CHUNK] for each in grid)
        square = (noise**2).sum(axis=1) * gain
        loss = ((ESTIMATORS[name](noise + counts, law=law) - counts) ** 2).sum(axis=1)
        total += float((loss - square) @ weights)
        size += float((loss + square) @ weights)
    return total, size


def _product(law: Geometric, reach: int, bins: int) -> Grid:
    """Independent noise within the reach."""
    line = np.arange(-reach, reach + 1, dtype=np.float64)
    noise = np.stack(np.meshgrid(*[line] * bins, indexing="ij"), axis=-1).reshape(-1, bins)
    weights = np.prod(np.meshgrid(*[law.pmf(line)] * bins, indexing="ij"), axis=0).ravel()
    return noise, np.asarray(weights)


def _differences(law: Geometric, reach: int) -> Grid:
    """Noise (s, 0, -t) with the probability of Z₁-Z₂ = s and Z₂-Z₃ = t.

    Σ over z of α^{|z+s|+|z|+|z-t|}, with gaps A and B between the kinks -s, 0, t in order, is
    α^{A+B}·((1-α^{A+1} + α - α^{B+1})/(1-α) + (α^A + α^B)·α³/(1-α³)).
    """
    line = np.arange(-reach, reach + 1, dtype=np.float64)
    s, t = (each.ravel() for each in np.meshgrid(line, line, indexing="ij"))
    low, middle, high = np.sort(np.stack([-s, 0 * s, t]), axis=0)
    a, b = middle - low, high - middle
    rate, alpha = law.rate, law.alpha
    inside = -(np.expm1(-rate * (a + 1)) + alpha * np.expm1(-rate * b)) / -expm1(-rate)
    outer = (np.exp(-rate * a) + np.exp(-rate * b)) * alpha**3 / -expm1(-3 * rate)
    peak = -expm1(-rate) / (1 + alpha)
    return np.stack([s, 0 * s, -t], axis=1), peak**3 * np.exp(-rate * (a + b)) * (inside + outer)


def _rounding(size: float, counts: FloatArray, reach: int, *, terms: int) -> float:
    """A bound on the rounding of a sum of sizes that add up to `size`.

    Adding up n terms costs at most n roundings of their sizes' sum; a weight costs a few for
    every unit of its exponent. An estimate is off by a few roundings of the largest count δ,
    which changes the loss L by 2√L·δ + δ² and, by Cauchy-Schwarz, its mean as well.
    """
    relative = (min(terms, CHUNK) + terms / CHUNK + 2000) * ROUNDING
    off = 16 * len(counts) * ROUNDING * (float(counts.max()) + 4 * reach)
    return 2 * relative * size + 2 * sqrt(2 * size) * off + off**2
