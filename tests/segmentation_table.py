"""The published table of segmentation (Jagadish et al. 1998), an oracle of the pruned one."""

import numpy as np
from numba import njit

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.segmentation import TIE


@njit
def table(values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Least squared distance of the first t numbers in k runs, and where the last run starts.

    Jagadish et al. 1998. Entry [t, k]; runs of no numbers cost nothing, impossible ones ∞.
    """
    size = len(values)
    costs = np.full((size + 1, size + 1), np.inf)
    starts = np.zeros((size + 1, size + 1), dtype=np.int64)
    costs[0, 0] = 0.0
    for t in range(1, size + 1):
        mean, distance = 0.0, 0.0
        for s in range(t - 1, -1, -1):
            off = values[s] - mean
            mean += off / (t - s)
            distance += off * (values[s] - mean)
            for k in range(1, s + 2):
                cost = costs[s, k - 1] + distance
                if cost <= costs[t, k] * (1 + TIE):
                    costs[t, k] = min(cost, costs[t, k])
                    starts[t, k] = s
    return costs, starts


@njit
def segment_by_table(values: FloatArray, penalty: float) -> IntArray:
    """The same runs as `segment`, by the published table and a choice of k at the end."""
    size = len(values)
    costs, starts = table(values)
    runs = 1
    for k in range(2, size + 1):
        cost, least = costs[size, k] + k * penalty, costs[size, runs] + runs * penalty
        if cost < least * (1 - TIE):
            runs = k
    chosen = np.empty(runs + 1, dtype=np.int64)
    place = size
    for k in range(runs, -1, -1):
        chosen[k] = place
        place = starts[place, k] if k > 0 else 0
    return chosen
