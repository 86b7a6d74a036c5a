"""Whether a release can be made at all, known from its plan and public shapes before it is paid.

Once noise is drawn its loss is spent, whatever becomes of the run. So what the noise and the
adjustment will need is asked before.
"""

import os

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.errors import PlanError
from countwise.noise import joint, opendp_backend, sampling
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.provenance import Provenance
from countwise.tables.workload import Workload

BYTES_A_NODE = 100
LEARNING_BYTES_A_NODE = 300
"""Memory at its peak: 32 to 80 bytes a count, and 262 where a prior is fitted, as measured on
200,000 cells. The default `auto` learns from five million cells at most."""
BYTES_A_CELL, BYTES_A_COUNT = 200, 80
"""Memory of tables that cross, at its peak: measured on 100,000 and 400,000 cells, 22 tables."""


def refuse_infeasible(plan: Plan, space: Hierarchy | Workload) -> None:
    """Refuse a release in memory whose noise can not be drawn or whose counts can not be held."""
    plan = plan.settled(space)
    refuse_undrawable(plan, plan.budget(space))
    if isinstance(space, Workload):
        refuse_too_many(plan.workload(space))
        return
    hierarchy = space
    learns = ADJUSTMENTS[plan.adjust].learns
    needed = hierarchy.nodes * (LEARNING_BYTES_A_NODE if learns else BYTES_A_NODE)
    if needed > memory():
        raise PlanError(
            f"adjust {plan.adjust} takes about {needed / 1e9:,.3g} GB for {hierarchy.nodes:,} "
            f"counts, and this machine has {memory() / 1e9:,.3g} GB. To fix, use a larger machine, "
            "fewer levels, or adjust least-squares, which releases large tables in pieces."
        )


def refuse_too_many(workload: Workload) -> None:
    """Refuse tables whose cells and counts can not be held."""
    needed = BYTES_A_CELL * workload.cells
    needed += BYTES_A_COUNT * sum(map(workload.size, workload.margins))
    if needed > memory():
        raise PlanError(
            f"{workload.cells:,} cells and the tables made from them take about "
            f"{needed / 1e9:,.3g} GB, and this machine has {memory() / 1e9:,.3g} GB. To fix, use a "
            "larger machine, or leave out a variable or its finest level."
        )


def refuse_undrawable(plan: Plan, budget: Budget) -> None:
    """Refuse noise that its backend does not have."""
    if plan.noise == "opendp":
        for law in budget.laws:
            opendp_backend.refuse_missing(law)
        return
    for law in budget.laws:
        sampling.refuse_too_wide(law)
    if budget.joint and budget.invariants is None:
        joint.refuse_rare([each.nodes for each in budget.levels], budget.laws)


def memory() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def refuse_more_rows(plan: Plan, counted: Provenance) -> None:
    """Refuse a plan for fewer rows of a person than the table was counted with."""
    if counted.rows is not None and counted.rows > plan.rows:
        raise PlanError(
            f"the table was counted with up to {counted.rows} rows a person, and the plan promises "
            f"protection for {plan.rows}. To fix, use --rows {counted.rows}."
        )
