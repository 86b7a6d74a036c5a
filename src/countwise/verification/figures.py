"""Data of the figures of Balmat, Barrientos & Reiter (2018), ours beside their samplers.

Their figure 1 shows posteriors of the share of partitions where a claim holds, for four vectors
of observed counts; their figure 3 the time the two samplers take. Noise enters their figure 1 by
one random draw that they do not give, so the noisy counts here are the observed ones.
"""

from collections.abc import Callable
from fractions import Fraction
from time import perf_counter
from typing import Any

import numpy as np

from countwise.arrays import FloatArray
from countwise.verification.gibbs import standard_draws, table_draws
from countwise.verification.posterior import Posterior

PARTITIONS, EPSILON = 50, Fraction(1)
OBSERVED = {"a": (5, 40, 5), "b": (15, 30, 5), "c": (30, 15, 5), "d": (40, 5, 5)}
SIZES = (10, 20, 30, 40, 50)
GRID = np.linspace(0.005, 0.995, 199)


def figure_1(*, rng: np.random.Generator, sweeps: int = 5000) -> list[dict[str, Any]]:
    """The four posteriors of r: density on a grid, summaries, and both samplers' quantiles."""
    panels = []
    for panel, counts in OBSERVED.items():
        noisy, alpha = np.array(counts, dtype=np.float64), np.ones(3)
        given: dict[str, Any] = {"partitions": PARTITIONS, "epsilon": EPSILON, "alpha": alpha}
        law = Posterior(noisy=noisy, **given).share([0], [0, 1])
        panels.append(
            {
                "panel": panel,
                "counts": list(counts),
                "r": GRID.tolist(),
                "density": law.density(GRID).tolist(),
                "exact": vars(law.summary()),
                "standard": _quantiles(standard_draws(noisy, rng=rng, sweeps=sweeps, **given)),
                "table": _quantiles(table_draws(noisy, rng=rng, sweeps=sweeps, **given)),
            }
        )
    return panels


def figure_3(
    *, rng: np.random.Generator, repetitions: int = 3, sizes: tuple[int, ...] = SIZES
) -> list[dict[str, Any]]:
    """Seconds for one posterior of M partitions: closed form, and 5,000 sweeps of each sampler."""
    found = []
    for size in sizes:
        noisy, alpha = rng.multinomial(size, [0.6, 0.3, 0.1]).astype(np.float64), np.ones(3)
        given: dict[str, Any] = {"partitions": size, "epsilon": EPSILON, "alpha": alpha}

        def closed(noisy: FloatArray = noisy, given: dict[str, Any] = given) -> None:
            Posterior(noisy=noisy, **given).share([0], [0, 1]).summary()

        def table(noisy: FloatArray = noisy, given: dict[str, Any] = given) -> None:
            _quantiles(table_draws(noisy, rng=rng, **given))

        def standard(noisy: FloatArray = noisy, given: dict[str, Any] = given) -> None:
            _quantiles(standard_draws(noisy, rng=rng, **given))

        found.append(
            {
                "partitions": size,
                "closed_form": seconds(closed, repetitions=50 * repetitions),
                "table": seconds(table, repetitions=repetitions),
                "standard": seconds(standard, repetitions=repetitions),
            }
        )
    return found


def seconds(work: Callable[[], None], *, repetitions: int) -> float:
    """The median time of a piece of work, after one run that does not count."""
    work()
    times = []
    for _ in range(repetitions):
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return float(np.median(times))


def _quantiles(draws: FloatArray) -> dict[str, float]:
    r = draws[:, 0] / (draws[:, 0] + draws[:, 1])
    lower, median, upper = np.quantile(r, [0.025, 0.5, 0.975])
    return {"median": float(median), "lower": float(lower), "upper": float(upper)}
