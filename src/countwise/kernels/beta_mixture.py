"""Mixtures of the Beta laws Beta(a+k, b+N-k), k from a first value on: density, mode, quantiles.

Weights and first value are those of `urns.elevate`.
"""

from math import exp, lgamma, log, log1p, sqrt

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.compilation import compiled_like_numpy
from countwise.kernels.urns import category, convolve, elevate

TINY = 1e-300  # stands for zero in a denominator
GRID = 32  # steps over eight standard deviations, in one of which the mode is
EDGE = 1e-12  # how near the ends densities are compared, as one may be infinite there
# Places in a summary.
MODE, MEDIAN, LOWER, UPPER, ABOVE_HALF, MEAN, DEVIATION = 0, 1, 2, 3, 4, 5, 6


@compiled_like_numpy
def incomplete(a: float, b: float, x: float) -> float:
    """P(Beta(a, b) <= x), by the continued fraction (Abramowitz & Stegun 26.5.8)."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete(b, a, 1.0 - x)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)) / a
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > TINY else TINY)
    result = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + numerator * d
            c = 1.0 + numerator / c
            d = 1.0 / (d if abs(d) > TINY else TINY)
            c = c if abs(c) > TINY else TINY
            result *= d * c
        if abs(d * c - 1.0) < 1e-16:
            break
    return front * result


@compiled_like_numpy
def at(
    x: float, weights: FloatArray, tails: FloatArray, low: int, total: int, a: float, b: float
) -> tuple[float, float, float]:
    """Density, its derivative, and distribution function of the mixture at 0 < x < 1.

    Neighbouring laws' densities have a rational ratio; the walk starts where they are largest.
    The distribution functions differ by a multiple of the density:
    I(a+1, b-1) = I(a, b) - density·x/a.
    """
    last = weights.size - 1
    peak = int(x * (a + b + total)) - int(a) - low
    peak = min(max(peak, 0), last)
    k = low + peak
    start = exp(
        lgamma(a + b + total)
        - lgamma(a + k)
        - lgamma(b + total - k)
        + (a + k - 1.0) * log(x)
        + (b + total - k - 1.0) * log1p(-x)
    )
    odds, density, slope, below = x / (1.0 - x), 0.0, 0.0, 0.0
    term = start
    for i in range(peak, last + 1):
        k = low + i
        density += weights[i] * term
        slope += weights[i] * term * ((a + k - 1.0) - (a + b + total - 2.0) * x)
        below += tails[i] * term * x / (a + k)
        term *= odds * (b + total - k - 1.0) / (a + k)
    term = start
    for i in range(peak - 1, -1, -1):
        k = low + i
        term *= (a + k) / (odds * (b + total - k - 1.0))
        density += weights[i] * term
        slope += weights[i] * term * ((a + k - 1.0) - (a + b + total - 2.0) * x)
        below += tails[i] * term * x / (a + k)
    cumulative = incomplete(a + low, b + total - low, x) - below
    return density, slope / (x * (1.0 - x)), min(max(cumulative, 0.0), 1.0)


@compiled_like_numpy
def curve(
    xs: FloatArray, weights: FloatArray, low: int, total: int, a: float, b: float
) -> tuple[FloatArray, FloatArray]:
    """Density and distribution function at many points inside (0, 1)."""
    tails = _tails(weights)
    density, cumulative = np.empty(xs.size), np.empty(xs.size)
    for i in range(xs.size):
        density[i], _, cumulative[i] = at(xs[i], weights, tails, low, total, a, b)
    return density, cumulative


@compiled_like_numpy
def _tails(weights: FloatArray) -> FloatArray:
    """Weight strictly above each place."""
    tails = np.empty(weights.size)
    running = 0.0
    for i in range(weights.size - 1, -1, -1):
        tails[i] = running
        running += weights[i]
    return tails


@compiled_like_numpy
def quantile(
    q: float,
    guess: float,
    weights: FloatArray,
    tails: FloatArray,
    low: int,
    total: int,
    a: float,
    b: float,
) -> float:
    """The x with P(r <= x) = q: Newton's method inside a shrinking bracket.

    Laws with a < 1 or b < 1 can have their quantiles a billionth of a billionth from an end, so
    steps are measured by the distance from the nearer end, and brackets there are cut by ratio.
    """
    left, right, x = 0.0, 1.0, min(max(guess, 1e-9), 1.0 - 1e-9)
    for _ in range(200):
        density, _, cumulative = at(x, weights, tails, low, total, a, b)
        if cumulative < q:
            left = x
        else:
            right = x
        following = x - (cumulative - q) / density if density > 0.0 else -1.0
        if not left < following < right:
            following = _between(left, right)
        if not left < following < right:
            return right
        if abs(following - x) <= 1e-13 * min(x, 1.0 - x):
            return following
        x = following
    return x


@compiled_like_numpy
def _between(left: float, right: float) -> float:
    """The middle of a bracket: by ratio of the distances from the nearer end, or of the ends."""
    if right < 0.5:
        return sqrt(max(left, TINY)) * sqrt(right)
    if left > 0.5:
        return 1.0 - sqrt(1.0 - left) * sqrt(max(1.0 - right, 1e-17))
    return 0.5 * (left + right)


@compiled_like_numpy
def _mode(
    mean: float,
    deviation: float,
    weights: FloatArray,
    tails: FloatArray,
    low: int,
    total: int,
    a: float,
    b: float,
) -> float:
    """Where the density is largest: an end, or the best point inside."""
    args = (weights, tails, low, total, a, b)
    inside = _mode_inside(mean, deviation, *args)
    best = at(min(max(inside, EDGE), 1.0 - EDGE), *args)[0]
    for end, near, outward in ((0.0, EDGE, -1.0), (1.0, 1.0 - EDGE, 1.0)):
        density, slope, _ = at(near, *args)
        if density > best and slope * outward > 0.0:
            best, inside = density, end
    return inside


@compiled_like_numpy
def _mode_inside(
    mean: float,
    deviation: float,
    weights: FloatArray,
    tails: FloatArray,
    low: int,
    total: int,
    a: float,
    b: float,
) -> float:
    """The best point of a grid around the mean, then the root of the density's derivative."""
    start, stop = max(mean - 4.0 * deviation, EDGE), min(mean + 4.0 * deviation, 1.0 - EDGE)
    step = (stop - start) / GRID
    best, place = -1.0, 0
    for i in range(GRID + 1):
        density, _, _ = at(start + i * step, weights, tails, low, total, a, b)
        if density > best:
            best, place = density, i
    left, right = start + max(place - 1, 0) * step, start + min(place + 1, GRID) * step
    rise = at(left, weights, tails, low, total, a, b)[1]
    fall = at(right, weights, tails, low, total, a, b)[1]
    if rise <= 0.0:
        return 0.0 if place <= 1 and start <= EDGE else left
    if fall >= 0.0:
        return 1.0 if place >= GRID - 1 and stop >= 1.0 - EDGE else right
    middle = left
    for _ in range(80):
        # False position; the end that stays counts half (the Illinois rule).
        before, middle = middle, (left * fall - right * rise) / (fall - rise)
        slope = at(middle, weights, tails, low, total, a, b)[1]
        if slope > 0.0:
            left, rise, fall = middle, slope, 0.5 * fall
        else:
            right, fall, rise = middle, slope, 0.5 * rise
        if abs(middle - before) < 1e-12 or slope == 0.0:
            break
    return middle


