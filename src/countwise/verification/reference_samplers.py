"""The two Gibbs samplers of Balmat, Barrientos & Reiter (2018), as references for the posterior.

Both alternate S given p (a draw from all count vectors, weighted by the multinomial times the
Laplace density) and p given S (Dirichlet). `standard_draws` computes multinomial coefficients in
every sweep (their section 5.2), `table_draws` once (section 6.4), for any number of categories.

Corrected as the text of their section 5.1 means it. In the printed R code p is assigned inside a
function and never moves; here it is updated. The first script starts p from the true counts;
here both start from the prior. Footnote 10 and equation (1) use rate ε; the code uses scale
2/ε, and so do we. Equation (1) normalises over S given p and drops p(noisy | p); a Gibbs sampler
does not need it.
"""

from fractions import Fraction
from math import comb

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels import gibbs_sweeps

SWEEPS, BURN_IN = 5000, 1000  # of a reference, which may take its time
LARGEST_TABLE = 5_000_000  # entries: forty megabytes


def coefficient_table(partitions: int, kinds: int) -> tuple[IntArray, FloatArray]:
    """All count vectors with sum M, in the order of their table 1, and M!/(x_1!·…·x_K!).

    Vectors with first entry M - k form block k. Those of block k whose last entry is positive
    are block k - 1 with that entry raised, and the coefficient is the earlier one times
    (M - k + 1)/last; the others are block k of one category less (their section 6.1).
    """
    if comb(partitions + kinds - 1, kinds - 1) > LARGEST_TABLE:
        raise InputError(f"the table of {kinds} categories and M={partitions} is too large.")
    fewer: list[tuple[IntArray, FloatArray]] = []
    for parts in range(1, kinds):
        blocks: list[tuple[IntArray, FloatArray]] = []
        for k in range(partitions + 1):
            if k == 0:
                blocks.append((np.zeros((1, parts), dtype=np.int64), np.ones(1)))
                continue
            rows, coefficients = blocks[k - 1]
            raised = rows.copy()
            raised[:, -1] += 1
            scaled = coefficients * (partitions - k + 1) / raised[:, -1]
            if parts > 1:
                others, same = fewer[k]
                raised = np.vstack([raised, np.pad(others, ((0, 0), (0, 1)))])
                scaled = np.concatenate([scaled, same])
            blocks.append((raised, scaled))
        fewer = blocks
    rows = np.vstack([rows for rows, _ in fewer])
    first = partitions - rows.sum(axis=1, keepdims=True)
    return np.hstack([first, rows]), np.concatenate([each for _, each in fewer])


def standard_draws(
    noisy: FloatArray,
    *,
    partitions: int,
    epsilon: Fraction,
    alpha: FloatArray,
    rng: np.random.Generator,
    sweeps: int = SWEEPS,
    burn_in: int = BURN_IN,
) -> FloatArray:
    """Draws of p, one a row, after the burn-in."""
    rows, _ = coefficient_table(partitions, len(noisy))
    out = np.empty((sweeps, len(noisy)))
    gibbs_sweeps.standard(
        rows, _log_density(rows, noisy, epsilon), np.array(alpha), sweeps, rng, out
    )
    return out[burn_in:]


def table_draws(
    noisy: FloatArray,
    *,
    partitions: int,
    epsilon: Fraction,
    alpha: FloatArray,
    rng: np.random.Generator,
    sweeps: int = SWEEPS,
    burn_in: int = BURN_IN,
) -> FloatArray:
    """Draws of p, one a row, after the burn-in; coefficients from the table."""
    rows, coefficients = coefficient_table(partitions, len(noisy))
    logs = np.log(coefficients) + _log_density(rows, noisy, epsilon)
    out = np.empty((sweeps, len(noisy)))
    gibbs_sweeps.tabled(rows, np.exp(logs - logs.max()), np.array(alpha), sweeps, rng, out)
    return out[burn_in:]


def _log_density(rows: IntArray, noisy: FloatArray, epsilon: Fraction) -> FloatArray:
    """log of the Laplace(2/ε) density of the noisy counts at each vector, up to a constant."""
    return np.asarray(-float(epsilon) / 2 * np.abs(rows - noisy).sum(axis=1))
