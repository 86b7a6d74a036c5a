"""Ordinary least squares in many groups of rows at once."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, compiled_like_numpy
from countwise.kernels.normal_equations import (
    OK,
    SINGULAR,
    SMALL,
    UNSETTLED,
    factorise,
    finite,
    first_row,
    solve,
)
from countwise.kernels.row_blocks import (
    PITCH,
    ROWS,
    TILE,
    add_gram,
    add_score,
    clear,
    fill,
    padded,
    predict,
)

WEAK_PIVOT = 1e-4
"""Of its square a column or residual: below, four digits are lost, and one correction is made."""


@compiled
def _absorb(
    block: FloatArray,
    response: FloatArray,
    ones: FloatArray,
    gram: FloatArray,
    right: FloatArray,
) -> float:
    """Add a block to X'X and X'y; its y'y."""
    add_gram(block, ones, gram)
    add_score(block, response, right)
    squares = 0.0
    for r in range(ROWS):
        squares += response[r] * response[r]
    return squares


@compiled
def _sums(
    x: FloatArray,
    y: FloatArray,
    groups: IntArray,
    order: IntArray,
    starts: IntArray,
    first: int,
    gathered: bool,
    origins: FloatArray,
    grams: FloatArray,
    rights: FloatArray,
    squares: FloatArray,
) -> None:
    """X'X, X'y and y'y of the groups from first on.

    Gathered, each group's rows are taken one group after the other; else all rows as they lie in
    memory, with a block open for each group, which is faster while all blocks are in the cache.
    The blocks come out the same.
    """
    count, width, k = squares.size, grams.shape[1], x.shape[1]
    ones = np.ones(ROWS)
    if gathered:
        block, response = np.zeros((width, PITCH)), np.zeros(ROWS)
        for g in range(count):
            for start in range(starts[first + g], starts[first + g + 1], ROWS):
                rows = order[start : min(start + ROWS, starts[first + g + 1])]
                fill(block, response, x, y, rows, origins[first + g])
                squares[g] += _absorb(block, response, ones, grams[g], rights[g])
        return
    blocks, responses = np.zeros((count, width, PITCH)), np.zeros((count, ROWS))
    filled = np.zeros(count, dtype=np.int64)
    for i in range(groups.size):
        g = groups[i] - first
        if g < 0 or g >= count:
            continue
        place, block, origin = filled[g], blocks[g], origins[groups[i]]
        for j in range(k):
            block[j, place] = x[i, j] - origin[j]
        responses[g, place] = y[i]
        filled[g] = place + 1
        if place == ROWS - 1:
            squares[g] += _absorb(block, responses[g], ones, grams[g], rights[g])
            filled[g] = 0
    for g in range(count):
        clear(blocks[g], responses[g], filled[g])
        squares[g] += _absorb(blocks[g], responses[g], ones, grams[g], rights[g])


@compiled
def _residuals(
    x: FloatArray,
    y: FloatArray,
    rows: IntArray,
    origin: FloatArray,
    solution: FloatArray,
    score: FloatArray,
) -> float:
    """Sum of squared residuals; score becomes Σ x·residual."""
    block, values, line = np.zeros((solution.size, PITCH)), np.zeros(ROWS), np.zeros(ROWS)
    squares = 0.0
    score[:] = 0.0
    for start in range(0, rows.size, ROWS):
        fill(block, values, x, y, rows[start : start + ROWS], origin)
        predict(block, solution, line)
        for r in range(ROWS):
            values[r] -= line[r]
            squares += values[r] * values[r]
        add_score(block, values, score)
    return squares


@compiled_like_numpy
def least_squares(
    x: FloatArray,
    y: FloatArray,
    groups: IntArray,
    order: IntArray,
    starts: IntArray,
    first: int,
    last: int,
    gathered: bool,
    intercept: bool,
    origins: FloatArray,
    coefficients: FloatArray,
    factors: FloatArray,
    scales: FloatArray,
    dispersion: FloatArray,
    status: IntArray,
) -> None:
    """Ordinary least squares of y on x in groups first..last-1.

    Row i of group g is x[order[i]] for starts[g] <= i < starts[g + 1]. With an intercept (column
    0) the columns are measured from the group's row in origins. factors and scales hold the
    factored normal equations, dispersion the residual variance with divisor n - k.
    """
    k, count = x.shape[1], last - first
    width = padded(k, TILE)
    grams, rights = np.zeros((count, width, width)), np.zeros((count, width))
    totals = np.zeros(count)
    for g in range(first, last):
        first_row(x, order[starts[g] : starts[g + 1]], intercept, origins[g])
    _sums(x, y, groups, order, starts, first, gathered, origins, grams, rights, totals)
    solution, score = np.zeros(width), np.zeros(width)
    for g in range(first, last):
        size = starts[g + 1] - starts[g]
        if size <= k:
            status[g] = SMALL
            continue
        factor, scale, right = factors[g], scales[g], rights[g - first]
        factor[:] = grams[g - first, :k, :k]
        pivot = factorise(factor, scale, k, intercept)
        if pivot == 0.0:
            status[g] = SINGULAR
            continue
        solution[:] = right
        solve(factor, scale, solution, k)
        squares = total = totals[g - first]
        for i in range(k):
            squares -= solution[i] * right[i]
        if pivot < WEAK_PIVOT or squares < WEAK_PIVOT * total:
            # Cancellation: correct by the residuals, then measure them.
            rows = order[starts[g] : starts[g + 1]]
            _residuals(x, y, rows, origins[g], solution, score)
            solve(factor, scale, score, k)
            for i in range(k):
                solution[i] += score[i]
            squares = _residuals(x, y, rows, origins[g], solution, score)
        coefficients[g] = solution[:k]
        dispersion[g] = squares / (size - k)
        status[g] = OK if finite(coefficients[g]) and squares < np.inf else UNSETTLED
