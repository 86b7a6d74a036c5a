"""The law of a sum of independent noises, exact as far out as it is asked.

Tilting: the law with weights P(z)·e^{tz} has the slopes of P plus t, and a tilted sum is the sum
of its tilted terms. Near the top of a tilted sum a Fourier transform is right to about fourteen
digits, so tilts are raised until their tops, one beside the other, cover all that is asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.negligible import LEFT_OUT
from countwise.noise.laws import Exact, IntegerLaw

LONGEST = 1 << 22  # of a transform, and of a table
FAR = 150  # a table ends so many times the root of Σ scale² away,
LONG = 1 << 16  # but not before it has this length
SHORTEST = 64  # of a table
FINEST = 1024  # the largest scale, and
SPREAD = 50_000  # the largest root of Σ scale² that are told in single counts
MOST_TILTS = 1024  # a bound; each makes a stretch of the law known
SHARES = (1.75, 1.0, 0.75, 0.5, 0.25)  # of the tilt that puts the next place on top, tried in turn
TOP = 1e-2  # what a window has of a tilted sum: chances above this part of the largest
ROUGH = 1e-10  # a chance known to some digits still

Kinds = tuple[tuple[IntegerLaw, int], ...]


@dataclass(frozen=True, kw_only=True)
class NoiseSum:
    """The sum of independent draws, so many of each law, by its log-ratios.

    These are right to about twelve digits for a hundred standard deviations at least (near zero,
    to as much of a slope one deviation out). Where the table ends they go on in proportion to k,
    or towards those of the slowest law as 1/k: with S draws of it, exponential tails are wrong
    by less than (S-1)/k and in fact by far less; Gaussian ones, repeating every S places, by half
    a percent when their scale is 1/10, and by 1e-7 of themselves when it is 1 or more. A sum too
    wide for a table is told in units of several counts. Its slopes are then wrong by about
    1/(12s²) of themselves, s the scales in such units: below 4e-7 up to 2,000 draws, and 2e-4 of
    a million.
    """

    kinds: Kinds

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(k+1) - log P(k), falling in k; that of -k-1 is exactly minus that of k."""
        k = np.asarray(k)
        place = np.where(k >= 0, k, -k - 1)
        falls = self._falls(place) if self._unit == 1 else self._coarse_falls(place)
        return np.where(k >= 0, falls, -falls)

    @cached_property
    def _spread(self) -> float:
        """The root of Σ scale². A deviation is at most √2 times as much, or less than a count."""
        return sqrt(sum(n * float(law.scale) ** 2 for law, n in self.kinds))

    @cached_property
    def _unit(self) -> int:
        """How many counts a step of the table is."""
        widest = float(max(law.scale for law, _ in self.kinds))
        return max(ceil(max(widest / FINEST, self._spread / SPREAD)), 1)

    @cached_property
    def _coarse(self) -> "IntegerLaw | NoiseSum":
        return sum_of({replace(law, scale=law.scale / self._unit): n for law, n in self.kinds})

    def _falls(self, place: IntArray) -> FloatArray:
        far = int(place.max(initial=0)) + 1
        asked = max(min(far, max(LONG, int(FAR * self._spread)), LONGEST), SHORTEST)
        table = _table(self.kinds, 1 << (asked - 1).bit_length()).slopes
        end = len(table) - 1
        falls = table[np.minimum(place, end)]
        if far > len(table):
            times = (np.maximum(place, end) + 0.5) / (end + 0.5)
            beyond = table[end] * times
            for law, _ in self.kinds:
                above = table[end] - law.slope(end)
                beyond = np.maximum(beyond, law.slope(place) + above / times)
            falls = np.where(place > end, np.minimum(beyond, table[end]), falls)
        return np.asarray(falls)

    def _coarse_falls(self, place: IntArray) -> FloatArray:
        """Between the slopes of the sum in larger units."""
        at = (place + 0.5) / self._unit - 0.5
        below = np.floor(at).astype(np.int64)
        low, high = self._coarse.slope(below), self._coarse.slope(below + 1)
        return np.asarray((low + (at - below) * (high - low)) / self._unit)


def sum_of(terms: Mapping[IntegerLaw, int]) -> IntegerLaw | NoiseSum:
    """The law of the sum of so many independent draws of each law."""
    kinds = [(law, n) for law, n in terms.items() if n and law.variance]
    if not kinds:
        return Exact()
    if len(kinds) == 1 and kinds[0][1] == 1:
        return kinds[0][0]
    return NoiseSum(kinds=tuple(sorted(kinds, key=lambda kind: (kind[0].name, kind[0].scale))))


