"""A released total that was made from its own noisy count and from the sum of its noisy parts.

A mode release (Wang & Reiter 2021, step 3' and eq. (10)): m is the mode of p(n | N)·p(n* | N), n
the noisy total and n* the sum of the noisy parts. The mode does not fall when n grows, so the noisy
totals that lead to m, given n*, are an interval. With geometric noise they are n = m while n* is
near m, n ≤ m or n ≥ m where it is just too far away, and none beyond; when the total is less noisy
than a part they are n = m for every n*, and the sum of the parts has no say.

Algorithm 1 (Wang 2020, 3.1.1 and eq. (6)): m is a draw from p(n | N)·p(n* | N) over N = 0, 1, …,
and every n and n* may lead to it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from countwise.adjust.count_modes import posterior_modes
from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.negligible import LEFT_OUT, SMALLEST
from countwise.noise.laws import IntegerLaw
from countwise.noise.noise_sums import sum_of
from countwise.sumproduct.node_noise import between, reach
from countwise.withheld.noise_reach import noise_sum_reach

FAR = 1 << 60  # no end; sums of two still fit in 64 bits
STEP = 64  # ends of tables of chances are multiples, so that few are made


class SummedTotal(Protocol):
    """A released total, given the true one and the sum of the noisy parts."""

    def chances(self, sums: IntArray, totals: IntArray) -> FloatArray:
        """P(m | N, n*) for arrays of n* and N that fit each other."""
        ...


@dataclass(frozen=True, kw_only=True)
class TotalMode:
    """The total is the mode: its released count, its noise, and the noise of each of its parts."""

    released: int
    noise: IntegerLaw
    parts: tuple[IntegerLaw, ...]

    def logs(self, nodes: IntArray, x: IntArray) -> FloatArray:
        """Nothing by itself: all that is known involves the sum of the noisy parts."""
        del nodes
        return np.zeros(len(x))

    def window(self, depth: FloatArray) -> tuple[IntArray, IntArray]:
        """Where the total can be, as far as exp(-depth) of the largest likelihood."""
        most = float(depth[0])
        far = reach(self.noise, most)
        spread = self.spread(most)
        low, high = self.sums(self.released - far - spread, self.released + far + spread)
        return (
            np.array([max(self.released - far, low - spread, 0)]),
            np.array([max(min(self.released + far, high + spread), 0)]),
        )

    def spread(self, depth: float) -> int:
        """How far n* can be from the true total: P(beyond) ≤ exp(-depth)."""
        return noise_sum_reach(self.parts, depth)

    def sums(self, low: int, high: int) -> tuple[int, int]:
        """The least and the largest n* in low..high that can lead to m."""
        firsts, lasts = noisy_totals(self, low, high)
        possible = np.flatnonzero(firsts <= lasts)
        if not len(possible):
            return low, high
        return low + int(possible[0]), low + int(possible[-1])

    def ignores_parts(self, depth: float) -> bool:
        """Whether, for every n* within reach, the total is that of its own noisy count."""
        far = reach(self.noise, depth) + self.spread(depth)
        firsts, lasts = noisy_totals(self, self.released - far, self.released + far)
        first = self.released if self.released else -FAR
        return bool((firsts == first).all() and (lasts == self.released).all())

    def chances(self, sums: IntArray, totals: IntArray) -> FloatArray:
        """P(m | N, n*) for arrays of n* and N that fit each other."""
        low, high = int(sums.min()), int(sums.max())
        firsts, lasts = noisy_totals(self, low, high)
        first, last = firsts[sums - low], lasts[sums - low]
        chances = between(self.noise, first - totals, np.maximum(first, last) - totals)
        return np.where(first <= last, chances, 0.0)


def noisy_totals(rule: TotalMode, low: int, high: int) -> tuple[IntArray, IntArray]:
    """The first and the last noisy total that lead to m, for n* from low to high.

    FAR stands for no end; where no noisy total does, the first is above the last.
    """
    m = rule.released
    far = 1 << max(abs(low - m), abs(high - m), 1).bit_length()
    first, last = totals_around_zero(rule.noise, rule.parts, far)
    here = slice(low - m + far, high - m + far + 1)
    first, last = first[here], last[here]
    if m == 0:  # every mode up to zero is released as zero
        return np.where(last > -FAR, -FAR, 1), np.where(last > -FAR, last, 0)
    some = (first <= last) & (first < FAR) & (last > -FAR)
    ends = [np.where(np.abs(each) < FAR, each + m, each) for each in (first, last)]
    return np.where(some, ends[0], 1), np.where(some, ends[1], 0)


@lru_cache(maxsize=16)
def totals_around_zero(
    noise: IntegerLaw, parts: tuple[IntegerLaw, ...], far: int
) -> tuple[IntArray, IntArray]:
    """The first and last noisy total with mode 0 for n* from -far to far, were modes not clipped.

    Both are counted from the mode: the rule is the same at every place. An end without limit is
    FAR away; where no noisy total leads there the first is FAR or the last is -FAR.
    """
    sums = np.arange(-far, far + 1)
    if not noise.variance:
        return np.zeros(len(sums), np.int64), np.zeros(len(sums), np.int64)
    of_sum = sum_of(Counter(parts))
    base = 1 << 44  # so far up that no mode is negative

    def modes(noisy: IntArray) -> IntArray:
        return posterior_modes([(base + noisy, noise), (base + sums, of_sum)]) - base

    most = 4 * (far + reach(noise, SMALLEST) + noise_sum_reach(parts, LEFT_OUT))
    ends = np.full(len(sums), -most), np.full(len(sums), most)
    first = _first(lambda noisy: modes(noisy) >= 0, *ends)
    last = _first(lambda noisy: modes(noisy) > 0, *ends) - 1
    return (
        np.where(first == -most, -FAR, np.where(first > most, FAR, first)),
        np.where(last == most, FAR, np.where(last < -most, -FAR, last)),
    )


def _first(holds: Callable[[IntArray], BoolArray], low: IntArray, high: IntArray) -> IntArray:
    """The smallest number of low..high for which something holds, high + 1 if there is none."""
    low, high = low.copy(), high + 1
    while bool((low < high).any()):
        middle = (low + high) // 2
        true = holds(middle)
        low, high = np.where(true, low, np.minimum(middle + 1, high)), np.where(true, middle, high)
    return low


@dataclass(frozen=True, kw_only=True)
class TotalDraw:
    """The total is a draw: its released count, its noise, and the noise of each of its parts."""

    released: int
    noise: IntegerLaw
    parts: tuple[IntegerLaw, ...]

    def chances(self, sums: IntArray, totals: IntArray) -> FloatArray:
        """P(m | N, n*) for arrays of n* and N that fit each other."""
        least, low = (int(each.min()) // STEP * STEP for each in (sums, totals))
        most, high = (-(-int(each.max()) // STEP) * STEP for each in (sums, totals))
        found = drawn_totals(self, low, high, least, most)
        return np.asarray(found[totals - low, sums - least])


@lru_cache(maxsize=4)
def drawn_totals(rule: TotalDraw, low: int, high: int, least: int, most: int) -> FloatArray:
    """P(m | N, n*) for N = low..high (rows) and n* = least..most.

    Σ_n P(n | N)·p(n | m)·p(n* | m)/Σ_N' p(n | N')·p(n* | N').
    """
    far = reach(rule.noise, LEFT_OUT)
    n, t = np.arange(low - far, high + far + 1), np.arange(least, most + 1)
    drawn = np.arange(max(min(n[0], t[0]) - far, 0), max(n[-1], t[-1], rule.released) + far + 1)
    of_total = rule.noise.pmf(n[:, None] - drawn)
    of_sum = _pmf(rule.parts, drawn[:, None] - t)
    ways = of_total @ of_sum
    at = rule.released - drawn[0]
    share = np.divide(of_total[:, [at]] * of_sum[at], ways, out=np.zeros_like(ways), where=ways > 0)
    return np.asarray(rule.noise.pmf(n - np.arange(low, high + 1)[:, None]) @ share)


def _pmf(laws: tuple[IntegerLaw, ...], z: IntArray) -> FloatArray:
    """The law of a sum of noises up to a factor, from its slopes."""
    far = int(np.abs(z).max())
    logs = np.concatenate([[0.0], np.cumsum(sum_of(Counter(laws)).slope(np.arange(far)))])
    return np.asarray(np.exp(logs[np.abs(z)]))
