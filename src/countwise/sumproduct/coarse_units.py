"""Counts under very wide noise, computed in units of several: the noise of a count hides the rest.

With noise of scale 512 and more, a unit of 1/256 of the smallest scale moves no end of a range by
more than that, and saves as many values of every law.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.sumproduct.summaries import Summaries
from countwise.tables.measurements import Measurements

FINEST = 256  # units in the smallest scale
MOST_VALUES = 50_000_000  # of a law in single counts


def unit_of(measurements: Sequence[Measurements]) -> int:
    """How many counts a unit may be: 1 unless all noise is wide, and no count exact."""
    if any(measurement.exact is not None for measurement in measurements):
        return 1
    smallest = min(float(law.scale) for measurement in measurements for law in measurement.laws)
    return max(int(smallest / FINEST), 1)


def in_units(measured: Measurements, unit: int) -> Measurements:
    """The noisy counts and their noise in such units."""
    return replace(
        measured,
        laws=tuple(replace(law, scale=law.scale / unit) for law in measured.laws),
        noisy=tuple((each + unit // 2) // unit for each in measured.noisy),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CoarseLaws:
    """Laws computed in units of several counts, asked about in single counts."""

    unit: int

    def summaries(self, found: Summaries) -> Summaries:
        """The same in counts; a range has all counts of its first and its last unit."""
        lower, upper = self.ends(found.lower, found.upper)
        q = self.unit
        return Summaries(found.mean * q, found.mode * q, found.sd * q, lower, upper, found.chance)

    def ends(self, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """The first count of the lowest unit and the last one of the highest."""
        first = np.maximum(low * self.unit - self.unit // 2, 0)
        return first, high * self.unit + (self.unit - 1) // 2

    def law(self, low: int, chances: FloatArray) -> tuple[int, FloatArray]:
        """A law in single counts, those of a unit as likely; of one that is too long, a part.

        What is left out is less than a billionth on either side.
        """
        reached = np.cumsum(chances) / chances.sum()
        first, last = np.searchsorted(reached, [1e-9, 1 - 1e-9])
        part = chances[first : last + 1][: MOST_VALUES // self.unit + 1]
        start = (low + int(first)) * self.unit - self.unit // 2
        law = np.repeat(part, self.unit)
        return max(start, 0), law[max(-start, 0) :]