class _SlopeTable(NamedTuple):
    """Slopes at 0, 1, 2, …, and the tilts to go on with: the last one, and how much more."""

    slopes: FloatArray
    tilt: float
    rise: float
    tilts: int


@lru_cache(maxsize=128)
def _table(kinds: Kinds, length: int) -> _SlopeTable:
    """At least `length` slopes, unless their end is reached; each half is made once."""
    if length > SHORTEST:
        slopes, tilt, rise, tilts = _table(kinds, length // 2)
    else:
        slopes, tilt, rise, tilts = np.empty(0), 0.0, 0.0, 0
    parts, known = [slopes], len(slopes)
    while known < length and rise < inf and tilts < MOST_TILTS:
        for share in SHARES:
            top = _top(kinds, tilt + share * rise)
            if top is not None and top.holds(known):
                break
        else:
            rise = inf
            break
        tilt, tilts = tilt + share * rise, tilts + 1
        last = top.last
        here = slice(known - top.first, last)
        parts.append(np.log1p(top.steps[here] / top.chances[here]) - tilt)
        known = max(known, top.first + last)
        # Up to where the next two chances are alike, or on the way there if they are far apart.
        rise = -log(max(float(top.chances[last + 1] / top.chances[last]), ROUGH))
        rise = rise if share >= 1 else inf
    return _SlopeTable(frozen(np.minimum.accumulate(np.concatenate(parts))), tilt, rise, tilts)


class _Top(NamedTuple):
    """Chances of a tilted sum from `first` on, and what is added from each to the next.

    By transforms both: differences of chances would be all rounding where the sum is wide.
    """

    first: int
    chances: FloatArray
    steps: FloatArray

    @property
    def last(self) -> int:
        """The index of the last chance of the top."""
        return int(np.flatnonzero(self.chances >= TOP * self.chances.max())[-1])

    def holds(self, k: int) -> bool:
        """Whether a place belongs to the top."""
        at = k - self.first
        return 0 <= at < len(self.chances) and self.chances[at] >= TOP * self.chances.max()


def _top(kinds: Kinds, tilt: float) -> _Top | None:
    """The tilted sum on so long a circle that its top meets no tail; None if it is too wide."""
    terms = []
    for law, n in kinds:
        tilted = _tilted(law, tilt)
        if tilted is None:
            return None
        terms.append((n, tilted))
    mean = round(sum(n * each.mean for n, each in terms))
    deviation = sqrt(sum(n * each.variance for n, each in terms))
    widest = max(len(each.chances) for _, each in terms)
    length = next_fast_len(widest + int(13 * deviation) + 16, real=True)
    if length > LONGEST:
        return None
    turns = 2j * np.pi / length * np.arange(length // 2 + 1)
    spectrum, origin = np.ones(len(turns), np.complex128), 0
    for n, each in terms:
        line = np.zeros(length)
        centre = round(each.mean)  # as origin, so that the phases stay small
        line[each.z - centre] = each.chances
        spectrum *= rfft(line) ** n
        origin += n * centre
    first = mean - length // 2
    return _Top(
        first,
        np.roll(irfft(spectrum, length), origin - first),
        np.roll(irfft(spectrum * np.expm1(turns), length), origin - first),
    )


class _Tilted(NamedTuple):
    """A tilted law where it is not negligible."""

    z: IntArray
    chances: FloatArray

    @property
    def mean(self) -> float:
        return float(np.sum(self.chances * self.z))

    @property
    def variance(self) -> float:
        return float(np.sum(self.chances * (self.z - self.mean) ** 2))


def _tilted(law: IntegerLaw, tilt: float) -> _Tilted | None:
    """The law times e^{tilt·z}; None if it is too wide, or has no sum at all."""
    low, high = -SHORTEST, SHORTEST
    if (law.slope(LONGEST) + tilt) * LONGEST > -LEFT_OUT:
        return None  # falls off too slowly
    while high - low <= 2 * LONGEST:
        steps = law.slope(np.arange(low, high)) + tilt
        mode = int(np.count_nonzero(steps > 0))
        # Added up from the mode outwards, so that rounding is least where chances are large.
        above, below = np.cumsum(steps[mode:]), np.cumsum(-steps[:mode][::-1])
        right, left = (int(np.count_nonzero(each > -LEFT_OUT)) for each in (above, below))
        if right < len(above) and left < len(below):
            chances = np.exp(np.concatenate([below[:left][::-1], [0.0], above[:right]]))
            z = np.arange(-left, right + 1) + low + mode
            return _Tilted(z, chances / chances.sum())
        high *= 2 if right == len(above) else 1
        low *= 2 if left == len(below) else 1
    return None
