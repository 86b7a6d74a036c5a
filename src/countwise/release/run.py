"""A release from a confidential table and a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast, overload

import numpy as np

from countwise.arrays import IntArray, frozen
from countwise.margins.measurement import Measurement
from countwise.margins.whole import Method, whole_cells
from countwise.noise import entropy
from countwise.pages.imprint import today
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.count_ranges import crossed_ranges, ranges_of
from countwise.release.crossed_release import CrossedRelease, check_margins
from countwise.release.document import Release, check_counts
from countwise.release.feasible import refuse_infeasible
from countwise.release.measure import measure
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential
from countwise.tables.measurements import Measurements
from countwise.tables.workload import Workload


@overload
def release(table: Confidential, plan: Plan, *, tell: Tell = silent) -> Release: ...
@overload
def release(
    table: Confidential[Workload], plan: Plan, *, tell: Tell = silent
) -> CrossedRelease: ...
def release(
    table: Confidential | Confidential[Workload], plan: Plan, *, tell: Tell = silent
) -> Release | CrossedRelease:
    """Measure the table with the plan's noise and adjust the result."""
    plan = plan.settled(table.space)
    refuse_infeasible(plan, table.space)
    budget = plan.budget(table.space)
    tell("drawing noise")
    measured = measure(table, budget, noise=plan.noise)
    tell("making counts add up")
    if isinstance(measured, Measurements):
        return _tree(plan, budget, measured, tell)
    assert isinstance(table.space, Workload)
    return _tables(plan, budget, plan.workload(table.space), measured, tell)


def _fresh() -> np.random.Generator:
    """The adjustment's own randomness protects no one: it is keyed afresh, not seeded."""
    return np.random.default_rng([entropy.word() for _ in range(4)])


def _tree(plan: Plan, budget: Budget, measurements: Measurements, tell: Tell) -> Release:
    tie_key = entropy.word() if plan.ties == "random" else None
    made = plan.adjustment(tie_key=tie_key, rng=_fresh()).adjusted([measurements])
    check_counts(measurements.hierarchy, made.counts)
    tell("finding ranges")
    return Release(
        plan=plan,
        budget=budget,
        measurements=measurements,
        counts=tuple(frozen(each) for each in made.counts),
        tie_key=tie_key,
        method=made.method,
        reason=made.reason,
        prior=made.prior,
        ranges=ranges_of(measurements),
        made=today(),
    )


def _tables(
    plan: Plan,
    budget: Budget,
    workload: Workload,
    measurements: tuple[Measurement, ...],
    tell: Tell,
) -> CrossedRelease:
    made = adjusted_tables(workload, measurements, method=cast(Method, plan.adjust))
    tell("finding ranges")
    return CrossedRelease(
        plan=plan,
        budget=budget,
        workload=workload,
        measurements=measurements,
        counts=made.counts,
        method=made.method,
        reason=made.reason,
        ranges=crossed_ranges(workload, measurements),
        made=today(),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class AdjustedTables:
    """Counts of published tables that agree, the method that made them, and why it was taken."""

    counts: tuple[IntArray, ...]
    method: str
    reason: str


def adjusted_tables(
    workload: Workload, measurements: Sequence[Measurement], *, method: Method
) -> AdjustedTables:
    """Every published margin as a sum of the same whole cells."""
    made = whole_cells(workload, measurements, method=method, rng=_fresh())
    counts = tuple(frozen(workload.sums(made.cells, each)) for each in workload.margins)
    check_margins(workload, counts)
    return AdjustedTables(counts=counts, method=made.method, reason=made.reason)
