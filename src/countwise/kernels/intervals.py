"""Ranges of the most probable values, for many whole numbers at once."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner

SAME = 1e-9  # probabilities nearer to each other than this, relatively, differ by rounding
ENOUGH = 1e-12  # a range that lacks so little of its level is long enough
END = 1e-11  # of the largest weight: what is below ends a law


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
    for i in range(noisy.size):
        if slopes.size == 0 or variances[i] == 0.0:
            known = noisy[i] if slopes.size == 0 else int(np.rint(means[i]))
            lows[i], highs[i] = max(known, least[i]), max(known, least[i])
            continue
        rate = 1.0 / variances[i]
        peak = top(slopes, noisy[i], means[i], rate, least[i])
        total = 1.0
        for side in (-1, 1):
            x, weight = peak, 1.0
            while weight > END * total and (side > 0 or x > least[i]):
                weight *= step(slopes, noisy[i], means[i], rate, x, side)
                x += side
                total += weight
        low, high, reached, enough = peak, peak, 1.0, (level - ENOUGH) * total
        down = step(slopes, noisy[i], means[i], rate, low, -1) if low > least[i] else 0.0
        up = step(slopes, noisy[i], means[i], rate, high, 1)
        while reached < enough and max(up, down) > 0.0:
            if down >= up * (1.0 - SAME):
                low, reached = low - 1, reached + down
                more = step(slopes, noisy[i], means[i], rate, low, -1)
                down = down * more if low > least[i] else 0.0
            else:
                high, reached = high + 1, reached + up
                up *= step(slopes, noisy[i], means[i], rate, high, 1)
        lows[i], highs[i] = low, high
    return lows, highs


@inner
def step(slopes: FloatArray, noisy: int, mean: float, rate: float, x: int, side: int) -> float:
    """The weight of x + side as a multiple of that of x."""
    if side > 0:
        return float(np.exp(own_slope(slopes, x - noisy) - rate * (x - mean + 0.5)))
    return float(np.exp(-own_slope(slopes, x - 1 - noisy) + rate * (x - mean - 0.5)))
