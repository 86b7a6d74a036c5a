"""Regressions of many groups of rows at once, each a function of its own rows, to the last bit.

Row i of group g is x[order[i]] for starts[g] <= i < starts[g + 1]. Every sum runs over a group's
rows in their order, in blocks of four, without reordering by the compiler (no fast-math), so
that a group's result can not depend on where in memory its rows lie or on any other group.
Ranges of groups can be worked on by several threads at once.

Statuses: OK, SMALL (no more rows than columns), SINGULAR (a column that the ones before it
explain to 1e-9 of its square, or no variation), UNSETTLED (separated data, no convergence within
25 steps, or numbers that overflow).
"""

from math import exp, log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, compiled_like_numpy

OK, SMALL, SINGULAR, UNSETTLED = 0, 1, 2, 3
LEAST_PIVOT = 1e-9
WEAK_PIVOT = 1e-4
STEPS = 25
SETTLED = 1e-6
LOGISTIC, POISSON = 0, 1


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


@compiled_like_numpy
def _add_block(gram: FloatArray, block: FloatArray, weights: FloatArray, k: int) -> None:
    """gram[i, j] += Σ over the block's four rows of weight·x_i·x_j, for j <= i."""
    x0, x1, x2, x3 = block[0], block[1], block[2], block[3]
    for i in range(k):
        row = gram[i]
        a0, a1 = weights[0] * x0[i], weights[1] * x1[i]
        a2, a3 = weights[2] * x2[i], weights[3] * x3[i]
        for j in range(i + 1):
            row[j] += (a0 * x0[j] + a1 * x1[j]) + (a2 * x2[j] + a3 * x3[j])


@compiled_like_numpy
def _factor(gram: FloatArray, scale: FloatArray, k: int) -> float:
    """Cholesky factor in place of the gram matrix scaled to a unit diagonal; its least pivot."""
    least = 1.0
    for i in range(k):
        if not gram[i, i] > 0.0 or gram[i, i] == np.inf:
            return 0.0
        scale[i] = 1.0 / np.sqrt(gram[i, i])
    for i in range(k):
        for j in range(i + 1):
            gram[i, j] *= scale[i] * scale[j]
    for i in range(k):
        for j in range(i):
            total = gram[i, j]
            for m in range(j):
                total -= gram[i, m] * gram[j, m]
            gram[i, j] = total / gram[j, j]
        pivot = 1.0
        for m in range(i):
            pivot -= gram[i, m] * gram[i, m]
        if not pivot > LEAST_PIVOT:
            return 0.0
        least = min(least, pivot)
        gram[i, i] = np.sqrt(pivot)
    return least


@compiled_like_numpy
def _solve(factor: FloatArray, scale: FloatArray, right: FloatArray, k: int) -> None:
    """right becomes the solution of the equations whose scaled factor is given."""
    for i in range(k):
        total = right[i] * scale[i]
        for m in range(i):
            total -= factor[i, m] * right[m]
        right[i] = total / factor[i, i]
    for i in range(k - 1, -1, -1):
        total = right[i]
        for m in range(i + 1, k):
            total -= factor[m, i] * right[m]
        right[i] = total / factor[i, i]
    for i in range(k):
        right[i] *= scale[i]


@compiled_like_numpy
def _finite(values: FloatArray) -> bool:
    largest = 0.0
    for value in values:
        if not abs(value) <= largest:
            largest = abs(value)
    return largest < 1e150


@compiled_like_numpy
def _residuals(
    x: FloatArray, y: FloatArray, rows: IntArray, coefficients: FloatArray, score: FloatArray
) -> float:
    """Sum of squared residuals; score becomes Σ x·residual."""
    k, squares = x.shape[1], 0.0
    score[:] = 0.0
    for row in rows:
        residual = y[row]
        for j in range(k):
            residual -= x[row, j] * coefficients[j]
        squares += residual * residual
        for j in range(k):
            score[j] += residual * x[row, j]
    return squares


@compiled_like_numpy
def _grams(x: FloatArray, y: FloatArray, groups: IntArray, first: int, last: int) -> FloatArray:
    """Sums of products of the columns of x and y in groups first..last-1, in one pass."""
    k = x.shape[1]
    grams = np.zeros((last - first, k + 1, k + 1))
    blocks = np.zeros((last - first, 4, k + 1))
    filled = np.zeros(last - first, dtype=np.int64)
    ones = np.ones(4)
    for i in range(groups.size):
        g = groups[i] - first
        if g < 0 or groups[i] >= last:
            continue
        place = blocks[g, filled[g]]
        for j in range(k):
            place[j] = x[i, j]
        place[k] = y[i]
        filled[g] += 1
        if filled[g] == 4:
            _add_block(grams[g], blocks[g], ones, k + 1)
            filled[g] = 0
    for g in range(last - first):
        blocks[g, filled[g] :] = 0.0
        _add_block(grams[g], blocks[g], ones, k + 1)
    return grams


