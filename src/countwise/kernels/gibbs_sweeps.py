"""Sweeps of the two Gibbs samplers of Balmat, Barrientos & Reiter (2018), compiled."""

from math import exp, lgamma, log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled_like_numpy


@compiled_like_numpy
def _proportions(rng: np.random.Generator, alpha: FloatArray, row: IntArray, p: FloatArray) -> None:
    total = 0.0
    for j in range(p.size):
        p[j] = max(rng.standard_gamma(alpha[j] + row[j]), 1e-300)
        total += p[j]
    for j in range(p.size):
        p[j] /= total


@compiled_like_numpy
def _pick(rng: np.random.Generator, cumulative: FloatArray) -> int:
    place = np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right")
    return int(min(place, cumulative.size - 1))


@compiled_like_numpy
def standard(
    rows: IntArray,
    laplace: FloatArray,
    alpha: FloatArray,
    sweeps: int,
    rng: np.random.Generator,
    out: FloatArray,
) -> None:
    """Every sweep computes every multinomial probability anew, coefficients included."""
    count, kinds = rows.shape
    p, logs = np.empty(kinds), np.empty(count)
    cumulative = np.empty(count)
    _proportions(rng, alpha, np.zeros(kinds, dtype=np.int64), p)
    for sweep in range(sweeps):
        top = -np.inf
        for i in range(count):
            value = laplace[i]
            size = 0
            for j in range(kinds):
                value += rows[i, j] * log(p[j]) - lgamma(rows[i, j] + 1.0)
                size += rows[i, j]
            logs[i] = value + lgamma(size + 1.0)
            top = max(top, logs[i])
        running = 0.0
        for i in range(count):
            running += exp(logs[i] - top)
            cumulative[i] = running
        _proportions(rng, alpha, rows[_pick(rng, cumulative)], p)
        out[sweep] = p


@compiled_like_numpy
def tabled(
    rows: IntArray,
    static: FloatArray,
    alpha: FloatArray,
    sweeps: int,
    rng: np.random.Generator,
    out: FloatArray,
) -> None:
    """Coefficient times Laplace density is computed once; a sweep multiplies powers of p onto it.

    Powers come from a table of p^0..p^M, so that a sweep takes no exponential and no logarithm.
    Should every product underflow, that sweep is done in logarithms.
    """
    count, kinds = rows.shape
    size = rows[0].sum()
    p, powers = np.empty(kinds), np.empty((kinds, size + 1))
    cumulative = np.empty(count)
    _proportions(rng, alpha, np.zeros(kinds, dtype=np.int64), p)
    for sweep in range(sweeps):
        for j in range(kinds):
            powers[j, 0] = 1.0
            for x in range(size):
                powers[j, x + 1] = powers[j, x] * p[j]
        running = 0.0
        for i in range(count):
            weight = static[i]
            for j in range(kinds):
                weight *= powers[j, rows[i, j]]
            running += weight
            cumulative[i] = running
        if not running > 1e-280:
            _logarithmic(rows, static, p, cumulative)
        _proportions(rng, alpha, rows[_pick(rng, cumulative)], p)
        out[sweep] = p


@compiled_like_numpy
def _logarithmic(rows: IntArray, static: FloatArray, p: FloatArray, cumulative: FloatArray) -> None:
    top = -np.inf
    for i in range(rows.shape[0]):
        value = log(static[i])
        for j in range(p.size):
            value += rows[i, j] * log(p[j])
        cumulative[i] = value
        top = max(top, value)
    running = 0.0
    for i in range(rows.shape[0]):
        running += exp(cumulative[i] - top)
        cumulative[i] = running


@compiled_like_numpy
def products(rows: IntArray, p: FloatArray, out: FloatArray) -> None:
    """p_1^x_1·…·p_K^x_K of every row x, by logarithms: the C function of their section 6.5."""
    logs = np.log(p)
    for i in range(rows.shape[0]):
        value = 0.0
        for j in range(p.size):
            value += rows[i, j] * logs[j]
        out[i] = exp(value)
