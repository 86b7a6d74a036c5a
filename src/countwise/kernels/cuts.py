"""Which noisy counts lead to a released vector: windows around a cut.

Unit j = 1, 2, … of component i has the quotient v_i/j, and the first m units in the order
(quotient descending, rank ascending) are awarded; k_i is the number awarded to component i.
The *cut* is the first unit not awarded: unit k_i + 1 of some component i, with v_i = x > 0 and
quotient a = x/(k_i + 1). Given the cut, the other components are free of each other: the last
awarded unit of j comes before the cut and its next one after, which is

    k_j·a <= v_j if j ranks before i, k_j·a < v_j if after;  no lower end when k_j = 0
    v_j < (k_j + 1)·a if j ranks before i, v_j <= (k_j + 1)·a if after

Every v >= 0 with v ≠ 0 has exactly one cut, so the vectors v that are apportioned to k are the
disjoint union of these windows over all cuts. Two cases stand apart: with m = 0 every v is
possible, which is returned as a single step without a cut and with windows [0, UNBOUNDED]; and
v = 0 is apportioned as if all components were equal (`is_equal_split`) and belongs to no cut.

As the quotient of the cut grows the ends of the windows move one at a time, so `enumerate_cuts`
lists changes only, and `countwise.kernels.coupled_mixture` adds up the coupled sums of all cuts
along them. All comparisons of quotients are exact for counts below 2^52.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import compiled

UNBOUNDED = np.iinfo(np.int64).max
LARGEST = 2**52  # remainders below it leave ten bits of an int64 for a digit


class Cuts(NamedTuple):
    """Cuts by ascending quotient, and the windows that change at each of them.

    Cut c fixes ``values[c]`` for component ``components[c]`` (-1: no cut). From there on component
    ``changed[q]`` has the window lows[q] <= v <= highs[q], for q from ``bounds[c]`` to
    ``bounds[c + 1] - 1``; the first cut lists every component. The component of a cut has the
    window of its one value.
    """

    components: IntArray
    values: IntArray
    bounds: IntArray
    changed: IntArray
    lows: IntArray
    highs: IntArray


def is_equal_split(released: IntArray, rank: IntArray) -> bool:
    """Whether the released vector is the apportionment of equal counts, ties by rank."""
    if released.max() > released.min() + 1:
        return False
    share, rest = divmod(int(np.sum(released)), len(released))
    expected = np.full(len(released), share)
    expected[np.argsort(rank)[:rest]] += 1
    return bool(np.array_equal(expected, released))


def enumerate_cuts(
    released: IntArray, rank: IntArray, *, lowest_sum: float, highest_sum: float
) -> Cuts:
    """The cuts with no empty window whose Σv can lie between lowest_sum and highest_sum.

    Between lowest_sum >= 1 and highest_sum quotients run from lowest_sum/(m + S) to
    highest_sum/(m + 1), because the windows at quotient a have Σv between a·(m + 1) and a·(m + S).
    """
    k, rank = np.asarray(released, np.int64), np.asarray(rank, np.int64)
    size, total = k.size, int(k.sum())
    low, high = max(1, int(np.ceil(lowest_sum))), int(np.floor(highest_sum))
    check(k, rank, high)
    if total == 0:
        return no_cut(size)
    starts = ceiling(k, low, total + size), ceiling(k + 1, low, total + size)
    stops = -ceiling(k, -high, total + 1) + 1, -ceiling(k + 1, -high, total + 1) + 1
    of_lows = events(np.where(k > 0, starts[0], stops[0]), stops[0])
    of_cuts = events(starts[1], stops[1])
    who = np.concatenate([of_lows[0], of_cuts[0]])
    what = np.concatenate([of_lows[1], of_cuts[1]])
    is_cut = np.arange(who.size) >= of_lows[0].size
    whole, digits, more_digits = quotients(what, k[who] + is_cut)
    order = np.lexsort((-rank[who], more_digits, digits, whole))
    return Cuts(*follow(who[order], what[order], is_cut[order], *starts, low, high))


def check(k: IntArray, rank: IntArray, high: int) -> None:
    """Refuse what can not be apportioned exactly."""
    if k.size == 0 or k.min() < 0 or max(int(k.max()), high) >= LARGEST:
        raise InputError("released counts and sums must be at least 0 and below 2^52")
    if rank.size != k.size or np.unique(rank).size != k.size:
        raise InputError(f"rank must hold {k.size} different numbers, one for each component")


def no_cut(size: int) -> Cuts:
    """The single step of a released total of zero: nothing was awarded, anything is possible."""
    everything = np.full(size, UNBOUNDED)
    lows, bounds = np.zeros(size, np.int64), np.array([0, size])
    return Cuts(np.array([-1]), np.array([0]), bounds, np.arange(size), lows, everything)


def ceiling(counts: IntArray, numerator: int, denominator: int) -> IntArray:
    """ceil(counts·numerator/denominator), in whole numbers of any size."""
    exact = counts.astype(object) if int(counts.max()) * abs(numerator) >= 2**62 else counts
    return np.asarray(-((-numerator * exact) // denominator), np.int64)


def events(starts: IntArray, stops: IntArray) -> tuple[IntArray, IntArray]:
    """Every component with every value from its start to just before its stop."""
    lengths = np.maximum(0, stops - starts)
    who = np.repeat(np.arange(starts.size), lengths)
    before = np.cumsum(lengths) - lengths
    return who, np.arange(who.size) - np.repeat(before - starts, lengths)


@compiled
def quotients(x: IntArray, divisors: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """x/divisor as its whole part and 120 binary digits in two halves.

    Different fractions with divisors up to 2^52 differ by 2^-104 at least, equal ones have equal
    digits: comparing these is comparing the fractions.
    """
    whole, halves = np.empty(x.size, np.int64), np.zeros((2, x.size), np.int64)
    for e in range(x.size):
        whole[e], rest = x[e] // divisors[e], x[e] % divisors[e]
        for digit in range(12):
            rest <<= 10
            halves[digit // 6, e] = (halves[digit // 6, e] << 10) | (rest // divisors[e])
            rest %= divisors[e]
    return whole, halves[0], halves[1]


@compiled
def follow(
    who: IntArray,
    what: IntArray,
    is_cut: BoolArray,
    lows: IntArray,
    above: IntArray,
    lowest: int,
    highest: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Pass the events in order, keeping the windows; list the cuts and what changed for each."""
    size, room = lows.size, lows.size + 3 * who.size
    lows, highs = lows.copy(), above - 1
    changes, cuts = np.empty((3, room), np.int64), np.empty((3, who.size + 1), np.int64)
    shown = np.full((2, size), -2)
    pending, waiting = np.arange(room), size
    empty, sum_low, sum_high = (lows > highs).sum(), lows.sum(), highs.sum()
    made = found = 0
    cuts[2, 0] = 0
    for e in range(who.size):
        i, x = who[e], what[e]
        was = lows[i] > highs[i]
        if is_cut[e]:
            within = lowest <= sum_high - highs[i] + x and sum_low - lows[i] + x <= highest
            if within and empty == was:
                pending[waiting] = i
                made = show(changes, made, pending[: waiting + 1], shown, lows, highs, i, x)
                cuts[0, found], cuts[1, found], cuts[2, found + 1] = i, x, made
                found, waiting = found + 1, 0
            sum_high += x - highs[i]
            highs[i] = x
        else:
            sum_low += x + 1 - lows[i]
            lows[i] = x + 1
        empty += (lows[i] > highs[i]) - was
        pending[waiting] = i
        waiting += 1
    return (
        cuts[0, :found].copy(),
        cuts[1, :found].copy(),
        cuts[2, : found + 1].copy(),
        changes[0, :made].copy(),
        changes[1, :made].copy(),
        changes[2, :made].copy(),
    )


@compiled
def show(
    changes: IntArray,
    made: int,
    pending: IntArray,
    shown: IntArray,
    lows: IntArray,
    highs: IntArray,
    i: int,
    x: int,
) -> int:
    """List the pending windows that differ from those last shown; component i sits at x."""
    for s in pending:
        low, high = (x, x) if s == i else (lows[s], highs[s])
        if shown[0, s] != low or shown[1, s] != high:
            shown[0, s], shown[1, s] = low, high
            changes[0, made], changes[1, made], changes[2, made] = s, low, high
            made += 1
    return made
