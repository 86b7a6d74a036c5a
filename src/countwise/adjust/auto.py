"""The adjustment that suits a table, chosen from its shape, its noise and its noisy counts only."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log1p
from typing import ClassVar, NamedTuple

import numpy as np

from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.learning import FEWEST_CELLS
from countwise.adjust.leastsquares import LeastSquares
from countwise.arrays import FloatArray, IntArray
from countwise.privacy.measurements import Measurements

MOST_VALUES = 30_000_000
ENOUGH_CELLS = 100  # from here on what cells learn from each other is reliable
FEWEST_TRIALS, MOST_TRIALS = 3, 6
CLEAR = 2.5  # standard errors at which trials stop


class Choice(NamedTuple):
    """The adjustment to use, and why."""

    adjustment: EmpiricalBayes | LeastSquares
    reason: str


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Empirical Bayes where the cells can teach it something in reasonable time.

    Tables of few cells are tried out: each of the two makes a table of the noisy counts, noise of
    the same law is put on both again and again, and the adjustment that comes nearer to them is
    taken. `rng` draws that noise, which protects no one.
    """

    name: ClassVar[str] = "auto"
    tie_key: int | None
    rng: np.random.Generator
    pool: str = ""

    def chosen(self, measurements: Sequence[Measurements]) -> Choice:
        """The adjustment for these measurements."""
        hierarchy = measurements[0].hierarchy
        noisy = int(measurements[0].protected(len(hierarchy.by)).sum())
        fit = LeastSquares(tie_key=self.tie_key)
        if noisy < FEWEST_CELLS:
            return Choice(
                fit,
                f"{noisy} noisy cells are too few to learn their distribution from; it takes "
                f"{FEWEST_CELLS}",
            )
        width = 90 * float(max(each.laws[-1].scale for each in measurements))
        if hierarchy.cells * width > MOST_VALUES:
            return Choice(
                fit,
                f"the exact posterior of {hierarchy.cells:,} cells under this noise would take too "
                "long",
            )
        bayes = EmpiricalBayes(tie_key=self.tie_key, pool=self.pool)
        if noisy >= ENOUGH_CELLS:
            return Choice(
                bayes, f"{noisy:,} noisy cells are enough to learn their distribution from"
            )
        gaps = self._trials(measurements, fit, bayes)
        better, worse = (bayes, fit) if gaps.mean() <= 0 else (fit, bayes)
        percent = -100 * expm1(-abs(gaps.mean()))
        return Choice(
            better,
            f"in {len(gaps)} trials on tables like this one its squared error was "
            f"{percent:.0f}% lower than that of {worse.name}",
        )

    def _trials(
        self, measurements: Sequence[Measurements], fit: LeastSquares, bayes: EmpiricalBayes
    ) -> FloatArray:
        """Log-ratios of the squared error of empirical Bayes to that of least squares."""
        tables = [fit(measurements), bayes(measurements)]
        gaps: list[float] = []
        while len(gaps) < MOST_TRIALS:
            gap = 0.0
            for true in tables:
                again = [renewed(each, true, rng=self.rng) for each in measurements]
                ours, theirs = (method(again)[-1] - true[-1] for method in (bayes, fit))
                gap += log1p(float((ours**2).sum())) - log1p(float((theirs**2).sum()))
            gaps.append(gap / len(tables))
            clear = CLEAR * np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.inf
            if len(gaps) >= FEWEST_TRIALS and abs(np.mean(gaps)) > clear:
                break
        return np.array(gaps)

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        return self.chosen(measurements).adjustment(measurements)


def renewed(
    measured: Measurements, true: Sequence[IntArray], *, rng: np.random.Generator
) -> Measurements:
    """The same measurement of other counts, with noise of the same laws, exact where it was."""
    noise = [
        law.isf(1 - rng.random(len(t)) * (1 - 1e-16)) * measured.protected(level)
        for level, (law, t) in enumerate(zip(measured.laws, true, strict=True))
    ]
    return Measurements(
        hierarchy=measured.hierarchy,
        laws=measured.laws,
        noisy=tuple(t + z for t, z in zip(true, noise, strict=True)),
        exact=measured.exact,
    )
