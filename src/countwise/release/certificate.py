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
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named

PROMISES = {
    "add-remove": "Whether or not any one person is in the records",
    "replace-one": "If the rows of any one person were those of another who is in the records too",
}
MOST_NAMED = 12
TIES = {
    "random": "Where the adjustment had to break ties, it did so by a random order that is "
    "published there too and does not depend on the data.",
    "last": "Where the adjustment had to break ties, the last component was served first.",
}


def given_in_words(plan: Plan, budget: Budget) -> str:
    """What the promise still means where counts are published without noise."""
    count = sum(each.exact for each in budget.levels)
    one = count == 1
    opening = (
        f"{count:,} count{'' if one else 's'} {'is' if one else 'are'} published without noise and "
        f"{'is' if one else 'are'} not protected. The promise holds between tables that agree on "
        f"{'it' if one else 'all of them'}: "
    )
    if plan.neighbours == "replace-one":
        return opening + (
            "a person may be replaced by another who is counted in the same exact counts, at the "
            "loss stated. What the exact counts themselves tell is not bounded."
        )
    outside = (
        "everyone is counted in the exact total. "
        if budget.exact is not None and budget.exact[0][0]
        else "someone counted in none of them may come or go, at the loss stated. "
    )
    return f"{opening}{outside}" + (
        "That someone is counted in an exact count is not hidden; hidden is only where below it, "
        "between cells that are not exact themselves, at a loss of at most "
        f"{budget.symbol} = {written(2 * budget.loss)}."
    )


def exact_nodes(budget: Budget, hierarchy: Hierarchy) -> list[dict[str, object]]:
    """For each level with exact counts, how many and the names of the first."""
    if budget.invariants is None:
        return []
    known = budget.invariants
    return [
        {
            "level": each.level,
            "count": each.exact,
            "zeros": int(zeros.sum()),
            "names": ", ".join(
                named(hierarchy, i, int(node)) for node in np.flatnonzero(mask)[:MOST_NAMED]
            ),
            "more": max(each.exact - MOST_NAMED, 0),
        }
        for i, (each, mask, zeros) in enumerate(
            zip(budget.levels, known.exact, known.zeros, strict=True)
        )
        if each.exact
    ]


def certificate(
    plan: Plan,
    budget: Budget,
    measurements: Measurements,
    counts: Sequence[IntArray],
    *,
    moved: Sequence[float] | None = None,
    **about: str,
) -> str:
    """The page, from published values only.

    `moved` is how far adjustment moved each level, given where the counts are nowhere whole.
    `about` has the adjustment used and why it was chosen, how ranges were found (nothing where
    there are none), the software version and the format.
    """
    at_most = "at most " if budget.joint else ""
    if moved is None:
        pairs = zip(counts, measurements.noisy, strict=True)
        moved = [float(np.abs(count - noisy).mean()) for count, noisy in pairs]
    levels = [
        (
            each.level,
            f"{each.nodes:,}",
            written(each.loss),
            written(each.law.scale) if each.law.scale else "none",
            f"{at_most}±{each.law.margin(0.95):,}" if each.law.scale else "exact",
            f"{mean:,.2f}",
        )
        for each, mean in zip(budget.levels, moved, strict=True)
    ]
    return render(
        "certificate.html",
        title="Certificate of a release of counts",
        symbol=budget.symbol,
        loss=written(budget.loss),
        loss_in_words=budget.in_words(),
        factor=f"{exp(budget.loss):.2f}" if budget.loss < 20 else None,
        nodes=sum(each.nodes for each in budget.levels),
        mechanism=plan.mechanism,
        promise=PROMISES[plan.neighbours],
        sum_in_words=budget.sum_in_words(),
        warning=budget.warning(),
        levels=levels,
        exact=", ".join(
            each.level for each in budget.levels if isinstance(each.law, Exact) and not each.exact
        ),
        given=given_in_words(plan, budget) if budget.exact else "",
        exact_nodes=exact_nodes(budget, measurements.hierarchy),
        rows=plan.rows,
        bounded=bool(plan.person),
        ties=TIES[plan.ties] if about["method"] == "mode" else "",
        **about,
    )
