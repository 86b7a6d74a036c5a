"""Segmentation: the runs of equal means that fit a vector best, with a price on every run.

Minimised is the sum of squared distances from the runs' means plus `penalty` times the number
of runs. `segment` prunes by function (Maidstone, Hocking, Rigaill & Fearnhead 2017): for the
mean μ of the run that is still open, the cheapest past is known as a function of μ made of
parabolas, c + n·(μ-m)², each on its interval. A new number adds (y-μ)² to all of them, and
where a parabola costs more than closing the run and opening another, it gives way. A handful
of parabolas stays, whatever the data, flat stretches included. Means are updated one by one,
never taken from differences of long sums, so one giant does not blur the rest.

`table` is the published dynamic programme over (end, number of runs), O(n²k): the oracle.
"""

import numpy as np
from numba import njit

from countwise.arrays import FloatArray, IntArray

TIE = 1e-12  # costs this close, relatively, are equal: what is left is rounding


@njit(cache=True, nogil=True)
def _grown(pieces: FloatArray) -> FloatArray:
    """The same pieces with twice the room."""
    wider = np.empty((2 * len(pieces), 6))
    wider[: len(pieces)] = pieces
    return wider


@njit(cache=True, nogil=True)
def _open_run(
    pieces: FloatArray, kept: int, low: float, high: float, cost: float, at: float
) -> int:
    """A run that starts now, on low … high; joined to a neighbour that starts now as well."""
    if kept > 0 and pieces[kept - 1, 5] == at and pieces[kept - 1, 1] == low:
        pieces[kept - 1, 1] = high
        return kept
    piece = pieces[kept]
    piece[0], piece[1], piece[2], piece[3], piece[4], piece[5] = low, high, 0.0, 0.0, cost, at
    return kept + 1


@njit(cache=True, nogil=True)
def _prune(old: FloatArray, size: int, new: FloatArray, cost: float, at: int) -> int:
    """Parabolas cut to where they cost no more than a run that starts now; returns how many.

    A piece: low end, high end, n, m, c, start of its run.
    """
    kept = 0
    allowed = cost * (1 + TIE)
    for i in range(size):
        low, high, n, m, c = old[i, 0], old[i, 1], old[i, 2], old[i, 3], old[i, 4]
        reach = np.sqrt(max(allowed - c, 0.0) / n)
        left, right = max(low, m - reach), min(high, m + reach)
        if c > allowed or left > right:
            kept = _open_run(new, kept, low, high, cost, at)
            continue
        if low < left:
            kept = _open_run(new, kept, low, left, cost, at)
        piece = new[kept]
        piece[0], piece[1], piece[2], piece[3], piece[4], piece[5] = left, right, n, m, c, old[i, 5]
        kept += 1
        if right < high:
            kept = _open_run(new, kept, right, high, cost, at)
    return kept


@njit(cache=True, nogil=True)
def _absorb(pieces: FloatArray, size: int, y: float, runs: IntArray) -> tuple[float, int]:
    """Add (y-μ)² to every parabola; the least cost now and the start of its last run.

    Ties go to the fewest runs.
    """
    best, start = np.inf, 0
    for i in range(size):
        low, high, n, m = pieces[i, 0], pieces[i, 1], pieces[i, 2], pieces[i, 3]
        off, share = y - m, 1 / (n + 1)
        m += off * share
        c = pieces[i, 4] + off * off * n * share
        pieces[i, 2], pieces[i, 3], pieces[i, 4] = n + 1, m, c
        if c > best * (1 + TIE):
            continue
        aside = min(max(m, low), high) - m
        value, at = c + (n + 1) * aside * aside, int(pieces[i, 5])
        tied = abs(value - best) <= TIE * value
        if runs[at] < runs[start] if tied else value < best:
            best, start = value, at
    return best, start


@njit(cache=True, nogil=True)
def segment(values: FloatArray, penalty: float) -> IntArray:
    """The starts of the best runs, closed by the length: run j is starts[j] : starts[j+1]."""
    size = len(values)
    before = np.zeros(size + 1, dtype=np.int64)
    runs = np.zeros(size + 1, dtype=np.int64)
    old, new = np.empty((64, 6)), np.empty((64, 6))
    pieces = _open_run(old, 0, values.min(), values.max(), penalty, 0.0)
    best = 0.0
    for t in range(size):
        if t > 0:
            while len(new) < 3 * pieces:
                new = _grown(new)
            pieces = _prune(old, pieces, new, best + penalty, t)
            old, new = new, old
        best, start = _absorb(old, pieces, values[t], runs)
        before[t + 1] = start
        runs[t + 1] = runs[start] + 1
    return _walk_back(before, runs[size])


@njit(cache=True, nogil=True)
def _walk_back(before: IntArray, runs: int) -> IntArray:
    starts = np.empty(runs + 1, dtype=np.int64)
    place = len(before) - 1
    for j in range(runs, -1, -1):
        starts[j] = place
        place = before[place]
    return starts


@njit(cache=True, nogil=True)
def run_means(values: FloatArray, starts: IntArray) -> FloatArray:
    """Every number replaced by the mean of its run."""
    means = np.empty_like(values)
    for j in range(len(starts) - 1):
        means[starts[j] : starts[j + 1]] = values[starts[j] : starts[j + 1]].mean()
    return means


@njit(cache=True, nogil=True)
def segmented_rows(rows: FloatArray, penalty: float) -> FloatArray:
    """The means of the best runs, for every row of a matrix."""
    means = np.empty_like(rows)
    for i in range(len(rows)):
        means[i] = run_means(rows[i], segment(rows[i], penalty))
    return means


@njit(cache=True, nogil=True)
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
                if cost < costs[t, k]:
                    costs[t, k] = cost
                    starts[t, k] = s
    return costs, starts


@njit(cache=True, nogil=True)
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
