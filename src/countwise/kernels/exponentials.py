"""Exponentials of many numbers at once, the same bits for a number wherever it stands."""

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.compilation import compiled_with_fusion

LARGEST, SMALLEST = 700.0, -700.0
LOG2_E = 1.4426950408889634
LOG_2, LOG_2_REST = 0.6931471803691238, 1.9082149292705877e-10
SHIFT = 6755399441055744.0  # 1.5·2^52: adding it rounds to a whole number, kept in the low bits
"""e^x = 2^k·e^f with k whole and |f| <= log(2)/2; the series of e^f to f^13 is good to 1e-17."""


@compiled_with_fusion
def exponentials(x: FloatArray, size: int) -> None:
    """The first numbers become their exponentials, within ±700, to about 1e-16 of each."""
    powers = np.empty(size)
    bits = powers.view(np.int64)
    for r in range(size):
        at = min(max(x[r], SMALLEST), LARGEST)
        shifted = at * LOG2_E + SHIFT
        k = shifted - SHIFT
        powers[r] = shifted
        f = (at - k * LOG_2) - k * LOG_2_REST
        e = f * (1 / 6227020800) + 1 / 479001600
        e = e * f + 1 / 39916800
        e = e * f + 1 / 3628800
        e = e * f + 1 / 362880
        e = e * f + 1 / 40320
        e = e * f + 1 / 5040
        e = e * f + 1 / 720
        e = e * f + 1 / 120
        e = e * f + 1 / 24
        e = e * f + 1 / 6
        e = e * f + 0.5
        e = e * f + 1.0
        x[r] = e * f + 1.0
    for r in range(size):
        bits[r] = (bits[r] + 1023) << 52
    for r in range(size):
        x[r] *= powers[r]