@compiled_like_numpy
def least_squares(
    x: FloatArray,
    y: FloatArray,
    groups: IntArray,
    order: IntArray,
    starts: IntArray,
    first: int,
    last: int,
    coefficients: FloatArray,
    factors: FloatArray,
    scales: FloatArray,
    dispersion: FloatArray,
    status: IntArray,
) -> None:
    """Ordinary least squares of y on x in groups first..last-1.

    factors and scales hold the factored normal equations, dispersion the residual variance with
    divisor n - k.
    """
    k = x.shape[1]
    grams = _grams(x, y, groups, first, last)
    score = np.empty(k)
    for g in range(first, last):
        gram, rows = grams[g - first], order[starts[g] : starts[g + 1]]
        if rows.size <= k:
            status[g] = SMALL
            continue
        factor, scale, solution = factors[g], scales[g], coefficients[g]
        for i in range(k):
            for j in range(i + 1):
                factor[i, j] = gram[i, j]
            solution[i] = gram[k, i]
        pivot = _factor(factor, scale, k)
        if pivot == 0.0:
            status[g] = SINGULAR
            continue
        _solve(factor, scale, solution, k)
        squares = float(gram[k, k])
        for i in range(k):
            squares -= solution[i] * gram[k, i]
        if pivot < WEAK_PIVOT or squares < WEAK_PIVOT * gram[k, k]:
            # Cancellation: correct by the residuals, then measure them.
            _residuals(x, y, rows, solution, score)
            _solve(factor, scale, score, k)
            for i in range(k):
                solution[i] += score[i]
            squares = _residuals(x, y, rows, solution, score)
        dispersion[g] = squares / (rows.size - k)
        status[g] = OK if _finite(solution) and squares < np.inf else UNSETTLED


@compiled_like_numpy
def _pass(
    x: FloatArray,
    y: FloatArray,
    size: int,
    family: int,
    solution: FloatArray,
    gram: FloatArray,
    score: FloatArray,
) -> float:
    """Information, score and minus the log-likelihood at a solution, over the first rows.

    x and y are padded to whole blocks of four; the padding has weight 0.
    """
    k, loss = x.shape[1], 0.0
    eta, weights, residuals = np.empty(4), np.empty(4), np.empty(4)
    gram[:] = 0.0
    score[:] = 0.0
    for i in range(0, size, 4):
        x0, x1, x2, x3 = x[i], x[i + 1], x[i + 2], x[i + 3]
        e0 = e1 = e2 = e3 = 0.0
        for j in range(k):
            b = solution[j]
            e0 += x0[j] * b
            e1 += x1[j] * b
            e2 += x2[j] * b
            e3 += x3[j] * b
        eta[0], eta[1], eta[2], eta[3] = e0, e1, e2, e3
        product = 1.0
        for r in range(4):
            if i + r >= size:
                weights[r] = residuals[r] = 0.0
                continue
            at = eta[r]
            if family == POISSON:
                mean = exp(min(at, 700.0))
                loss += mean
                weights[r] = mean
            else:
                small = exp(-abs(at))
                share = 1.0 / (1.0 + small)
                mean = share if at >= 0.0 else small * share
                product *= 1.0 + small
                loss += max(at, 0.0)
                weights[r] = small * share * share
            loss -= y[i + r] * at
            residuals[r] = y[i + r] - mean
        loss += log(product)
        r0, r1, r2, r3 = residuals[0], residuals[1], residuals[2], residuals[3]
        for j in range(k):
            score[j] += (r0 * x0[j] + r1 * x1[j]) + (r2 * x2[j] + r3 * x3[j])
        _add_block(gram, x[i : i + 4], weights, k)
    return loss


@compiled_like_numpy
def _climb(
    x: FloatArray,
    y: FloatArray,
    size: int,
    family: int,
    solution: FloatArray,
    factor: FloatArray,
    scale: FloatArray,
) -> int:
    """Newton's method over the first rows, halving steps that lose; separated data never settle.

    Far along, a step of 1e-6 leaves an error of about its square.
    """
    k = x.shape[1]
    score, step, before = np.empty(k), np.zeros(k), np.zeros(k)
    best = np.inf
    for _ in range(STEPS):
        loss = _pass(x, y, size, family, solution, factor, score)
        if not loss <= best + 1e-9 * (1.0 + abs(best)):
            for j in range(k):
                step[j] *= 0.5
                solution[j] = before[j] + step[j]
            continue
        best = loss
        if _factor(factor, scale, k) == 0.0:
            return SINGULAR
        moved, length = 0.0, 1.0
        _solve(factor, scale, score, k)
        for j in range(k):
            step[j] = score[j]
            before[j] = solution[j]
            solution[j] += step[j]
            moved = max(moved, abs(step[j]))
            length = max(length, abs(solution[j]))
        if not length < 1e100:
            return UNSETTLED
        if moved <= SETTLED * length:
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
    coefficients: FloatArray,
    factors: FloatArray,
    scales: FloatArray,
    dispersion: FloatArray,
    status: IntArray,
) -> None:
    """Logistic or Poisson regression of y on x in groups first..last-1.

    The start is flat; with an intercept (column 0), a Poisson start is the log of the mean. A
    large group is first fitted on its first eighth, and goes on from there if that settled.
    """
    k = x.shape[1]
    for g in range(first, last):
        rows = order[starts[g] : starts[g + 1]]
        solution, factor, scale = coefficients[g], factors[g], scales[g]
        dispersion[g] = 1.0
        if rows.size <= k:
            status[g] = SMALL
            continue
        own_x, own_y = np.zeros((rows.size + 3, k)), np.zeros(rows.size + 3)
        total = 0.0
        for i in range(rows.size):
            own_x[i] = x[rows[i]]
            own_y[i] = y[rows[i]]
            total += own_y[i]
        if total <= 0.0 or (family == LOGISTIC and total >= rows.size):
            status[g] = UNSETTLED
            continue
        flat = log(total / rows.size) if family == POISSON and intercept else 0.0
        solution[0] = flat
        part = rows.size // 8
        if part > 20 * k and _climb(own_x, own_y, part, family, solution, factor, scale) != OK:
            solution[:] = 0.0
            solution[0] = flat
        status[g] = _climb(own_x, own_y, rows.size, family, solution, factor, scale)
