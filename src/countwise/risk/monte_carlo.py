"""Expected squared error by simulation, with standard errors: any bins, any adjustment.

Every draw of noise is used with both signs, and the squared noise, whose mean is known, takes out
what it explains (a control variate): on the identity nothing is left to chance. All estimators
see the same noise, so their differences are known better than their risks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import sqrt

import numpy as np

from countwise.adjust.estimators import Estimator
from countwise.adjust.protocol import Adjustment
from countwise.arrays import FloatArray, IntArray
from countwise.noise.laws import IntegerLaw, Laplace
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.risk.simulation import simulate_measurements, simulate_noise, simulated_adjustment
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

NUMBERS_A_BATCH = 1 << 20  # eight megabytes of doubles

Noise = Laplace | IntegerLaw


def draw_noise(law: Noise, shape: tuple[int, ...], *, rng: np.random.Generator) -> FloatArray:
    """Noise for simulation."""
    if isinstance(law, Laplace):
        return rng.laplace(scale=float(law.scale), size=shape)
    size = int(np.prod(shape))
    return simulate_noise(law, size, rng=rng).reshape(shape).astype(np.float64)


@dataclass
class Tally:
    """Running means of losses y and a control c with known mean, merged batch by batch."""

    control_mean: float
    draws: int = 0
    means: FloatArray = field(default_factory=lambda: np.zeros(2))
    products: FloatArray = field(default_factory=lambda: np.zeros((2, 2)))

    def add(self, losses: FloatArray, controls: FloatArray) -> None:
        """A batch. Chan, Golub & LeVeque 1983."""
        batch = np.stack([losses, controls])
        means = batch.mean(axis=1)
        centred = batch - means[:, None]
        total = self.draws + len(losses)
        off = means - self.means
        weight = self.draws * len(losses) / total
        self.products += centred @ centred.T + weight * np.outer(off, off)
        self.means += off * len(losses) / total
        self.draws = total

    def result(self) -> tuple[float, float]:
        """The mean with the control taken out, and its standard error."""
        (yy, yc), (_, cc) = self.products
        slope = yc / cc if cc > 0 else 0.0
        mean = self.means[0] - slope * (self.means[1] - self.control_mean)
        left = max(yy - slope * yc, 0.0)
        return float(mean), sqrt(left / max(self.draws - 2, 1) / max(self.draws, 1))


def simulate_estimators(
    estimators: Sequence[Estimator],
    bins: FloatArray,
    law: Noise,
    *,
    draws: int,
    rng: np.random.Generator,
    tell: Tell = silent,
) -> list[tuple[float, float]]:
    """Expected squared error and standard error of each estimator on one histogram."""
    tallies = [Tally(control_mean=len(bins) * law.variance) for _ in estimators]
    batch = max(NUMBERS_A_BATCH // len(bins), 1)
    for done in range(0, draws, batch):
        noise = draw_noise(law, (min(batch, draws - done), len(bins)), rng=rng)
        control = (noise**2).sum(axis=1)
        for estimator, tally in zip(estimators, tallies, strict=True):
            tally.add(paired_losses(estimator, bins, noise, law), control)
        tell("drawing", done + len(noise), draws)
    return [tally.result() for tally in tallies]


def paired_losses(
    estimator: Estimator, bins: FloatArray, noise: FloatArray, law: Noise
) -> FloatArray:
    """The squared error with each row of noise, averaged over both signs."""
    losses = [
        ((estimator(bins + sign * noise, law=law) - bins) ** 2).sum(axis=-1) for sign in (1, -1)
    ]
    return np.asarray((losses[0] + losses[1]) / 2)


def simulate_plan(
    hierarchy: Hierarchy,
    cells: IntArray,
    plan: Plan,
    *,
    repetitions: int,
    rng: np.random.Generator,
) -> list[tuple[float, float]]:
    """Expected squared error and standard error of each level, over releases by a plan."""
    return simulate_adjustment(
        hierarchy,
        cells,
        plan.budget(hierarchy),
        lambda: simulated_adjustment(plan, rng=rng),
        repetitions=repetitions,
        rng=rng,
    )


def simulate_adjustment(
    hierarchy: Hierarchy,
    cells: IntArray,
    budget: Budget,
    adjustment: Callable[[], Adjustment],
    *,
    repetitions: int,
    rng: np.random.Generator,
) -> list[tuple[float, float]]:
    """Expected squared error and standard error of each level; a new adjustment each time."""
    true = hierarchy.sums(cells)
    tallies = [
        Tally(control_mean=(each.nodes - each.exact) * each.law.variance) for each in budget.levels
    ]
    for _ in range(repetitions):
        drawn = simulate_measurements(hierarchy, true, budget, rng=rng)
        mirrored = Measurements(
            hierarchy=hierarchy,
            laws=drawn.laws,
            noisy=tuple(2 * t - n for t, n in zip(true, drawn.noisy, strict=True)),
            exact=drawn.exact,
        )
        counts = [adjustment()([each]) for each in (drawn, mirrored)]
        for level, tally in enumerate(tallies):
            losses = [((count[level] - true[level]) ** 2).sum() for count in counts]
            noise = drawn.noisy[level] - true[level]
            # Joint noise has another variance than its levels' laws: no control then.
            control = 0.0 if budget.joint else float((noise**2).sum())
            tally.add(np.array([sum(losses) / 2]), np.array([control]))
    return [tally.result() for tally in tallies]
