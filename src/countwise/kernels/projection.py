"""The nearest vector with a given total: exact projection, then rounding."""

import numpy as np

from countwise.arrays import FloatArray, IntArray, UIntArray
from countwise.kernels.compilation import compiled


@compiled
def project(values: FloatArray, variances: FloatArray, m: float, out: FloatArray) -> None:
    """The y ≥ 0 with Σy = m that minimises Σ (y - value)²/variance, into `out`.

    y = max(value - λ·variance, 0) for the λ that makes the sum right. Components leave the sum
    in the order of value/variance, so one walk over that order finds λ.
    """
    order = np.argsort(-values / variances)
    total, spread = 0.0, 0.0
    shift = 0.0
    for i in order:
        trial = (total + values[i] - m) / (spread + variances[i])
        if spread > 0 and values[i] <= trial * variances[i]:
            break
        total += values[i]
        spread += variances[i]
        shift = trial
    for i in range(len(values)):
        out[i] = max(values[i] - shift * variances[i], 0.0)


@compiled
def round_to_total(values: FloatArray, m: int, ranks: UIntArray, out: IntArray) -> None:
    """Whole numbers that add up to m, nearest to non-negative values that do: largest remainders.

    Equal remainders go by rank.
    """
    missing = m
    for i in range(len(values)):
        out[i] = int(np.floor(values[i]))
        missing -= out[i]
    while missing < 0:  # the sum of the values was above m by rounding error
        largest = np.argmax(out)
        out[largest] -= 1
        missing += 1
    by_rank = np.argsort(ranks)
    remainders = (values - out)[by_rank]
    order = by_rank[np.argsort(-remainders, kind="mergesort")]
    for j in range(missing):
        out[order[j % len(order)]] += 1


@compiled
def project_children(
    offsets: IntArray,
    parents: IntArray,
    values: FloatArray,
    variances: FloatArray,
    ranks: UIntArray,
    out: IntArray,
    first: int,
    last: int,
) -> None:
    """Project and round the children of each parent from first to last - 1 to its count."""
    for parent in range(first, last):
        start, stop = offsets[parent], offsets[parent + 1]
        nearest = np.empty(stop - start)
        project(values[start:stop], variances[start:stop], parents[parent], nearest)
        round_to_total(nearest, parents[parent], ranks[start:stop], out[start:stop])
