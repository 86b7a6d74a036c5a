"""Posterior of a ratio of Dirichlet proportions as one row of Beta laws.

Counts (s, t, e) add up to M and have weight first(s)·second(t)·others(e). Given them, the ratio
r = p_first/(p_first + p_second) is Beta(a+s, b+t). A Beta law is the average of what it becomes
after one more draw from its own urn,

    Beta(a, b) = a/(a+b)·Beta(a+1, b) + b/(a+b)·Beta(a, b+1),

so all laws with a smaller s+t are moved up to the largest, N, and the two-dimensional mixture
is the mixture over k of Beta(a+k, b+N-k). The weights are sums of positive terms only.

The counts are independent integers coupled through their sum, and outcomes are joined by the
convolution of the coupled sums (tails kept, so no Fourier transform). The last step is not
`coupled.marginals`: r needs the joint law of s and t, of which those are the margins, and `elevate`
sums it on the way up. Where a margin is all there is, in the share of a single outcome, the
weights are those marginals.
"""

from math import exp, lgamma, log, log1p, sqrt

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels import convolution
from countwise.kernels.compilation import compiled_like_numpy

TINY = 1e-300
GRID = 32
# Places in a summary.
MODE, MEDIAN, LOWER, UPPER, ABOVE_HALF, MEAN, DEVIATION = 0, 1, 2, 3, 4, 5, 6


@compiled_like_numpy
def category(noisy: float, rate: float, prior: float, low: int, high: int) -> FloatArray:
    """exp(-rate·|noisy - x|)·Γ(prior + x)/x! for x = low..high, scaled to a largest value of 1."""
    out = np.empty(high - low + 1)
    rising = 0.0 if prior == 1.0 else lgamma(prior + low) - lgamma(low + 1.0)
    top = -np.inf
    for i in range(out.size):
        x = low + i
        out[i] = rising - rate * abs(noisy - x)
        top = max(top, out[i])
        if prior != 1.0:
            rising += log((prior + x) / (x + 1.0))
    for i in range(out.size):
        out[i] = exp(out[i] - top)
    return out


@compiled_like_numpy
def convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    """All sums of a product, scaled to a largest value of 1."""
    out = np.empty(a.size + b.size - 1)
    convolution.convolve(convolution.empty_circle(1), a, b, out, 0.0)
    top = out.max()
    if top > 0.0:
        out /= top
    return out


@compiled_like_numpy
def elevate(
    first: FloatArray,
    first_low: int,
    second: FloatArray,
    second_low: int,
    others: FloatArray,
    others_low: int,
    partitions: int,
    a: float,
    b: float,
) -> tuple[FloatArray, int, int]:
    """The weights of Beta(a+k, b+N-k) for k from a first value on, that value, and N."""
    least = max(first_low + second_low, partitions - others_low - others.size + 1)
    most = min(first_low + first.size - 1 + second_low + second.size - 1, partitions - others_low)
    out = np.zeros(first.size + max(most - least, 0))
    top = -1  # the last place that carries weight
    for n in range(least, most + 1):
        if top >= 0:
            whole = 1.0 / (a + b + n - 1)
            out[top + 1] = out[top] * (a + first_low + top) * whole
            for i in range(top, 0, -1):
                s = first_low + i
                stay, come = b + n - 1 - s, a + s - 1
                out[i] = (out[i] * stay + out[i - 1] * come) * whole
            out[0] *= (b + n - 1 - first_low) * whole
            top += 1
        error = others[partitions - n - others_low]
        begin = max(0, n - second_low - second.size + 1 - first_low)
        end = min(first.size - 1, n - second_low - first_low)
        for i in range(begin, end + 1):
            out[i] += first[i] * second[n - first_low - i - second_low] * error
        top = max(top, end)
    out = out[: max(most, least) - first_low + 1]  # a count is at most the sum
    total = out.sum()
    if total > 0.0:
        out /= total
    return out, first_low, max(most, least)


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
    """The x with P(r <= x) = q: Newton's method inside a shrinking bracket."""
    left, right, x = 0.0, 1.0, min(max(guess, 1e-9), 1.0 - 1e-9)
    for _ in range(200):
        density, _, cumulative = at(x, weights, tails, low, total, a, b)
        if cumulative < q:
            left = x
        else:
            right = x
        following = x - (cumulative - q) / density if density > 0.0 else -1.0
        if not left < following < right:
            following = 0.5 * (left + right)
        if abs(following - x) <= 1e-13 * x or right - left <= 1e-15:
            return following
        x = following
    return x


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
    """Where the density is largest: the best point of a grid, then the root of its derivative."""
    start, stop = max(mean - 4.0 * deviation, 1e-12), min(mean + 4.0 * deviation, 1.0 - 1e-12)
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
        return 0.0 if place <= 1 and start <= 1e-12 else left
    if fall >= 0.0:
        return 1.0 if place >= GRID - 1 and stop >= 1.0 - 1e-12 else right
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
    noisy: FloatArray, partitions: int, rate: float, alpha: FloatArray, reach: float
) -> FloatArray:
    """For each row of noisy counts Pr(r > 1/2) and Pr(share of errors > 1/2).

    Two columns are the outcomes of r alone; a third is the errors.
    """
    count, kinds = noisy.shape
    out = np.zeros((count, 2))
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
        found = at(0.5, weights, _tails(weights), low, total, alpha[0], alpha[1])
        out[row, 0] = 1.0 - found[2]
        if kinds == 3:
            both, b = convolve(laws[0], laws[1]), alpha[0] + alpha[1]
            weights, low, total = elevate(
                laws[2], lows[2], both, lows[0] + lows[1], nothing, 0, partitions, alpha[2], b
            )
            found = at(0.5, weights, _tails(weights), low, total, alpha[2], b)
            out[row, 1] = 1.0 - found[2]
    return out
