"""Columns of a design: logarithms and scales, each value by itself."""

from collections.abc import Sequence
from math import log

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.compilation import compiled
from countwise.threads import run_parts

BLOCK = 4096


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
def _put(
    column: FloatArray, middle: float, half: float, out: FloatArray, j: int, first: int, last: int
) -> None:
    for i in range(first, last):
        out[i, j] = (column[i] - middle) / half


def standardised(
    columns: Sequence[FloatArray], middles: FloatArray, halves: FloatArray
) -> FloatArray:
    """The rows of (column - middle)/half, side by side, in blocks of rows that fit a cache."""
    out = np.empty((len(columns[0]), len(columns)))

    def work(first: int, last: int) -> None:
        for start in range(first, last, BLOCK):
            stop = min(start + BLOCK, last)
            for j, (column, middle, half) in enumerate(zip(columns, middles, halves, strict=True)):
                _put(column, middle, half, out, j, start, stop)

    run_parts(work, len(out), alone=len(out) <= BLOCK)
    return out
