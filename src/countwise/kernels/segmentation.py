"""Segmentation: the runs of equal means that fit a vector best, with a price on every run.

Minimised is the sum of squared distances from the runs' means plus `penalty` times the number
of runs. `segment` prunes by function (Maidstone, Hocking, Rigaill & Fearnhead 2017): for the
mean μ of the run that is still open, the cheapest past is known as a function of μ made of
parabolas, c + n·(μ-m)², each on its interval. A new number adds (y-μ)² to all of them, and
where a parabola costs more than closing the run and opening another, it gives way. A handful
of parabolas stays on noisy data, flat stretches included; on a ramp without noise about as many
as a run is long. Means are updated one by one, never taken from differences of long sums, so one
giant does not blur the rest.

Of segmentations that cost the same, as happens with whole numbers, the one with the fewest runs
is taken, then the one whose last run is the longest, and so on backwards.

`table` is the published dynamic programme over (end, number of runs), O(n²k): the oracle.
"""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner

TIE = 1e-12  # costs this close, relatively, are equal: what is left is rounding


@inner
def _put(
    pieces: FloatArray, i: int, low: float, high: float, n: float, m: float, c: float, start: float
) -> None:
    """A piece: low end, high end, n, m, c, start of its run."""
    pieces[i, 0] = low
    pieces[i, 1] = high
    pieces[i, 2] = n
    pieces[i, 3] = m
    pieces[i, 4] = c
    pieces[i, 5] = start


@inner
def _open_run(
    pieces: FloatArray, i: int, low: float, high: float, y: float, cost: float, at: int
) -> int:
    """A run of y alone, on low … high; joined to a neighbour that starts now as well."""
    if pieces[i - 1, 5] == at and pieces[i - 1, 1] == low:
        pieces[i - 1, 1] = high
        return i
    _put(pieces, i, low, high, 1.0, y, cost, at)
    return i + 1


@inner
def _wins(value: float, at: int, best: float, start: int, runs: IntArray) -> bool:
    """Cheaper; or as cheap with fewer runs; or with as many, the last of them longer."""
    if value < best * (1 - TIE):
        return True
    if value > best * (1 + TIE) or runs[at] > runs[start]:
        return False
    return runs[at] < runs[start] or at < start


@inner
def _advance(
    pieces: FloatArray,
    old: tuple[int, int],
    new: int,
    y: float,
    cost: float,
    at: int,
    runs: IntArray,
) -> tuple[int, float, int]:
    """Parabolas cut to where they cost no more than a run that starts now, and (y-μ)² added.

    The pieces old[0] : old[1] are read, the new ones written from `new` on. Returns their end,
    the least cost and the start of its last run. `np.divide` has no check for zero.
    """
    end, best, start, most = new, np.inf, 0, np.inf
    allowed = cost * (1 + TIE)
    for i in range(old[0], old[1]):
        low, high, n, m, c = pieces[i, 0], pieces[i, 1], pieces[i, 2], pieces[i, 3], pieces[i, 4]
        room, below, above = allowed - c, m - low, high - m
        left, right = low, high
        if n * max(below * below, above * above) > room:
            reach = np.sqrt(np.divide(max(room, 0.0), n))
            left, right = max(low, m - reach), min(high, m + reach)
            if room < 0 or left > right:
                end = _open_run(pieces, end, low, high, y, cost, at)
                continue
            if low < left:
                end = _open_run(pieces, end, low, left, y, cost, at)
        off, share = y - m, np.divide(1.0, n + 1)
        m += off * share
        c += off * off * n * share
        _put(pieces, end, left, right, n + 1, m, c, pieces[i, 5])
        if c <= most:
            aside = min(max(m, left), right) - m
            value, first = c + (n + 1) * aside * aside, int(pieces[end, 5])
            if _wins(value, first, best, start, runs):
                best, start, most = value, first, value * (1 + TIE)
        end += 1
        if right < high:
            end = _open_run(pieces, end, right, high, y, cost, at)
    for i in range(new, end if cost <= most else new):
        if pieces[i, 5] == at:
            aside = min(max(y, pieces[i, 0]), pieces[i, 1]) - y
            value = cost + aside * aside
            if _wins(value, at, best, start, runs):
                best, start = value, at
    return end, best, start


@inner
def _follow(
    values: FloatArray,
    penalty: float,
    pieces: FloatArray,
    state: tuple[int, int, float],
    before: IntArray,
    runs: IntArray,
) -> tuple[int, int, float]:
    """Take in numbers until all are in or the room for pieces is short.

    The state: the last number taken in, the end of the pieces, the least cost. Pieces are read
    from one half of the room and written to the other, and come back in the first.
    """
    t, end, best = state
    half = len(pieces) // 2
    new = 1
    while t < len(values) - 1 and 3 * (end - new) < half:
        old = (new, end)
        new = half + 2 - new
        t += 1
        end, best, start = _advance(pieces, old, new, values[t], best + penalty, t, runs)
        before[t + 1] = start
        runs[t + 1] = runs[start] + 1
    if new != 1:
        pieces[1 : end - half] = pieces[new:end]
        end -= half
    return t, end, best


@inner
def _grown(pieces: FloatArray) -> FloatArray:
    """The same pieces with twice the room."""
    wider = np.full((2 * len(pieces), 6), -1.0)
    wider[: len(pieces)] = pieces
    return wider


@compiled
def segment(values: FloatArray, penalty: float) -> IntArray:
    """The starts of the best runs, closed by the length: run j is starts[j] : starts[j+1]."""
    size = len(values)
    before = np.zeros(size + 1, dtype=np.int64)
    runs = np.zeros(size + 1, dtype=np.int64)
    runs[1] = 1
    pieces = np.full((128, 6), -1.0)  # the rows before the pieces must not look like a run
    _put(pieces, 1, values.min(), values.max(), 1.0, values[0], penalty, 0)
    state = _follow(values, penalty, pieces, (0, 2, penalty), before, runs)
    while state[0] < size - 1:
        pieces = _grown(pieces)
        state = _follow(values, penalty, pieces, state, before, runs)
    return _walk_back(before, runs[size])


@inner
def _walk_back(before: IntArray, runs: int) -> IntArray:
    starts = np.empty(runs + 1, dtype=np.int64)
    place = len(before) - 1
    for j in range(runs, -1, -1):
        starts[j] = place
        place = before[place]
    return starts


@compiled
def run_means(values: FloatArray, starts: IntArray) -> FloatArray:
    """Every number replaced by the mean of its run."""
    means = np.empty_like(values)
    for j in range(len(starts) - 1):
        means[starts[j] : starts[j + 1]] = values[starts[j] : starts[j + 1]].mean()
    return means


@compiled
def segmented_rows(rows: FloatArray, penalty: float) -> FloatArray:
    """The means of the best runs, for every row of a matrix."""
    means = np.empty_like(rows)
    for i in range(len(rows)):
        means[i] = run_means(rows[i], segment(rows[i], penalty))
    return means
