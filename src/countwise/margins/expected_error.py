"""Which of two tables is nearer to the truth, from noisy counts alone.

For an estimate F(y) and the unbiased least squares L(y) with variance V, of a margin's count x,

    E (F - x)² = E (F - L)² - V + 2·Cov(F, L),    Cov(F, L) = Σ σ_i²·E ∂F/∂y_i·∂L/∂y_i

whatever x is: for Gaussian noise (Stein 1981), and for double geometric noise with the slope of F
taken where y_i has one more, independent noise of the same law. The sum is found from one nudge e
of all y_i at a time, E e_i e_j = σ_i²·SHARE² for i = j and else 0.
docs/explain/crossed-whole-cells.md, section 3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.margins.measurement import Measurement
from countwise.margins.reconstruction import Reconstruction
from countwise.tables.workload import Margin

Estimator = Callable[[Reconstruction], FloatArray]

SHARE = 0.3  # of the noise's deviation: a nudge small enough for a slope
SURE = 0.999  # of the difference at one margin
MOVED = 0.1  # of the counts have a second noise at a time, so that the others are as they were
TIMES = 3  # so many such nudges


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Expected squared errors of two tables at a margin, in parts of the variance of least squares.

    `excess` is that of the second less that of the first, known to `within` as far as the scatter
    over the margin's counts tells.
    """

    first: float
    excess: float
    within: float


def compared(
    seen: Reconstruction, first: Estimator, second: Estimator, rng: np.random.Generator
) -> dict[Margin, Comparison]:
    """By how much the second table's errors are larger, at every margin and in the cells.

    Margins whose variance is not finite are left out.
    """
    both, workload = (first, second), seen.workload
    tables = [each(seen) for each in both]
    memoryless = any(each.law.memoryless for each in seen.measurements)
    nudges = [_nudged(seen, both, rng) for _ in range(TIMES if memoryless else 1)]
    found = {}
    for margin in [*seen.margins, workload.finest]:
        variance = seen.mean_variance(margin)
        if np.isfinite(variance):
            centre = workload.sums(seen.estimates.cells, margin)
            errors = [
                (workload.sums(table, margin) - centre) ** 2 / variance - 1.0 for table in tables
            ]
            for linear, slopes in nudges:
                noise = workload.sums(linear, margin) * (2.0 / variance / len(nudges))
                for i, slope in enumerate(slopes):
                    errors[i] += workload.sums(slope, margin) * noise
            found[margin] = _comparison(*errors)
    return found


def _comparison(first: FloatArray, second: FloatArray) -> Comparison:
    """Means of both, and Student's half-width of the mean difference."""
    gaps, within = second - first, np.inf
    if gaps.size > 1:
        within = gaps.std(ddof=1) / np.sqrt(gaps.size) * stdtrit(gaps.size - 1, SURE)
    return Comparison(first=float(first.mean()), excess=float(gaps.mean()), within=float(within))


def _nudged(
    seen: Reconstruction, both: Sequence[Estimator], rng: np.random.Generator
) -> tuple[FloatArray, list[FloatArray]]:
    """How least squares moves in a nudge, scaled to its variance, and how the two tables do."""
    memoryless = any(each.law.memoryless for each in seen.measurements)
    share = MOVED if memoryless else 1.0
    starts, ends = list[Measurement](), list[Measurement]()
    for each in seen.measurements:
        chosen = rng.random(each.noisy.shape) < share
        if each.exact is not None:
            chosen &= ~each.exact
        start = each
        if memoryless:
            chances = rng.uniform(1e-15, 1 - 1e-15, chosen.shape)
            start = _added(each, each.law.quantile(chances), chosen)
        starts.append(start)
        ends.append(_added(start, _nudge(each.variance, chosen.shape, rng), chosen))
    base = replace(seen, measurements=starts) if memoryless else seen
    moved = replace(seen, measurements=ends)
    linear = (moved.estimates.cells - base.estimates.cells) / (SHARE**2 * share)
    return linear, [each(moved) - each(base) for each in both]


def _nudge(variance: float, shape: Sequence[int], rng: np.random.Generator) -> IntArray:
    """Random signs times whole numbers next to each other, of the mean square that is asked."""
    square = SHARE**2 * variance
    low = int(np.sqrt(square))
    chance = (square - low**2) / (2 * low + 1)
    sizes = low + (rng.random(shape) < chance)
    return np.where(rng.random(shape) < 0.5, -sizes, sizes)


def _added(measurement: Measurement, noise: IntArray, where: BoolArray) -> Measurement:
    return replace(measurement, noisy=measurement.noisy + np.where(where, noise, 0))
