"""What no method can have: a lone cell found, and as many people scattered over cells left apart.

Tables of the same total, in one cell or in several equal ones, are hard to tell apart through the
noise, and what is best for one is bad for another. A method that treats all cells alike has the
same error wherever the cells are. So its errors in these tables, each relative to the best of the
methods compared there, weighed and added up, are no less than those of the posterior mean of
someone who knows the total, the noise, that the truth is one of these tables and how likely each
is, and who may release fractions. The largest such sum is a bound on the largest ratio, whatever
the method.
"""

from math import comb, log
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from accuracy_tables import Table
from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import IntegerLaw

DRAWS, AT_A_TIME = 1_200, 300
ROUNDS, STEP = 200, 0.5  # of weights moved towards the tables where the ratio is largest
FAINTEST = 1e-12


def equal_cells(table: Table) -> dict[int, Table]:
    """By the number of cells: tables of the same total, in so many cells of the same size."""
    size = int(table.cells.sum())
    numbers = [number for number in range(1, size + 1) if not size % number]
    return {
        number: Table(
            hierarchy=table.hierarchy,
            cells=np.where(np.arange(len(table.cells)) < number, size // number, 0),
            loss=table.loss,
            unit=table.unit,
        )
        for number in numbers
    }


class Best(NamedTuple):
    """The least mean squared error of the methods compared, and its standard error."""

    square: float
    error: float


def least_worst(
    tables: dict[int, Table], law: IntegerLaw, best: dict[int, Best]
) -> tuple[float, float]:
    """No method has a smaller largest ratio of root mean squared errors to the best ones.

    With its standard error, from those of the best.
    """
    rng = np.random.default_rng()
    size = int(tables[1].cells.sum())
    drawn = {}
    for number, table in tables.items():
        parts = []
        for _ in range(DRAWS // AT_A_TIME):
            noise = law.isf(1 - rng.random((AT_A_TIME, len(table.cells))))
            parts.append(beliefs(table.cells + noise, law, size, tuple(tables)))
        drawn[number] = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    smallest = np.array([best[number].square for number in tables])
    doubts = np.array([best[number].error for number in tables]) / smallest
    truths = [table.cells for table in tables.values()]
    weights, bound, error = np.full(len(tables), 1 / len(tables)), 0.0, 0.0
    for _ in range(ROUNDS):
        prior = np.log(weights / smallest)
        errors = [
            error_of_knowing(logs + prior, means, truth)
            for (logs, means), truth in zip(drawn.values(), truths, strict=True)
        ]
        ratios = np.array(errors) / smallest
        parts = weights * ratios / weights.sum()
        if parts.sum() > bound:
            bound, error = float(parts.sum()), float(np.sqrt(((parts * doubts) ** 2).sum()))
        weights = weights * np.exp(STEP * (ratios / ratios.max() - 1))
        weights = np.maximum(weights / weights.sum(), FAINTEST)
    root = float(np.sqrt(bound))
    return root, error / (2 * root)


def error_of_knowing(logs: FloatArray, means: FloatArray, truth: IntArray) -> float:
    """Mean squared error of the average of some tables' posterior means, by their chances."""
    chances = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    made = np.einsum("rt,rtn->rn", chances, means)
    return float(((made - truth) ** 2).mean())


def beliefs(
    noisy: IntArray, law: IntegerLaw, size: int, numbers: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Of each release and number of cells: log-likelihood but for a constant, posterior mean."""
    empty, logs, means = law.logpmf(noisy), [], []
    for number in numbers:
        each = size // number
        chosen, ways = chosen_chances(np.exp(law.logpmf(noisy - each) - empty), number)
        logs.append(np.log(ways) - log(comb(noisy.shape[1], number)))
        means.append(each * chosen)
    return np.stack(logs, axis=1), np.stack(means, axis=1)


def chosen_chances(weights: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Chance of each item to be in a set of so many, drawn by the product of its weights.

    Beside them the sum of the products of all sets: elementary symmetric polynomials, from the
    first items on and from the last, row by row.
    """
    rows, items = weights.shape
    before, after = np.zeros((2, items + 1, rows, size + 1))
    before[0, :, 0] = after[items, :, 0] = 1.0
    for item in range(items):
        before[item + 1] = before[item]
        before[item + 1, :, 1:] += weights[:, item, None] * before[item, :, :-1]
        last = items - 1 - item
        after[last] = after[last + 1]
        after[last, :, 1:] += weights[:, last, None] * after[last + 1, :, :-1]
    ways = before[items, :, size]
    without = np.einsum("irk,irk->ri", before[:-1, :, :size], after[1:, :, size - 1 :: -1])
    return weights * without / ways[:, None], ways
