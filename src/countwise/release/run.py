"""A release from a confidential table and a plan."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast, overload

import numpy as np

from countwise.arrays import IntArray, frozen
from countwise.margins.measurement import Measurement
from countwise.margins.whole import Method, whole_cells
from countwise.noise import entropy
from countwise.pages.imprint import today
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.checkpoints import MemoryStore
from countwise.release.count_ranges import crossed_ranges, ranges_of
from countwise.release.crossed_release import CrossedRelease, check_margins
from countwise.release.document import Release
from countwise.release.feasible import refuse_infeasible, refuse_more_rows
from countwise.release.measure import measure
from countwise.release.piece_tasks import TaskContext
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential
from countwise.tables.cut import uncut
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
    refuse_more_rows(plan, table.provenance)
    plan = plan.settled(table.space)
    refuse_infeasible(plan, table.space)
    budget = plan.budget(table.space)
    space = table.space
    if isinstance(space, Workload):
        crossed = cast("Confidential[Workload]", table)
        return _tables(crossed, plan, budget, plan.workload(space), tell)
    return _tree(cast("Confidential", table), plan, budget, tell)


def chosen_at_random(plan: Plan) -> dict[str, Any]:
    """What a run of a plan decides at random but for its noise.

    The adjustment's own randomness protects no one: it is keyed afresh, not seeded.
    """
    return {
        "tie_key": entropy.word() if plan.ties == "random" else None,
        "adjust_key": [entropy.word() for _ in range(4)],
    }


def _tree(table: Confidential, plan: Plan, budget: Budget, tell: Tell) -> Release:
    """A tree that is not cut is all top: it is measured and adjusted at once."""
    work = TaskContext(
        plan=plan,
        budget=budget,
        method=plan.adjust,
        cut=uncut(table.hierarchy),
        store=MemoryStore(),
        seal=b"",
        **chosen_at_random(plan),
    )
    tell("drawing noise")
    work.measure_top(table)
    tell("making counts add up")
    made, measurements = work.adjust_top(), work.top_measurements()
    tell("finding ranges")
    return Release(
        plan=plan,
        budget=budget,
        measurements=measurements,
        counts=tuple(frozen(each) for each in made.counts),
        tie_key=work.tie_key,
        method=made.method,
        reason=made.reason,
        prior=made.prior,
        ranges=ranges_of(measurements),
        made=today(),
    )


def _tables(
    table: Confidential[Workload], plan: Plan, budget: Budget, workload: Workload, tell: Tell
) -> CrossedRelease:
    """Tables that cross are held whole."""
    tell("drawing noise")
    measurements = measure(table, budget, noise=plan.noise)
    tell("making counts add up")
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
    rng = np.random.default_rng([entropy.word() for _ in range(4)])
    made = whole_cells(
        workload,
        measurements,
        method=method,
        rng=rng,
    )
    counts = tuple(frozen(workload.sums(made.cells, each)) for each in workload.margins)
    check_margins(workload, counts)
    return AdjustedTables(counts=counts, method=made.method, reason=made.reason)
