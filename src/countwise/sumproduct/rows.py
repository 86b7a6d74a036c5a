"""The weight of given counts of children that carry their noisy counts beside them.

Given the counts, the noisy counts are independent; only their sum is tied to anything, so the law
of Σy is a product of transforms.
"""

from collections.abc import Sequence

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from countwise.arrays import FloatArray, IntArray
from countwise.sumproduct.columns import Columns
from countwise.sumproduct.couples import Couple

ENTRIES = 1 << 22  # of one transform of a batch of rows


def row_logs(parts: Sequence[Columns], couple: Couple, k: IntArray, rows: IntArray) -> FloatArray:
    """log of the weight of each row of counts, Σ over parts of one step each."""
    starts = np.searchsorted(parts[0].component, np.arange(len(k) + 1))
    y = parts[0].atoms.y  # the same in every part, and so is where Σy begins
    size = next_fast_len(int(starts[-1]) - len(k) + 1, real=True)
    batch = max(ENTRIES // size, 1)
    found = [
        _weights(parts, couple, k, rows[i : i + batch], starts, int(y[starts[:-1]].sum()), size)
        for i in range(0, len(rows), batch)
    ]
    with np.errstate(divide="ignore"):
        return np.log(np.concatenate(found))


def _weights(
    parts: Sequence[Columns],
    couple: Couple,
    k: IntArray,
    rows: IntArray,
    starts: IntArray,
    least: int,
    size: int,
) -> FloatArray:
    counts = [np.unique(column, return_inverse=True) for column in rows.T]
    known = couple.at(rows.sum(axis=1)[:, None], least + np.arange(size))
    total = np.zeros(len(rows))
    for part in parts:
        product = np.ones(1)
        for s, (x, back) in enumerate(counts):
            here = slice(starts[s], starts[s + 1])
            product = product * rfft(_given(part, here, x - k[s]), size)[back]
        total += np.maximum((irfft(product, size) * known).sum(axis=1), 0.0)
    return total


def _given(part: Columns, here: slice, above: IntArray) -> FloatArray:
    """The weights of a child's columns (across) for counts so far above the released one."""
    y = part.atoms.y[here]
    at = above[:, None] - y - part.d[0]
    inside = (at >= 0) & (at < len(part.d))
    return np.where(inside, part.weights[here][np.arange(len(y)), np.where(inside, at, 0)], 0.0)
