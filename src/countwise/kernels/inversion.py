"""Inverting a distribution function held as a table of integer thresholds."""

import numpy as np

from countwise.arrays import IntArray, UIntArray
from countwise.kernels.compilation import compiled


def guide(thresholds: UIntArray, bits: int) -> IntArray:
    """Where a search starts: for each leading 12 bits, the first threshold not below them."""
    shift = max(bits - 12, 0)
    starts = np.arange(1 << (bits - shift), dtype=np.uint64) << np.uint64(shift)
    return np.searchsorted(thresholds, starts).astype(np.int64)


@compiled
def invert(
    words: UIntArray, thresholds: UIntArray, starts: IntArray, bits: int, low: int, out: IntArray
) -> int:
    """out[j] = low + number of thresholds below the leading `bits` of words[j].

    A draw that equals a threshold is undecided: it is marked `low - 1`. Returns their number.
    """
    drop = np.uint64(64 - bits)
    shift = np.uint64(max(bits - 12, 0))
    last = len(thresholds)
    undecided = 0
    for j in range(len(words)):
        u = words[j] >> drop
        i = starts[u >> shift]
        while i < last and thresholds[i] < u:
            i += 1
        if i < last and thresholds[i] == u:
            undecided += 1
            out[j] = low - 1
        else:
            out[j] = low + i
    return undecided
