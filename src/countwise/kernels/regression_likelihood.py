"""Logistic and Poisson regressions in many groups of rows at once, by Newton's method."""

from math import log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, compiled_in_lanes, compiled_like_numpy
from countwise.kernels.exponentials import exponentials
from countwise.kernels.normal_equations import (
    OK,
    SINGULAR,
    SMALL,
    UNSETTLED,
    factorise,
    first_row,
    solve,
)
from countwise.kernels.row_blocks import (
    PITCH,
    ROWS,
    TILE,
    add_gram,
    add_score,
    fill,
    padded,
    predict,
)

STEPS = 25  # of Newton: data without a maximum, which are separated, are given up then
SETTLED, ROUGHLY = 1e-6, 1e-2  # how small the last step is, of a fit and of a start
LOGISTIC, POISSON = 0, 1  # families, as kernels take them


@compiled_in_lanes
def _logistic(y: FloatArray, line: FloatArray, weights: FloatArray, residuals: FloatArray) -> float:
    """Weights and residuals of a block at its linear predictor; minus the log-likelihood.

    Each factor 1 + e^-|line| is at most 2, so the product of a block does not overflow.
    """
    for r in range(ROWS):
        weights[r] = -abs(line[r])
    exponentials(weights, ROWS)
    loss, product = 0.0, 1.0
    for r in range(ROWS):
        small = weights[r]
        share = 1.0 / (1.0 + small)
        product *= 1.0 + small
        loss += max(line[r], 0.0) - y[r] * line[r]
        residuals[r] = y[r] - (share if line[r] >= 0.0 else small * share)
        weights[r] = small * share * share
    return loss + log(product)


@compiled_in_lanes
def _poisson(y: FloatArray, line: FloatArray, weights: FloatArray, residuals: FloatArray) -> float:
    """As `_logistic`, for counts."""
    for r in range(ROWS):
        weights[r] = line[r]
    exponentials(weights, ROWS)
    loss = 0.0
    for r in range(ROWS):
        loss += weights[r] - y[r] * line[r]
        residuals[r] = y[r] - weights[r]
    return loss


@compiled_like_numpy
def _pass(
    blocks: FloatArray,
    responses: FloatArray,
    count: int,
    family: int,
    solution: FloatArray,
    gram: FloatArray,
    score: FloatArray,
) -> float:
    """Information, score and minus the log-likelihood at a solution, over the first blocks.

    Padding adds the same to every loss, and nothing to the rest.
    """
    line, weights, residuals = np.empty(ROWS), np.empty(ROWS), np.empty(ROWS)
    gram[:] = 0.0
    score[:] = 0.0
    loss = 0.0
    for b in range(count):
        block, y = blocks[b], responses[b]
        predict(block, solution, line)
        if family == POISSON:
            loss += _poisson(y, line, weights, residuals)
        else:
            loss += _logistic(y, line, weights, residuals)
        add_score(block, residuals, score)
        add_gram(block, weights, gram)
    return loss


@compiled
def _sizes(blocks: FloatArray, count: int, rows: int, sizes: FloatArray) -> None:
    """The root mean square of each column."""
    for j in range(sizes.size):
        total = 0.0
        for b in range(count):
            for r in range(ROWS):
                total += blocks[b, j, r] * blocks[b, j, r]
        sizes[j] = np.sqrt(total / rows)


@compiled_like_numpy
def _climb(
    blocks: FloatArray,
    responses: FloatArray,
    count: int,
    family: int,
    solution: FloatArray,
    gram: FloatArray,
    scale: FloatArray,
    sizes: FloatArray,
    intercept: bool,
    settled: float,
) -> int:
    """Newton's method over the first blocks, halving steps that lose; separated data never settle.

    Far along, a step leaves an error of about its square. Steps are measured on the linear
    predictor: a coefficient times its column's size, whatever scale the column is on.
    """
    k = scale.size
    score, step, before = np.empty(solution.size), np.zeros(k), np.zeros(k)
    best = np.inf
    for _ in range(STEPS):
        loss = _pass(blocks, responses, count, family, solution, gram, score)
        if not loss <= best + 1e-9 * (1.0 + abs(best)):
            for j in range(k):
                step[j] *= 0.5
                solution[j] = before[j] + step[j]
            continue
        best = loss
        if factorise(gram, scale, k, intercept) == 0.0:
            return SINGULAR
        moved, length = 0.0, 1.0
        solve(gram, scale, score, k)
        for j in range(k):
            step[j] = score[j]
            before[j] = solution[j]
            solution[j] += step[j]
            moved = max(moved, abs(step[j]) * sizes[j])
            length = max(length, abs(solution[j]) * sizes[j])
        if not length < 1e100:
            return UNSETTLED
        if moved <= settled * length:
            return OK
    return UNSETTLED


@compiled_like_numpy
def likelihood(
    x: FloatArray,
    y: FloatArray,
    order: IntArray,
    starts: IntArray,
    first: int,
    last: int,
    family: int,
    intercept: bool,
    origins: FloatArray,
    coefficients: FloatArray,
    factors: FloatArray,
    scales: FloatArray,
    dispersion: FloatArray,
    status: IntArray,
) -> None:
    """Logistic or Poisson regression of y on x in groups first..last-1.

    The start is flat; with an intercept (column 0), columns are measured from the group's row in
    origins, and a Poisson start is the log of the mean. A
    large group is first fitted on its first eighth, and goes on from there if that settled.
    """
    k = x.shape[1]
    width = padded(k, TILE)
    largest = 0
    for g in range(first, last):
        largest = max(largest, (starts[g + 1] - starts[g] + ROWS - 1) // ROWS)
    blocks, responses = np.zeros((largest, width, PITCH)), np.zeros((largest, ROWS))
    solution, gram, sizes = np.zeros(width), np.zeros((width, width)), np.zeros(k)
    for g in range(first, last):
        rows = order[starts[g] : starts[g + 1]]
        dispersion[g] = 1.0
        if rows.size <= k:
            status[g] = SMALL
            continue
        first_row(x, rows, intercept, origins[g])
        count, total = padded(rows.size, ROWS) // ROWS, 0.0
        for b in range(count):
            some = rows[b * ROWS : (b + 1) * ROWS]
            fill(blocks[b], responses[b], x, y, some, origins[g])
            for r in range(some.size):
                total += responses[b, r]
        _sizes(blocks, count, rows.size, sizes)
        if total <= 0.0 or (family == LOGISTIC and total >= rows.size):
            status[g] = UNSETTLED
            continue
        flat = log(total / rows.size) if family == POISSON and intercept else 0.0
        solution[:] = 0.0
        solution[0] = flat
        scale, part = scales[g], count // 8
        if part * ROWS > 20 * k and (
            _climb(
                blocks, responses, part, family, solution, gram, scale, sizes, intercept, ROUGHLY
            )
            != OK
        ):
            solution[:] = 0.0
            solution[0] = flat
        status[g] = _climb(
            blocks, responses, count, family, solution, gram, scale, sizes, intercept, SETTLED
        )
        coefficients[g] = solution[:k]
        factors[g] = gram[:k, :k]
