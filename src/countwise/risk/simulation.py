"""What a plan would do to a table: repeated releases of public stand-in counts."""

from dataclasses import dataclass
from math import expm1

import numpy as np

from countwise.adjust.protocol import Adjustment
from countwise.arrays import FloatArray, IntArray
from countwise.noise.joint import joint_noise
from countwise.noise.laws import IntegerLaw
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True)
class LevelError:
    """Distance from the true count that 95% of a level's counts stay within, by simulation."""

    level: str
    before: float
    after: float
    mean_after: float


def simulate_noise(law: IntegerLaw, size: int, *, rng: np.random.Generator) -> IntArray:
    """Draws of a noise law for simulation, by inverting its tail in floating point."""
    return law.isf(1 - rng.random(size) * (1 - 1e-16))


def simulate_measurements(
    hierarchy: Hierarchy, true: tuple[IntArray, ...], budget: Budget, *, rng: np.random.Generator
) -> Measurements:
    """One set of noisy counts of the given true ones."""
    if budget.joint:
        cells = joint_noise(
            hierarchy.offsets,
            budget.laws,
            sample=lambda law, size: simulate_noise(law, size, rng=rng),
            magnitude=lambda scale, size: rng.geometric(-expm1(-1 / scale), size) - 1,
            exact=budget.exact,
        )
        noise = hierarchy.sums(cells)
    else:
        noise = tuple(
            simulate_noise(law, len(c), rng=rng) for c, law in zip(true, budget.laws, strict=True)
        )
    if budget.exact is not None:
        noise = tuple(np.where(e, 0, z) for e, z in zip(budget.exact, noise, strict=True))
    noisy = tuple(count + z for count, z in zip(true, noise, strict=True))
    return Measurements(hierarchy=hierarchy, laws=budget.laws, noisy=noisy, exact=budget.exact)


def simulated_adjustment(plan: Plan, *, rng: np.random.Generator) -> Adjustment:
    """The plan's adjustment with its random choices taken from `rng`."""
    tie_key = int(rng.integers(2**63)) if plan.ties == "random" else None
    return plan.adjustment(tie_key=tie_key, rng=rng)


def expected_errors(
    hierarchy: Hierarchy,
    cells: IntArray,
    plan: Plan,
    *,
    repetitions: int,
    rng: np.random.Generator,
    tell: Tell = silent,
) -> list[LevelError]:
    """Errors of repeated releases of stand-in counts, level by level."""
    budget = plan.budget(hierarchy)
    true = hierarchy.sums(cells)
    before: list[list[FloatArray]] = [[] for _ in true]
    after: list[list[FloatArray]] = [[] for _ in true]
    for repetition in range(repetitions):
        tell("simulating releases", repetition, repetitions)
        measurements = simulate_measurements(hierarchy, true, budget, rng=rng)
        counts = simulated_adjustment(plan, rng=rng)([measurements])
        for level, count in enumerate(true):
            before[level].append(np.abs(measurements.noisy[level] - count))
            after[level].append(np.abs(counts[level] - count))
    return [
        LevelError(
            level=name,
            before=float(np.quantile(np.concatenate(before[level]), 0.95)),
            after=float(np.quantile(np.concatenate(after[level]), 0.95)),
            mean_after=float(np.concatenate(after[level]).mean()),
        )
        for level, name in enumerate(hierarchy.levels)
    ]
