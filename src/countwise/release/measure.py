"""The privacy boundary: true counts go in, noisy counts come out, and nothing else does."""

from typing import overload

import numpy as np

from countwise.arrays import BoolArray, IntArray, frozen
from countwise.margins.measurement import Measurement
from countwise.noise import opendp_backend, sampling
from countwise.noise.joint import joint_noise
from countwise.release.budget import Budget
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_invariants import refuse_people
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements
from countwise.tables.notation import margin_of
from countwise.tables.workload import Workload

SAMPLERS = {"exact": sampling.sample, "opendp": opendp_backend.sample}


@overload
def measure(table: Confidential, budget: Budget, *, noise: str = "exact") -> Measurements: ...
@overload
def measure(
    table: Confidential[Workload], budget: Budget, *, noise: str = "exact"
) -> tuple[Measurement, ...]: ...
def measure(
    table: Confidential | Confidential[Workload], budget: Budget, *, noise: str = "exact"
) -> Measurements | tuple[Measurement, ...]:
    """A noisy count of every node of every level, each with fresh noise of its level's law.

    Of tables that cross, of every node of every margin in the budget. Counts that the budget has as
    invariants come out as they are.
    """
    cells, known = table.reveal(), budget.invariants
    if isinstance(table.space, Workload):
        return _noisy_margins(table.space, cells, budget, noise=noise)
    hierarchy = table.space
    if known is not None:
        known.refuse_people_in_zeros(hierarchy, cells)
    drawn = draw_noise(hierarchy, budget, noise=noise)
    noisy = tuple(
        frozen(counts + z) for counts, z in zip(hierarchy.sums(cells), drawn, strict=True)
    )
    return Measurements(hierarchy=hierarchy, laws=budget.laws, noisy=noisy, exact=budget.exact)


def _noisy_margins(
    workload: Workload, cells: IntArray, budget: Budget, *, noise: str
) -> tuple[Measurement, ...]:
    """Every margin of the budget: its true counts, and the noise of its law beside each."""
    if budget.invariants is not None:
        refuse_people(workload, cells, budget.invariants)
    grid, found = cells.reshape(workload.shape), []
    for i, each in enumerate(budget.levels):
        margin = margin_of(each.level, workload.names)
        true = workload.sums(grid, margin)
        drawn = SAMPLERS[noise](each.law, true.size).reshape(true.shape)
        known = exact_counts(budget, i, true.shape)
        noisy = true + drawn if known is None else true + np.where(known, 0, drawn)
        found.append(Measurement(margin=margin, law=each.law, noisy=frozen(noisy), exact=known))
    return tuple(found)


def exact_counts(budget: Budget, i: int, shape: tuple[int, ...]) -> BoolArray | None:
    """Which counts of a measured table carry no noise; None where all do."""
    if not budget.levels[i].law.scale:
        return np.ones(shape, dtype=np.bool_)
    if budget.exact is None or not budget.exact[i].any():
        return None
    return budget.exact[i].reshape(shape)


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
