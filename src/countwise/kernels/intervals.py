"""Ranges of the most probable values, for many whole numbers at once."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner

SAME = 1e-9  # probabilities nearer to each other than this, relatively, differ by rounding
ENOUGH = 1e-12  # a range that lacks so little of its level is long enough
STEEPEST = 300.0  # a noise that falls by more than e to this falls by so much
END = 1e-12  # of the largest weight: what is below ends a law


@compiled
def highest(values: FloatArray, offsets: IntArray, level: float) -> tuple[IntArray, IntArray]:
    """First and last place, in the window of each, of the most probable values that hold a level.

    Of values that are as probable up to rounding the first one is taken first.
    """
    first, last = np.empty((2, offsets.size - 1), np.int64)
    for i in range(first.size):
        weights = values[offsets[i] : offsets[i + 1]]
        enough = (level - ENOUGH) * weights.sum()
        order = np.argsort(-np.rint(np.log(weights) / SAME), kind="mergesort")
        reached, first[i], last[i] = 0.0, weights.size, -1
        for place in order:
            if reached >= enough and last[i] >= 0:
                break
            reached += weights[place]
            first[i], last[i] = min(first[i], place), max(last[i], place)
    return first, last


@inner
def own_slope(slopes: FloatArray, away: int) -> float:
    """log P(away + 1) - log P(away) of a symmetric law, from its slopes at 0, 1, …"""
    if away >= 0:
        return float(slopes[min(away, slopes.size - 1)])
    return float(-slopes[min(-away - 1, slopes.size - 1)])


@inner
def top(slopes: FloatArray, noisy: int, mean: float, rate: float, least: int) -> int:
    """The x from `least` on where P(noisy - x)·normal(x) is largest, the smallest if several."""
    low, high = noisy, noisy
    if rate > 0.0:
        low, high = min(noisy, int(np.floor(mean))), max(noisy, int(np.ceil(mean)))
    low, high = max(low, least), max(high, least)
    while low < high:
        middle = (low + high) // 2
        if own_slope(slopes, middle - noisy) > rate * (middle - mean + 0.5) + SAME:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def tops(noisy: IntArray, slopes: FloatArray, means: FloatArray, variances: FloatArray) -> IntArray:
    """Where the laws P(noisy - x)·normal(x; mean, variance) are largest, for positive variances."""
    result = np.empty(noisy.size, np.int64)
    for i in range(noisy.size):
        result[i] = top(slopes, noisy[i], means[i], 1.0 / variances[i], np.iinfo(np.int64).min)
    return result


@compiled
def beside_normal(
    noisy: IntArray,
    slopes: FloatArray,
    means: FloatArray,
    variances: FloatArray,
    least: IntArray,
    level: float,
) -> tuple[IntArray, IntArray]:
    """Ranges of the laws P(noisy - x)·normal(x; mean, variance) on x = least, least + 1, …

    `slopes` are those of the noise at 0, 1, …, going on as the last one; there are none where a
    count has no noise. Both factors are log-concave, so the most probable values are neighbours.
    """
    lows, highs = np.empty((2, noisy.size), np.int64)
    away = np.exp(np.maximum(slopes, -STEEPEST))
    near = 1.0 / away
    for i in range(noisy.size):
        if slopes.size == 0 or variances[i] == 0.0:
            known = noisy[i] if slopes.size == 0 else int(np.rint(means[i]))
            lows[i], highs[i] = max(known, least[i]), max(known, least[i])
            continue
        rate = 1.0 / variances[i]
        peak = top(slopes, noisy[i], means[i], rate, least[i])
        lows[i], highs[i] = around(
            away, near, noisy[i], means[i] - peak, rate, peak, least[i], level
        )
    return lows, highs


@inner
def around(
    away: FloatArray,
    near: FloatArray,
    noisy: int,
    mean: float,
    rate: float,
    peak: int,
    least: int,
    level: float,
) -> tuple[int, int]:
    """The range around a peak, of which `mean` is so far; the ratios of the noise are given."""
    fall = np.exp(-rate)
    first_up, first_down = np.exp(rate * (mean - 0.5)), np.exp(-rate * (mean + 0.5))
    total = 1.0
    x, weight, bend = peak, 1.0, first_up
    while weight > END * total:
        weight *= ratio(away, near, x - noisy) * bend
        x, bend, total = x + 1, bend * fall, total + weight
    x, weight, bend = peak, 1.0, first_down
    while weight > END * total and x > least:
        weight *= ratio(near, away, x - 1 - noisy) * bend
        x, bend, total = x - 1, bend * fall, total + weight
    low, high, reached, enough = peak, peak, 1.0, (level - ENOUGH) * total
    up = ratio(away, near, high - noisy) * first_up
    down = ratio(near, away, low - 1 - noisy) * first_down if low > least else 0.0
    while reached < enough and max(up, down) > 0.0:
        if down >= up * (1.0 - SAME):
            low, reached, first_down = low - 1, reached + down, first_down * fall
            down = down * ratio(near, away, low - 1 - noisy) * first_down if low > least else 0.0
        else:
            high, reached, first_up = high + 1, reached + up, first_up * fall
            up *= ratio(away, near, high - noisy) * first_up
    return low, high


@inner
def ratio(right: FloatArray, left: FloatArray, k: int) -> float:
    """P(k + 1)/P(k) for the falls of a symmetric law to the right, and their inverses."""
    if k >= 0:
        return float(right[min(k, right.size - 1)])
    return float(left[min(-k - 1, left.size - 1)])
