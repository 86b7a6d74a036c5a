"""A release from a confidential table and a plan."""

from typing import cast

import numpy as np

from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.mode import Mode, Total
from countwise.adjust.protocol import Adjustment
from countwise.arrays import frozen
from countwise.privacy import entropy
from countwise.release.document import Release, Tell, check_counts, silent
from countwise.release.measure import measure
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential


def release(table: Confidential, plan: Plan, *, tell: Tell = silent) -> Release:
    """Measure the table with the plan's noise and adjust the result."""
    budget = plan.budget(table.hierarchy)
    tell("drawing noise")
    measurements = measure(table, budget, noise=plan.noise)
    tell("making counts add up")
    tie_key = entropy.word() if plan.ties == "random" else None
    counts = adjustment(plan, tie_key)([measurements])
    check_counts(table.hierarchy, counts)
    return Release(
        plan=plan,
        budget=budget,
        measurements=measurements,
        counts=tuple(frozen(each) for each in counts),
        tie_key=tie_key,
    )


def adjustment(plan: Plan, tie_key: int | None) -> Adjustment:
    """The plan's adjustment. Its own randomness, if any, protects no one and is keyed afresh."""
    total = cast(Total, plan.total)
    if plan.adjust == "mode":
        return Mode(tie_key=tie_key, total=total)
    rng = np.random.default_rng([entropy.word() for _ in range(4)])
    return MultinomialDraw(rng=rng, algorithm=1 if plan.adjust == "draw-1" else 2, total=total)
