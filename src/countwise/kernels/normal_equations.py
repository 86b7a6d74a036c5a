"""Equations gram·solution = right of a regression, by Cholesky factors on a unit diagonal.

Statuses of a fit: OK, SMALL (no more rows than columns), SINGULAR (a column that the ones before
it explain to 1e-9 of its square, or no variation), UNSETTLED (separated data, no convergence
within the steps, or numbers that overflow).

With an intercept, columns are measured from their value in the group's first row, and the square
is what is left of it after the intercept: so neither bounds far wider than the data nor an offset
make a column singular. Nothing is lost by a first row far out: if d is its distance from the mean
of n rows, the mean of squares about it is s² + d² with d² ≤ n·s², so at least 1/(n + 1) is left.
"""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled_like_numpy

OK, SMALL, SINGULAR, UNSETTLED = 0, 1, 2, 3  # statuses, as said above
LEAST_PIVOT = 1e-9  # of a column's square: below, the columns before explain it
ROUNDING = 1e-13  # of the whole sum of squares: what doubles leave of a column without variation


@compiled_like_numpy
def factorise(gram: FloatArray, scale: FloatArray, k: int, intercept: bool) -> float:
    """Cholesky factor in place of the gram matrix scaled to a unit diagonal; its least pivot.

    Whether a column is singular is judged beside what the intercept (column 0) leaves of it.
    """
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
        left = 1.0 - gram[i, 0] * gram[i, 0] if intercept and i > 0 else 1.0
        if not (pivot > LEAST_PIVOT * left and left > ROUNDING):
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
def first_row(x: FloatArray, rows: IntArray, intercept: bool, origin: FloatArray) -> None:
    """origin becomes the group's first row, 0 for the intercept; zeros without an intercept."""
    origin[:] = 0.0
    if intercept and rows.size > 0:
        for j in range(1, x.shape[1]):
            origin[j] = x[rows[0], j]


@compiled_like_numpy
def finite(values: FloatArray) -> bool:
    largest = 0.0
    for value in values:
        if not abs(value) <= largest:
            largest = abs(value)
    return largest < 1e150
