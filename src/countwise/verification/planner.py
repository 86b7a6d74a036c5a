"""How likely a verdict is, before anything is spent: power against M, ε and the distance.

A partition's estimate scatters √M times as widely as that of the whole data, so if estimates are
normal a claim that is true by d standard errors of the whole data holds in a random partition with
probability r = Φ(d/√M). Two things can be that far from the threshold:

* the `estimate` in the whole data, as it is. The partitions' estimates average to it, so a high
  one is paid for by a low one, and the count of partitions varies less than a binomial count;
* the `coefficient` behind data that are still to be drawn. Partitions are independent then, and
  the count is binomial.

Outcomes are drawn accordingly, noise is drawn from a seeded generator, and the rules of the
verdict are applied: no data is read. Estimates are taken as normal and unbiased. Estimates from
skewed data are not symmetric, a logistic or Poisson coefficient in a small partition is biased away
from 0, and a claim with two ends or several parts has no distance at all: for those
`synthetic_power` takes the outcomes from partitions of synthetic rows, of the size the partitions
of the data will have. They also show in how many partitions a claim at its threshold would hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt

import numpy as np
from scipy.special import ndtr, ndtri

from countwise.arrays import FloatArray, IntArray
from countwise.progress import Tell, silent
from countwise.verification import outcome_noise
from countwise.verification.answer import Answer, answer
from countwise.verification.border import SYMMETRIC, rehearsed_border
from countwise.verification.proportion_posterior import majorities
from countwise.verification.records import Records
from countwise.verification.request import Request
from countwise.verification.rules import CONTRADICTED, SUPPORTED, SURE, VERDICTS, best_case
from countwise.verification.verify import SyntheticPartitions, synthetic_partitions, verify

BATCH = 1000  # simulated answers at once, in some megabytes
NOISES = 20  # draws of noise on every rehearsed vector, which cost nothing beside its fits


@dataclass(frozen=True, kw_only=True, eq=False)
class Setting:
    """A choice of M, ε, mechanism, prior and border; `errors` is the share that is not fitted."""

    partitions: int
    epsilon: Fraction
    mechanism: str
    alpha: FloatArray
    errors: float = 0.0
    border: float | None = SYMMETRIC

    @property
    def hopeful(self) -> bool:
        """Whether some answer would lead to a verdict."""
        best = best_case(partitions=self.partitions, epsilon=self.epsilon, alpha=self.alpha)
        return best >= SURE


@dataclass(frozen=True, kw_only=True)
class SimulatedPower:
    """The chances of the verdicts at a setting and a share r of partitions where a claim holds.

    `simulation_error` is the largest standard error of the three chances.
    """

    setting: Setting
    distance: float
    r: float
    supported: float
    contradicted: float
    repetitions: int
    simulation_error: float

    @property
    def undecided(self) -> float:
        """The chance of no verdict on the whole data."""
        return 1 - self.supported - self.contradicted


def of_estimate(
    distance: float, setting: Setting, repetitions: int, rng: np.random.Generator
) -> IntArray:
    """Counts of outcomes when the estimate in the whole data is this far from the threshold."""
    scatter = rng.normal(size=(repetitions, setting.partitions))
    scatter -= scatter.mean(axis=1, keepdims=True)
    holds = scatter + distance / sqrt(setting.partitions) > 0
    failed = rng.random(holds.shape) < setting.errors
    first, last = (holds & ~failed).sum(axis=1), failed.sum(axis=1)
    return np.column_stack([first, setting.partitions - first - last, last])


def of_coefficient(
    distance: float, setting: Setting, repetitions: int, rng: np.random.Generator
) -> IntArray:
    """Counts of outcomes when the coefficient behind the data is this far from the threshold."""
    r = share(distance, setting.partitions)
    fitted = 1 - setting.errors
    chances = [r * fitted, (1 - r) * fitted, setting.errors]
    return rng.multinomial(setting.partitions, chances, size=repetitions)


ABOUT: dict[str, Callable[[float, Setting, int, np.random.Generator], IntArray]] = {
    "estimate": of_estimate,
    "coefficient": of_coefficient,
}


def share(distance: float, partitions: int) -> float:
    """r, the probability that the claim holds in a random partition."""
    return float(ndtr(distance / sqrt(partitions)))


def power(
    setting: Setting,
    *,
    distance: float,
    repetitions: int,
    rng: np.random.Generator,
    about: str = "estimate",
) -> SimulatedPower:
    """The chances of the verdicts at a distance from the threshold, in whole-data errors."""
    supported = contradicted = 0.0
    border = 0.0 if setting.border is None else setting.border  # at 0 neither can be said
    for start in range(0, repetitions, BATCH):
        counts = ABOUT[about](distance, setting, min(BATCH, repetitions - start), rng)
        noisy = outcome_noise.simulate(
            counts, mechanism=setting.mechanism, epsilon=setting.epsilon, rng=rng
        )
        found = majorities(
            noisy,
            partitions=setting.partitions,
            epsilon=setting.epsilon,
            alpha=setting.alpha,
            border=border,
        )
        able = found[:, 1] <= 0.5
        supported += float((able & (found[:, 0] >= SURE)).sum())
        contradicted += float((able & (found[:, 2] >= SURE)).sum())
    supported, contradicted = supported / repetitions, contradicted / repetitions
    chances = np.array([supported, contradicted, 1 - supported - contradicted])
    # The variance of a chance next to 0 or 1 is itself not known better than this.
    variance = float(np.maximum(chances * (1 - chances), 1 / repetitions).max())
    return SimulatedPower(
        setting=setting,
        distance=distance,
        r=share(distance, setting.partitions),
        supported=supported,
        contradicted=contradicted,
        repetitions=repetitions,
        simulation_error=sqrt(variance / repetitions),
    )


def synthetic_power(
    records: Records,
    request: Request,
    *,
    repetitions: int,
    rng: np.random.Generator,
    tell: Tell = silent,
) -> tuple[SimulatedPower, float | None]:
    """The chances of the verdicts if the data are like these synthetic rows, and their lean.

    The rows are partitioned so many times. The outcomes, end to end, are cut into lengths of M,
    and each length gets NOISES draws of noise. The lean is the least share of partitions in which a
    claim at its threshold would hold, or its opposite; unless the request states a border, verdicts
    rely on the one that follows from it.
    """
    kinds, size = len(request.claim.outcomes), request.partitions
    parts: list[SyntheticPartitions] = []
    for repetition in range(repetitions):
        parts.append(synthetic_partitions(records, request))
        tell(f"synthetic partitions {repetition + 1}")
    lean = _lean(parts)
    if request.border is None:
        request = replace(request, border=rehearsed_border(lean))
    outcomes = np.concatenate([part.outcomes for part in parts])
    outcomes = np.resize(outcomes, max(len(outcomes) // size, 1) * size).reshape(-1, size)
    counts = np.array([np.bincount(row, minlength=kinds) for row in outcomes])
    found = np.zeros((len(counts), len(VERDICTS)))
    for place, row in enumerate(counts):
        noisy = outcome_noise.simulate(
            np.repeat(row[None, :], NOISES, axis=0),
            mechanism=request.mechanism,
            epsilon=request.epsilon,
            rng=rng,
        )
        for each in noisy:
            found[place, VERDICTS.index(answer(each, request, rehearsal=True).verdict)] += 1
    found /= NOISES
    means = found.mean(axis=0)
    supported, contradicted = (means[VERDICTS.index(each)] for each in (SUPPORTED, CONTRADICTED))
    totals = counts.sum(axis=0)
    judged = outcomes.size - (0 if request.mechanism == "binary" else totals[-1])
    held = float((totals[:-1].max() if request.claim.cuts else totals[0]) / max(judged, 1))
    # Rounds vary independently; one draw of noise in them all is the least to reckon with.
    spread = np.maximum(found.var(axis=0), 1 / (NOISES * len(found)))
    chances = SimulatedPower(
        setting=Setting(
            partitions=size,
            epsilon=request.epsilon,
            mechanism=request.mechanism,
            alpha=request.alpha,
            errors=float(totals[-1] / outcomes.size),
            border=request.border,
        ),
        distance=sqrt(size) * float(ndtri(held)),
        r=held,
        supported=float(supported),
        contradicted=float(contradicted),
        repetitions=NOISES * len(counts),
        simulation_error=sqrt(float(spread.max()) / len(found)),
    )
    return chances, lean


def synthetic_lean(records: Records, request: Request, *, repetitions: int) -> float | None:
    """In how many partitions of synthetic rows a claim at its threshold holds, or its opposite.

    The smaller of the two shares; None where all rows together can not be fitted.
    """
    return _lean([synthetic_partitions(records, request) for _ in range(repetitions)])


def _lean(parts: list[SyntheticPartitions]) -> float | None:
    """The least share of fitted partitions on one side of the whole's value, of any part."""
    counted = [part.sides for part in parts if part.sides is not None]
    if not counted:
        return None
    total = np.sum(counted, axis=0)
    return float((total[:, :2] / np.maximum(total[:, 2:], 1)).min())


@dataclass(frozen=True, kw_only=True)
class RepeatedVerdicts:
    """The verdicts of a request repeated on synthetic data, and the last answer."""

    verdicts: dict[str, float]
    last: Answer
    repetitions: int


def rehearse(
    records: Records, request: Request, *, repetitions: int, tell: Tell
) -> RepeatedVerdicts:
    """Repeat the whole of a request on synthetic data, through the function that protects rows."""
    found = []
    for repetition in range(repetitions):
        found.append(answer(verify(records, request), request, rehearsal=True))
        tell(f"rehearsal {repetition + 1}")
    given = [each.verdict for each in found]
    verdicts = {name: given.count(name) / repetitions for name in VERDICTS}
    return RepeatedVerdicts(verdicts=verdicts, last=found[-1], repetitions=repetitions)
