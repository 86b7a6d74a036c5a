"""The privacy boundary: true counts go in, noisy counts come out, and nothing else does."""

import numpy as np

from countwise.arrays import IntArray, frozen
from countwise.noise import opendp_backend, sampling
from countwise.noise.joint import joint_noise
from countwise.release.budget import Budget
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

SAMPLERS = {"exact": sampling.sample, "opendp": opendp_backend.sample}


def measure(table: Confidential, budget: Budget, *, noise: str = "exact") -> Measurements:
    """A noisy count of every node of every level, each with fresh noise of its level's law.

    Counts that the budget has as invariants come out as they are.
    """
    cells, known = table.reveal(), budget.invariants
    if known is not None:
        known.refuse_people_in_zeros(table.hierarchy, cells)
    true = table.hierarchy.sums(cells)
    drawn = draw_noise(table.hierarchy, budget, noise=noise)
    noisy = tuple(frozen(counts + z) for counts, z in zip(true, drawn, strict=True))
    return Measurements(
        hierarchy=table.hierarchy, laws=budget.laws, noisy=noisy, exact=budget.exact
    )


def draw_noise(hierarchy: Hierarchy, budget: Budget, *, noise: str) -> tuple[IntArray, ...]:
    """Noise for every node: independent, or drawn jointly so that it adds up."""
    sample, exact = SAMPLERS[noise], budget.exact
    if budget.joint:
        magnitude = sampling.sample_magnitude
        cells = joint_noise(
            hierarchy.offsets, budget.laws, sample=sample, magnitude=magnitude, exact=exact
        )
        return hierarchy.sums(cells)
    return tuple(
        sample(law, size) if exact is None else np.where(exact[level], 0, sample(law, size))
        for level, (law, size) in enumerate(zip(budget.laws, hierarchy.sizes, strict=True))
    )
