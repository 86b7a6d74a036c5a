"""Mean, mode, deviation and intervals of many laws at once, or of one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from markupsafe import Markup

from countwise.arrays import FloatArray, IntArray
from countwise.choices import one_of
from countwise.errors import InputError
from countwise.kernels.compilation import reading
from countwise.kernels.intervals import SAME, highest
from countwise.pages.bars import bars
from countwise.pages.notebook import Picture
from countwise.sumproduct.count_laws import Laws

Interval = Literal["highest", "central"]
MOST_BARS = 120  # of a picture; wider laws are drawn in steps
INTERVALS = ("highest", "central")


class Summaries(NamedTuple):
    """One number a node in each; `chance` is the mass of lower..upper, both included."""

    mean: FloatArray
    mode: IntArray
    sd: FloatArray
    lower: IntArray
    upper: IntArray
    chance: FloatArray


def summarise(laws: Laws, *, level: float = 0.95, interval: str = "highest") -> Summaries:
    """Summaries of laws that need not add up to one.

    `highest`: the fewest most probable values that hold `level` of the mass, from the lowest to
    the highest of them. `central`: at most (1 - level)/2 of the mass on either side.
    """
    check_interval(level, interval)
    p = laws.values / np.repeat(laws.sums(), laws.sizes)
    starts = laws.offsets[:-1]
    offset = (laws.grid - laws.lows[laws.owners]).astype(np.float64)
    mean = np.add.reduceat(p * offset, starts)
    variance = np.add.reduceat(p * (offset - mean[laws.owners]) ** 2, starts)
    best = np.maximum.reduceat(p, starts)
    peak = np.where(p > best[laws.owners] * (1.0 - SAME), np.arange(len(p)), len(p))
    mode = laws.grid[np.minimum.reduceat(peak, starts)]
    ends = highest_ranges(laws, level) if interval == "highest" else central(laws, p, level)
    reached = np.concatenate([[0.0], np.cumsum(p)])
    first = starts + (ends[0] - laws.lows)
    last = starts + (ends[1] - laws.lows)
    chance = np.minimum(reached[last + 1] - reached[first], 1.0)
    centre = laws.lows.astype(np.float64) + mean
    return Summaries(centre, mode, np.sqrt(variance), ends[0], ends[1], chance)


def summarise_all(parts: Iterable[Laws], *, level: float, interval: str) -> Summaries:
    """The same of laws that come in parts, one after another."""
    found = [summarise(laws, level=level, interval=interval) for laws in parts]
    return Summaries(*(np.concatenate(each) for each in zip(*found, strict=True)))


def check_interval(level: float, interval: str) -> None:
    """Refuse an interval that is none."""
    if not 0.0 < level < 1.0:
        raise InputError(f"the probability of an interval must be between 0 and 1, got {level:g}.")
    one_of(interval, INTERVALS, what="interval")


def highest_ranges(laws: Laws, level: float) -> tuple[IntArray, IntArray]:
    """Lowest and highest of the fewest most probable values that hold a level, of every node."""
    first, last = highest(reading(laws.values, np.float64), laws.offsets, level)
    return laws.lows + first, laws.lows + last


def central(laws: Laws, p: FloatArray, level: float) -> tuple[IntArray, IntArray]:
    """The smallest values whose cumulated mass reaches (1 - level)/2 and (1 + level)/2."""
    up_to = _before(laws, p) + p
    starts = laws.offsets[:-1]
    ends = []
    for share in ((1 - level) / 2, (1 + level) / 2):
        below = np.add.reduceat((up_to < share - 1e-12).astype(np.int64), starts)
        ends.append(laws.lows + np.minimum(below, laws.sizes - 1))
    return ends[0], ends[1]


def _before(laws: Laws, p: FloatArray) -> FloatArray:
    """For each value, the mass of its node's values listed before it."""
    reached = np.concatenate([[0.0], np.cumsum(p)[:-1]])
    return np.asarray(reached - reached[laws.offsets[:-1]][laws.owners])


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Law:
    """The posterior of one whole number: P(low + i·step) = chances[i].

    `error` is 0 when it was computed, and the largest standard error of a probability when it
    was estimated from draws; `prior` says which prior the law rests on.
    """

    low: int
    chances: FloatArray
    error: float = 0.0
    prior: str = ""

    def __repr__(self) -> str:
        low, high = self.interval()
        return (
            f"{self._said()}(mean {self.mean:,.2f}, mode {self.mode:,}, 95%: {low:,} to {high:,})"
        )

    def _said(self) -> str:
        return type(self).__name__

    def plot(self, title: str = "") -> Picture:
        """The probabilities of the true count as bars."""
        title = title or "Probabilities of the true count"
        return Picture(self.chart(title), title=title, height=300)

    def chart(self, title: str, *, marked: int | None = None) -> Markup:
        """Bars of the part of the law that can be seen: of every so many numbers, at most 120."""
        low, high = self.interval(0.999, kind="central")
        seen = range(low, high + 1, -(-(high - low + 1) // MOST_BARS))
        return bars(
            low,
            [self.pmf(x) for x in seen],
            step=seen.step,
            title=title,
            axis="true count",
            marked=marked,
        )

    @property
    def values(self) -> IntArray:
        """The numbers with a probability."""
        return self.low + np.arange(len(self.chances))

    def pmf(self, x: int) -> float:
        """P(N = x)."""
        at = x - self.low
        return float(self.chances[at]) if 0 <= at < len(self.chances) else 0.0

    @property
    def mean(self) -> float:
        """The expected value."""
        return float(self._summary().mean[0])

    @property
    def mode(self) -> int:
        """The most probable value, the smallest if there are several."""
        return int(self._summary().mode[0])

    @property
    def sd(self) -> float:
        """The standard deviation."""
        return float(self._summary().sd[0])

    def interval(self, level: float = 0.95, *, kind: str = "highest") -> tuple[int, int]:
        """Lower and upper end, both included."""
        found = self._summary(level, kind)
        return int(found.lower[0]), int(found.upper[0])

    def _summary(self, level: float = 0.95, kind: str = "highest") -> Summaries:
        offsets = np.array([0, len(self.chances)])
        laws = Laws(lows=np.array([self.low]), offsets=offsets, values=self.chances)
        return summarise(laws, level=level, interval=kind)
