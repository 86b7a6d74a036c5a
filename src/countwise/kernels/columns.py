"""Columns of a design: logarithms and scales, each value by itself."""

from math import log

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.compilation import compiled


@compiled
def _logs(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.size):
        out[i] = log(x[i])


def natural_log(x: FloatArray) -> FloatArray:
    """log x, one value after the other: vectorised logarithms may differ by position."""
    x = np.asarray(x, dtype=np.float64)
    out = np.empty_like(x)
    _logs(x.ravel(), out.ravel())
    return out


@compiled
def standardised(columns: FloatArray, middles: FloatArray, halves: FloatArray) -> FloatArray:
    """The rows of (column - middle)/half, turned in blocks that fit the nearest cache."""
    k, n = columns.shape
    out = np.empty((n, k))
    for start in range(0, n, 64):
        for j in range(k):
            for i in range(start, min(start + 64, n)):
                out[i, j] = (columns[j, i] - middles[j]) / halves[j]
    return out
