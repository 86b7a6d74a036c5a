"""Tables of exact thresholds, and the slow exact path for draws that hit one.

A uniform number U with infinitely many binary digits is turned into the smallest k with
U < F(k). The first `bits` digits u decide it unless u = floor(F(k)·2^bits) for some k; then
more digits are drawn and compared with F(k) in balls of growing precision. F(k) is irrational
at every law used here, so this ends, and the drawn law is exactly F.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from flint import arb, ctx

from countwise.arrays import IntArray, UIntArray, frozen
from countwise.kernels.inversion import guide, invert
from countwise.noise import entropy

BITS = 64  # of a draw: one word of the generator
_CHUNK = 1 << 17  # draws at once: a megabyte of words, which stays in the cache
_precision = threading.RLock()  # the working precision of the ball arithmetic is global

Cdf = Callable[[int], arb]


def floor_scaled(cdf: Cdf, k: int, bits: int) -> int:
    """floor(F(k)·2^bits), proven: the precision grows until the whole ball has one floor."""
    precision = bits + 64
    with _precision:
        while True:
            with ctx.workprec(precision):
                floor = (cdf(k) * (arb(2) ** bits)).floor().unique_fmpz()
            if floor is not None:
                return int(floor)
            precision *= 2


class LazyUniform:
    """A uniform number in [0, 1) whose binary digits are drawn when a comparison needs them."""

    def __init__(self, digits: int, bits: int) -> None:
        self.digits, self.bits = digits, bits

    def below(self, cdf: Cdf, k: int) -> bool:
        """Whether this number is below F(k)."""
        while True:
            floor = floor_scaled(cdf, k, self.bits)
            if self.digits != floor:
                return self.digits < floor
            self.digits = self.digits << BITS | entropy.word()
            self.bits += BITS


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Thresholds of F at low, low+1, …; a draw is a value from `low` on.

    `least` and `most` are the ends of the variable's range, None where it has none. Values
    outside the table then exist, so close to 0 or 1 that only a hit can lead there.
    """

    cdf: Cdf
    low: int
    least: int | None
    most: int | None
    bits: int
    thresholds: UIntArray
    starts: IntArray

    def draw(self, size: int) -> IntArray:
        """Independent exact draws."""
        out = np.empty(size, dtype=np.int64)
        for start in range(0, size, _CHUNK):
            part = out[start : start + _CHUNK]
            words = entropy.words(len(part))
            if invert(words, self.thresholds, self.starts, self.bits, self.low, part):
                for j in np.flatnonzero(part == self.low - 1):
                    part[j] = self.resolve(int(words[j]) >> (64 - self.bits))
        return out

    def resolve(self, digits: int) -> int:
        """The draw whose first digits equal a threshold, by exact comparison."""
        number = LazyUniform(digits, self.bits)
        k = self.low + int(np.searchsorted(self.thresholds, np.uint64(digits)))
        while k != self.least and number.below(self.cdf, k - 1):
            k -= 1
        while k != self.most and not number.below(self.cdf, k):
            k += 1
        return k


def symmetric_table(cdf: Cdf, *, bits: int = BITS) -> Table:
    """Every value of a symmetric law whose probability 2^-bits can see."""
    below: list[int] = []
    while not below or below[-1] > 0:
        below.append(floor_scaled(cdf, -1 - len(below), bits))
    above = [_top(bits) - value for value in below]  # F(-k-1) = 1 - F(k), never a whole multiple
    return _table(cdf, -len(below), below[::-1] + above, least=None, most=None, bits=bits)


def rising_table(cdf: Cdf, low: int, *, most: int | None = None, bits: int = BITS) -> Table:
    """A variable on low, low+1, … up to `most`, or on without end."""
    values: list[int] = []
    while (low + len(values) != most) and (not values or values[-1] < _top(bits)):
        values.append(floor_scaled(cdf, low + len(values), bits))
    return _table(cdf, low, values, least=low, most=most, bits=bits)


def _top(bits: int) -> int:
    return (1 << bits) - 1


def _table(
    cdf: Cdf, low: int, values: list[int], *, least: int | None, most: int | None, bits: int
) -> Table:
    thresholds = frozen(np.array(values, dtype=np.uint64))
    starts = frozen(guide(thresholds, bits))
    return Table(
        cdf=cdf, low=low, least=least, most=most, bits=bits, thresholds=thresholds, starts=starts
    )
