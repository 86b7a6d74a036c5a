"""Rows of many groups in blocks of columns, and sums of products over a block.

A block holds up to ROWS rows of one group, turned so that a column is contiguous. What is not
filled is zero, and columns of zeros make their number a multiple of TILE, so that sums run in
registers over tiles of columns, always of the same length.

The compiler may group the terms of a sum into lanes and fuse a product with a sum. How it does is
settled when it compiles, as lengths are constant, and a group's rows enter their blocks in their
order: so a group's sums are functions of its own rows, to the last bit, wherever in memory they
lie.
"""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, compiled_in_lanes

ROWS = 128  # a block of 20 columns then fits the first cache
TILE = 4  # 4 by 4 sums fit the registers
NEAR = 16  # rows copied before they are turned
PITCH = ROWS + 8  # keeps equal places of neighbouring columns apart in the cache


@compiled
def group_rows(groups: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Rows by group in their order, and where each group starts; negative groups are left out."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for g in groups:
        if g >= 0:
            starts[g + 1] += 1
    for g in range(count):
        starts[g + 1] += starts[g]
    place = starts[:-1].copy()
    order = np.empty(starts[count], dtype=np.int64)
    for i in range(groups.size):
        if groups[i] >= 0:
            order[place[groups[i]]] = i
            place[groups[i]] += 1
    return order, starts


@compiled
def padded(size: int, step: int) -> int:
    """The next multiple of a step."""
    return (size + step - 1) // step * step


@compiled
def fill(
    block: FloatArray,
    response: FloatArray,
    x: FloatArray,
    y: FloatArray,
    rows: IntArray,
    origin: FloatArray,
) -> None:
    """Put rows, measured from an origin, into a block: first as they lie in memory, then turned."""
    k = x.shape[1]
    near = np.empty((NEAR, k))
    for start in range(0, rows.size, NEAR):
        some = min(NEAR, rows.size - start)
        for r in range(some):
            row = rows[start + r]
            for j in range(k):
                near[r, j] = x[row, j] - origin[j]
            response[start + r] = y[row]
        for j in range(k):
            for r in range(some):
                block[j, start + r] = near[r, j]
    clear(block, response, rows.size)


@compiled
def clear(block: FloatArray, response: FloatArray, first: int) -> None:
    """Zeros in the places from first on."""
    block[:, first:] = 0.0
    response[first:] = 0.0


@compiled_in_lanes
def _add_tile(block: FloatArray, weights: FloatArray, gram: FloatArray, i: int, j: int) -> None:
    """gram[i + a, j + b] += Σ weight·column_{i+a}·column_{j+b} for a, b < 4."""
    x0, x1, x2, x3 = block[i], block[i + 1], block[i + 2], block[i + 3]
    y0, y1, y2, y3 = block[j], block[j + 1], block[j + 2], block[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for r in range(ROWS):
        w = weights[r]
        p0, p1, p2, p3 = w * x0[r], w * x1[r], w * x2[r], w * x3[r]
        q0, q1, q2, q3 = y0[r], y1[r], y2[r], y3[r]
        s00, s01, s02, s03 = s00 + p0 * q0, s01 + p0 * q1, s02 + p0 * q2, s03 + p0 * q3
        s10, s11, s12, s13 = s10 + p1 * q0, s11 + p1 * q1, s12 + p1 * q2, s13 + p1 * q3
        s20, s21, s22, s23 = s20 + p2 * q0, s21 + p2 * q1, s22 + p2 * q2, s23 + p2 * q3
        s30, s31, s32, s33 = s30 + p3 * q0, s31 + p3 * q1, s32 + p3 * q2, s33 + p3 * q3
    for a, (t0, t1, t2, t3) in enumerate(
        ((s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33))
    ):
        row = gram[i + a]
        row[j] += t0
        row[j + 1] += t1
        row[j + 2] += t2
        row[j + 3] += t3


@compiled
def add_gram(block: FloatArray, weights: FloatArray, gram: FloatArray) -> None:
    """gram += Σ weight·x·x' over a block, in the lower triangle of tiles."""
    for i in range(0, gram.shape[0], TILE):
        for j in range(0, i + 1, TILE):
            _add_tile(block, weights, gram, i, j)


@compiled_in_lanes
def add_score(block: FloatArray, values: FloatArray, score: FloatArray) -> None:
    """score += Σ value·x over a block."""
    for j in range(0, score.size, TILE):
        x0, x1, x2, x3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        s0 = s1 = s2 = s3 = 0.0
        for r in range(ROWS):
            v = values[r]
            s0, s1, s2, s3 = s0 + v * x0[r], s1 + v * x1[r], s2 + v * x2[r], s3 + v * x3[r]
        score[j] += s0
        score[j + 1] += s1
        score[j + 2] += s2
        score[j + 3] += s3


@compiled_in_lanes
def predict(block: FloatArray, solution: FloatArray, line: FloatArray) -> None:
    """line becomes x'solution, row by row of a block."""
    line[:] = 0.0
    for j in range(0, solution.size, TILE):
        b0, b1, b2, b3 = solution[j], solution[j + 1], solution[j + 2], solution[j + 3]
        x0, x1, x2, x3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        for r in range(ROWS):
            line[r] += (b0 * x0[r] + b1 * x1[r]) + (b2 * x2[r] + b3 * x3[r])
