"""The certificate: what a release promises, for a person to read."""

from collections.abc import Sequence

import numpy as np

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.laws import Exact
from countwise.pages.imprint import Imprint
from countwise.pages.page import render
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named

MOST_NAMED = 12  # exact counts on the page; of more their number is said
EXAMPLE = 40  # people of the worked line, unless the noise is wider
TIES = {
    "random": "Where the adjustment had to break ties, it did so by a random order that is "
    "published there too and does not depend on the data.",
    "last": "Where the adjustment had to break ties, the last component was served first.",
}


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


def worked_line(budget: Budget, noise: Sequence[str]) -> str:
    """What noise does to one count of the finest level that has some; nothing where none has."""
    for each, within in reversed(list(zip(budget.levels, noise, strict=True))):
        if each.law.scale:
            reach = int("".join(filter(str.isdigit, within)))
            if not reach:
                continue  # next to no noise, of which the page warns
            true = max(EXAMPLE, 10 ** len(str(2 * reach)))
            return (
                f"For example, where {true:,} people are in a count of {each.level}, the noisy "
                f"count is from {true - reach:,} to {true + reach:,} in 95 of 100 releases."
            )
    return ""


def certificate(
    plan: Plan,
    budget: Budget,
    *,
    size: int,
    noise: Sequence[str],
    moved: Sequence[float | None],
    exact: Sequence[dict[str, object]] = (),
    tables: Sequence[tuple[str, ...]] = (),
    imprint: Imprint = Imprint(),  # noqa: B008
    **about: str,
) -> str:
    """The page, from published values only.

    `size` counts are published. `noise` is what that of each level or measured table stays within;
    `moved` is how far adjustment moved it, where that is published. `exact` are the nodes of each
    level that are; `tables` the accuracy of each that crosses.
    `about` has the adjustment used and why it was chosen, how ranges were found (nothing where
    there are none), the software version and the format.
    """
    promise = make_promise(plan.neighbours, budget)
    way = ADJUSTMENTS[about["method"]].words
    levels = [
        (
            each.level,
            f"{each.nodes:,}",
            f"{float(each.loss):.4g}",
            f"{float(each.law.scale):.3g}" if each.law.scale else "none",
            within,
            "not published" if mean is None else f"{mean:,.2f}",
        )
        for each, within, mean in zip(budget.levels, noise, moved, strict=True)
    ]
    return render(
        "certificate.html",
        title="Certificate of a release of counts",
        symbol=budget.symbol,
        losses=promise.facts(),
        nodes=size,
        mechanism=MECHANISMS[plan.mechanism].words,
        way=way,
        worked=worked_line(budget, noise),
        promise=promise.paragraphs(),
        sum_in_words=budget.sum_in_words(),
        warning=budget.warning(),
        levels=levels,
        exact=", ".join(
            each.level for each in budget.levels if isinstance(each.law, Exact) and not each.exact
        ),
        exact_nodes=exact,
        tables=tables,
        imprint=imprint,
        rows=plan.rows,
        bounded=bool(plan.person),
        ties=TIES[plan.ties] if about["method"] == "mode" else "",
        **about,
    )
