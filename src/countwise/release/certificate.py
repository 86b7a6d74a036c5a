"""The certificate: what a release promises, for a person to read."""

from collections.abc import Sequence
from math import exp

import numpy as np

from countwise.arrays import IntArray
from countwise.pages.page import render
from countwise.privacy.epsilon import written
from countwise.privacy.laws import Exact
from countwise.privacy.measurements import Measurements
from countwise.release.budget import Budget
from countwise.release.plan import Plan

PROMISES = {
    "add-remove": "Whether or not any one person is in the records",
    "replace-one": "If the rows of any one person were those of another who is in the records too",
}
TIES = {
    "random": "Where the adjustment had to break ties, it did so by a random order that is "
    "published there too and does not depend on the data.",
    "last": "Where the adjustment had to break ties, the last component was served first.",
}


def certificate(
    plan: Plan, budget: Budget, measurements: Measurements, counts: Sequence[IntArray], **about: str
) -> str:
    """The page, from published values only; `about` has the software version and format."""
    at_most = "at most " if budget.joint else ""
    levels = [
        (
            each.level,
            f"{each.nodes:,}",
            written(each.loss),
            written(each.law.scale) if each.law.scale else "none",
            f"{at_most}±{each.law.margin(0.95):,}" if each.law.scale else "exact",
            f"{np.abs(count - noisy).mean():,.2f}",
        )
        for each, count, noisy in zip(budget.levels, counts, measurements.noisy, strict=True)
    ]
    return render(
        "certificate.html",
        title="Certificate of a release of counts",
        symbol=budget.symbol,
        loss=written(budget.loss),
        loss_in_words=budget.in_words(),
        factor=f"{exp(budget.loss):.2f}" if budget.loss < 20 else None,
        nodes=measurements.hierarchy.nodes,
        mechanism=plan.mechanism,
        adjust=plan.adjust,
        promise=PROMISES[plan.neighbours],
        sum_in_words=budget.sum_in_words(),
        levels=levels,
        exact=", ".join(each.level for each in budget.levels if isinstance(each.law, Exact)),
        rows=plan.rows,
        bounded=bool(plan.person),
        ties=TIES[plan.ties] if plan.adjust == "mode" else "",
        **about,
    )
