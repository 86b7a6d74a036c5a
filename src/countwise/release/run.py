"""A release from a confidential table and a plan."""

import numpy as np

from countwise.adjust.auto import adjusted
from countwise.arrays import frozen
from countwise.noise import entropy
from countwise.progress import Tell, silent
from countwise.release.count_ranges import ranges_of
from countwise.release.document import Release, check_counts
from countwise.release.feasible import refuse_infeasible
from countwise.release.measure import measure
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential


def release(table: Confidential, plan: Plan, *, tell: Tell = silent) -> Release:
    """Measure the table with the plan's noise and adjust the result."""
    plan = plan.settled(table.hierarchy)
    refuse_infeasible(plan, table.hierarchy)
    budget = plan.budget(table.hierarchy)
    tell("drawing noise")
    measurements = measure(table, budget, noise=plan.noise)
    tell("making counts add up")
    tie_key = entropy.word() if plan.ties == "random" else None
    # The adjustment's own randomness protects no one: it is keyed afresh, not seeded.
    rng = np.random.default_rng([entropy.word() for _ in range(4)])
    made = adjusted(plan.adjustment(tie_key=tie_key, rng=rng), [measurements])
    check_counts(table.hierarchy, made.counts)
    tell("finding ranges")
    return Release(
        plan=plan,
        budget=budget,
        measurements=measurements,
        counts=tuple(frozen(each) for each in made.counts),
        tie_key=tie_key,
        method=plan.adjust if plan.adjust != "auto" else made.method,
        reason=made.reason,
        prior=made.prior,
        ranges=ranges_of(measurements),
    )
