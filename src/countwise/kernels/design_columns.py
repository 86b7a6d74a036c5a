"""Columns of a design: logarithms and scales, each value by itself."""

from collections.abc import Sequence
from math import log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled
from countwise.threads import run_parts

BLOCK = 4096  # rows of a task: the same blocks, and sums, with any number of threads


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
def _put_one(
    x: FloatArray, middles: FloatArray, halves: FloatArray, out: FloatArray, j: int, rows: IntArray
) -> None:
    for i in range(rows[0], rows[1]):
        out[i, j] = (x[i] - middles[j]) / halves[j]


@compiled
def _put_four(
    x0: FloatArray,
    x1: FloatArray,
    x2: FloatArray,
    x3: FloatArray,
    middles: FloatArray,
    halves: FloatArray,
    out: FloatArray,
    j: int,
    rows: IntArray,
) -> None:
    """Columns j to j + 3, so that a cache line of the rows is filled while it is near."""
    m0, m1, m2, m3 = middles[j], middles[j + 1], middles[j + 2], middles[j + 3]
    h0, h1, h2, h3 = halves[j], halves[j + 1], halves[j + 2], halves[j + 3]
    for i in range(rows[0], rows[1]):
        row = out[i]
        row[j], row[j + 1] = (x0[i] - m0) / h0, (x1[i] - m1) / h1
        row[j + 2], row[j + 3] = (x2[i] - m2) / h2, (x3[i] - m3) / h3


def standardised(
    columns: Sequence[FloatArray], middles: FloatArray, halves: FloatArray
) -> FloatArray:
    """The rows of (column - middle)/half, side by side, in blocks of rows that fit a cache."""
    k = len(columns)
    out = np.empty((len(columns[0]), k))
    fours = sorted({*range(0, k - 3, 4), k - 4}) if k >= 4 else []  # the last may overlap

    def work(first: int, last: int) -> None:
        for start in range(first, last, BLOCK):
            rows = np.array([start, min(start + BLOCK, last)])
            for j in fours:
                x0, x1, x2, x3 = columns[j : j + 4]
                _put_four(x0, x1, x2, x3, middles, halves, out, j, rows)
            for j in range(0 if fours else k):
                _put_one(columns[j], middles, halves, out, j, rows)

    run_parts(work, len(out), alone=len(out) <= BLOCK)
    return out
