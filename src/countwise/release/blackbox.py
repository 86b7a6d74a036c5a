"""Many releases of two neighbouring tables, and the largest privacy loss that they prove.

Releases are summed up by how much likelier the plan's noise makes them under the one table than
under the other: for independent noise the best test there is (Neyman & Pearson 1933), and of joint
noise too. On one half of the releases an event is chosen, that this number is high enough, or low
enough. On the other half its chances under both tables are bounded (Clopper & Pearson 1934), and so
is the loss from below. With ε, the loss of an event of chances p and q is log(p/q). With ρ it is
the divergence p·log(p/q) + (1-p)·log((1-p)/(1-q)), which a loss of ρ bounds by ρ (Bun & Steinke
2016).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from countwise.arrays import FloatArray, IntArray
from countwise.noise.count_noise import Unit
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.measure import measure
from countwise.release.neighbours import Pair
from countwise.release.plan import Plan
from countwise.release.run import release
from countwise.tables.confidential import Confidential

RUNS = 20_000
CONFIDENCE = 0.999
THRESHOLDS = 400
"""Events that are compared at most; there are fewer where the statistic has fewer values."""
TOLD = 100
"""How often progress is told."""


@dataclass(frozen=True, kw_only=True)
class Event:
    """That the statistic is at least, or at most, a threshold."""

    threshold: float
    above: bool

    def hits(self, statistic: FloatArray) -> int:
        """In how many releases it happened."""
        over = statistic >= self.threshold if self.above else statistic <= self.threshold
        return int(over.sum())


@dataclass(frozen=True, kw_only=True)
class ProvenLoss:
    """The largest loss proved for a pair, and what it rests on."""

    pair: Pair
    unit: Unit
    stated: float
    proved: float
    event: Event
    hits: tuple[int, int]
    """How often the event happened in `runs` releases of each table, the likelier one first."""
    runs: int
    confidence: float

    @property
    def broken(self) -> bool:
        """Whether more is proved than was stated."""
        return self.proved > self.stated


def prove_loss(
    plan: Plan,
    budget: Budget,
    pair: Pair,
    *,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    adjusted: bool = False,
    tell: Tell = silent,
) -> ProvenLoss:
    """Release both tables `runs` times; `adjusted` looks at the counts that are published last."""
    found = []
    for which, cells in enumerate(pair.tables, start=1):
        table = Confidential(pair.hierarchy, cells)
        numbers = _statistics(table, plan, budget, pair, adjusted=adjusted)
        statistic = np.empty(runs)
        for run in range(runs):
            statistic[run] = next(numbers)
            if (run + 1) * TOLD // runs > run * TOLD // runs:
                tell(f"releases of table {which}")
        found.append(statistic)
    half, unit = runs // 2, budget.unit
    event = choose_event(found[0][:half], found[1][:half], unit=unit, confidence=confidence)
    hits = [event.hits(statistic[half:]) for statistic in found]
    if not event.above:
        hits.reverse()
    more, less = (np.array(hit, dtype=np.int64) for hit in hits)
    return ProvenLoss(
        pair=pair,
        unit=unit,
        stated=float(pair.stated.amount),
        proved=float(_least_loss(more, less, runs - half, unit=unit, confidence=confidence)),
        event=event,
        hits=(hits[0], hits[1]),
        runs=runs - half,
        confidence=confidence,
    )


def choose_event(first: FloatArray, second: FloatArray, *, unit: Unit, confidence: float) -> Event:
    """What proves most: a high statistic, likelier under the first table, or a low one."""
    values = np.unique(np.concatenate([first, second]))
    if len(values) > THRESHOLDS:
        values = np.unique(np.quantile(values, np.linspace(0, 1, THRESHOLDS)))
    high = [
        len(each) - np.searchsorted(np.sort(each), values, side="left") for each in (first, second)
    ]
    low = [np.searchsorted(np.sort(each), values, side="right") for each in (first, second)]
    most = len(first)
    above = _least_loss(high[0], high[1], most, unit=unit, confidence=confidence)
    below = _least_loss(low[1], low[0], most, unit=unit, confidence=confidence)
    best = above if above.max() >= below.max() else below
    return Event(threshold=float(values[int(np.argmax(best))]), above=best is above)


def _statistics(
    table: Confidential, plan: Plan, budget: Budget, pair: Pair, *, adjusted: bool
) -> Iterator[float]:
    """For release after release, the log of how much likelier it is under the first table."""
    levels = [
        (level, np.flatnonzero(change), law)
        for level, (change, law) in enumerate(zip(pair.changes(), budget.laws, strict=True))
        if budget.levels[level].loss and change.any()
    ]
    first, second = (pair.hierarchy.sums(cells) for cells in pair.tables)
    while True:
        values: tuple[IntArray, ...]
        if adjusted:
            values = release(table, plan).counts
        else:
            values = measure(table, budget, noise=plan.noise).noisy
        likelier = 0.0
        for level, nodes, law in levels:
            seen = values[level][nodes]
            ratio = law.logpmf(seen - first[level][nodes]) - law.logpmf(seen - second[level][nodes])
            likelier += float(ratio.sum())
        yield round(likelier, 9)


def _least_loss(
    likelier: IntArray, other: IntArray, runs: int, *, unit: Unit, confidence: float
) -> FloatArray:
    """The least loss that fits so many hits, at the confidence; zero where there is none."""
    risk = (1 - confidence) / 2
    p = np.where(likelier > 0, betaincinv(np.maximum(likelier, 1), runs - likelier + 1, risk), 0.0)
    q = np.where(other < runs, betaincinv(other + 1, np.maximum(runs - other, 1), 1 - risk), 1.0)
    p, q = np.where(p > q, p, 0.5), np.where(p > q, q, 0.5)
    ratio = np.log(p / q)
    if unit == "epsilon":
        return np.asarray(ratio)
    return np.asarray(p * ratio + (1 - p) * (np.log1p(-p) - np.log1p(-q)))