@compiled_like_numpy
def summary(
    weights: FloatArray, low: int, total: int, a: float, b: float, tail: float
) -> FloatArray:
    """Mode, median, the quantiles at tail and 1 - tail, Pr(r > 1/2), mean and deviation."""
    tails = _tails(weights)
    size = a + b + total
    first = second = 0.0
    for i in range(weights.size):
        share = (a + low + i) / size
        first += weights[i] * share
        second += weights[i] * share * (a + low + i + 1.0) / (size + 1.0)
    deviation = sqrt(max(second - first * first, 1e-300))
    out = np.empty(7)
    out[MEAN], out[DEVIATION] = first, deviation
    args = (weights, tails, low, total, a, b)
    out[MEDIAN] = quantile(0.5, first, *args)
    out[LOWER] = quantile(tail, first - 2.0 * deviation, *args)
    out[UPPER] = quantile(1.0 - tail, first + 2.0 * deviation, *args)
    out[ABOVE_HALF] = 1.0 - at(0.5, *args)[2]
    out[MODE] = _mode(first, deviation, *args)
    return out


@compiled_like_numpy
def majorities(
    noisy: FloatArray,
    partitions: int,
    rate: float,
    alpha: FloatArray,
    reach: float,
    border: float,
) -> FloatArray:
    """For each row of noisy counts Pr(r > 1 - border), Pr(share of errors > 1/2), Pr(r < border).

    Two columns are the outcomes of r alone; a third is the errors.
    """
    count, kinds = noisy.shape
    out = np.zeros((count, 3))
    nothing = np.ones(1)
    for row in range(count):
        excess = -float(partitions)
        for j in range(kinds):
            excess += min(max(noisy[row, j], 0.0), partitions)
        far = abs(excess) + reach
        lows = np.zeros(3, dtype=np.int64)
        laws = [nothing, nothing, nothing]
        for j in range(kinds):
            centre = min(max(noisy[row, j], 0.0), float(partitions))
            lows[j] = max(0, int(np.floor(centre - far)))
            high = min(partitions, int(np.ceil(centre + far)))
            laws[j] = category(centre, rate, alpha[j], lows[j], high)
        weights, low, total = elevate(
            laws[0], lows[0], laws[1], lows[1], laws[2], lows[2], partitions, alpha[0], alpha[1]
        )
        tails = _tails(weights)
        for place, share in ((0, 1.0 - border), (2, border)):
            out[row, place] = at(share, weights, tails, low, total, alpha[0], alpha[1])[2]
        out[row, 0] = 1.0 - out[row, 0]
        if kinds == 3:
            both, b = convolve(laws[0], laws[1]), alpha[0] + alpha[1]
            weights, low, total = elevate(
                laws[2], lows[2], both, lows[0] + lows[1], nothing, 0, partitions, alpha[2], b
            )
            found = at(0.5, weights, _tails(weights), low, total, alpha[2], b)
            out[row, 1] = 1.0 - found[2]
    return out
