"""Equations gram·solution = right of a regression, by Cholesky factors on a unit diagonal.

Statuses of a fit: OK, SMALL (no more rows than columns), SINGULAR (a column that the ones before
it explain to 1e-9 of its square, or no variation), UNSETTLED (separated data, no convergence
within the steps, or numbers that overflow).
"""

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.compilation import compiled_like_numpy

OK, SMALL, SINGULAR, UNSETTLED = 0, 1, 2, 3
LEAST_PIVOT = 1e-9


@compiled_like_numpy
def factorise(gram: FloatArray, scale: FloatArray, k: int) -> float:
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
def solve(factor: FloatArray, scale: FloatArray, right: FloatArray, k: int) -> None:
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
def finite(values: FloatArray) -> bool:
    largest = 0.0
    for value in values:
        if not abs(value) <= largest:
            largest = abs(value)
    return largest < 1e150
