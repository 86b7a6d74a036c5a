"""Search for histograms on which one estimator is worse than another.

Two bins: the closed form on a whole grid, where a gap that doubles can not tell from zero is signed
in ball arithmetic, and a proof in balls for the worst point found. More
bins: candidates are screened by simulation, and the most promising are tested one after another
on fresh draws, with looks at doubling sample sizes. The stated error probability is shared out
among all tests and looks; it rests on means of thousands of draws being normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from countwise.adjust.histogram import ESTIMATORS
from countwise.arrays import FloatArray
from countwise.noise.laws import Geometric, Laplace
from countwise.progress import Tell, silent
from countwise.risk.claim_proof import Counterexample, proven
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.monte_carlo import draw_noise, paired_losses
from countwise.risk.signs import bits, worse_on_grid

SCREENED, TESTED, LOOKS = 300, 5, 6  # histograms tried, kept, and looks at each as draws add up
SCREEN_DRAWS, FIRST_LOOK = 1_000, 4_096
"""Pairs of draws: few to choose by, more to test with, doubled at each look."""


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """A grid point and both expected squared errors there."""

    histogram: tuple[int, int]
    epsilon: Fraction
    worse: float
    than: float

    @property
    def ratio(self) -> float:
        """How many times as large the worse one is."""
        return self.worse / self.than


@dataclass(frozen=True, kw_only=True)
class GridSearch:
    """What a grid of two bins and privacy losses shows of `worse` against `than`."""

    worse: str
    than: str
    points: int
    counterexamples: int
    by_epsilon: tuple[tuple[Fraction, int], ...]
    top: tuple[GridPoint, ...]
    proof: Counterexample | None


def search_grid(
    worse: str,
    than: str,
    *,
    counts: Sequence[int],
    epsilons: Sequence[Fraction],
    kind: type[Laplace] | type[Geometric] = Laplace,
    tell: Tell = silent,
) -> GridSearch:
    """Both risks at every pair of counts and every ε, a pair and its mirror image both counted."""
    found, spots = [], []
    claim = EstimatorClaim(left=worse, right=than)
    for epsilon in epsilons:
        tell(f"epsilon {float(epsilon):g}")
        fails, left, right = worse_on_grid(claim, counts, kind(scale=1 / epsilon))
        found.append((epsilon, int(fails.sum())))
        if fails.any():
            # Of a pair and its mirror image the one in the order of the counts.
            place = int(np.argmax(np.triu(np.where(fails, left / right, 0.0))))
            i, j = divmod(place, len(counts))
            spots.append(
                GridPoint(
                    histogram=(counts[i], counts[j]),
                    epsilon=epsilon,
                    worse=float(left[i, j]),
                    than=float(right[i, j]),
                )
            )
    top = tuple(sorted(spots, key=lambda spot: -spot.ratio))
    return GridSearch(
        worse=worse,
        than=than,
        points=len(counts) ** 2 * len(epsilons),
        counterexamples=sum(number for _, number in found),
        by_epsilon=tuple(found),
        top=top,
        proof=_proof(claim, top[0], kind) if top else None,
    )


def _proof(
    claim: EstimatorClaim, spot: GridPoint, kind: type[Laplace] | type[Geometric]
) -> Counterexample | None:
    precision = bits(spot.histogram, kind(scale=1 / spot.epsilon))
    return proven(claim, spot.histogram, spot.epsilon, kind=kind, precision=precision)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A histogram on which `worse` tested as worse, by how much, and how sure that is."""

    histogram: tuple[int, ...]
    epsilon: Fraction
    gap: float
    standard_error: float
    draws: int
    error_probability: float


def search_by_simulation(
    worse: str,
    than: str,
    *,
    bins: int,
    counts: Sequence[int],
    epsilons: Sequence[Fraction],
    error_probability: float,
    rng: np.random.Generator,
    kind: type[Laplace] | type[Geometric] = Laplace,
    tell: Tell = silent,
) -> Finding | None:
    """A counterexample of any number of bins, or None if none passes the test."""
    screened = []
    for i in range(SCREENED):
        if i % 10 == 0:
            tell(f"screening {i} of {SCREENED}")
        histogram = candidate(bins, counts, rng=rng)
        law = kind(scale=1 / epsilons[int(rng.integers(len(epsilons)))])
        gaps = _gaps(worse, than, histogram, law, draws=SCREEN_DRAWS, rng=rng)
        screened.append((float(gaps.mean() / gaps.std()) if gaps.any() else 0.0, histogram, law))
    screened.sort(key=lambda entry: -entry[0])
    for score, histogram, law in screened[:TESTED]:
        if score > 0:
            tell("testing a candidate")
            found = _test(worse, than, histogram, law, error_probability, rng=rng)
            if found is not None:
                return found
    return None


def candidate(bins: int, counts: Sequence[int], *, rng: np.random.Generator) -> FloatArray:
    """A histogram of a few flat runs of random heights: one run, a step, up to all different."""
    runs = int(rng.integers(1, bins + 1))
    cuts = np.sort(rng.choice(np.arange(1, bins), size=runs - 1, replace=False))
    lengths = np.diff(np.concatenate([[0], cuts, [bins]]))
    return np.repeat(rng.choice(np.asarray(counts), size=runs), lengths).astype(np.float64)


def _gaps(
    worse: str,
    than: str,
    histogram: FloatArray,
    law: Laplace | Geometric,
    *,
    draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Differences of the two losses on the same noise."""
    noise = draw_noise(law, (draws, len(histogram)), rng=rng)
    one, other = (paired_losses(ESTIMATORS[n], histogram, noise, law) for n in (worse, than))
    return one - other


def _test(
    worse: str,
    than: str,
    histogram: FloatArray,
    law: Laplace | Geometric,
    error_probability: float,
    *,
    rng: np.random.Generator,
) -> Finding | None:
    """A group-sequential one-sided test that the gap is positive."""
    bar = NormalDist().inv_cdf(1 - error_probability / (TESTED * LOOKS))
    gaps = np.empty(0)
    for look in range(LOOKS):
        more = FIRST_LOOK << max(look - 1, 0)
        gaps = np.append(gaps, _gaps(worse, than, histogram, law, draws=more, rng=rng))
        error = float(gaps.std() / np.sqrt(len(gaps)))
        if error > 0 and gaps.mean() > bar * error:
            return Finding(
                histogram=tuple(int(h) for h in histogram),
                epsilon=1 / law.scale,
                gap=float(gaps.mean()),
                standard_error=error,
                draws=len(gaps),
                error_probability=error_probability,
            )
    return None
