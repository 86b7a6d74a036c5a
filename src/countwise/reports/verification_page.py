"""A page that shows the answer to a request: verdict, posterior, and what they mean."""

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from markupsafe import Markup

from countwise.noise.numbers import written
from countwise.pages.page import render
from countwise.verification.answer import Answer
from countwise.verification.rules import (
    CONTRADICTED,
    MOSTLY_FAILS,
    MOSTLY_HOLDS,
    RULES,
    SUPPORTED,
    UNDECIDED,
)
from countwise.verification.share_chart import share_chart
from countwise.verification.wording import LEVEL

MARKS = {
    SUPPORTED: ("for", "✓"),
    MOSTLY_HOLDS: ("for", "✓"),
    UNDECIDED: ("open", "?"),
    MOSTLY_FAILS: ("against", "✗"),
    CONTRADICTED: ("against", "✗"),
}
"""Of each verdict its colour, and a sign for those who do not see it."""
FAMILIES = {
    "ols": "least squares",
    "logistic": "logistic regression",
    "poisson": "Poisson regression",
}


def answer_page(given: Answer) -> str:
    """The answer for a person to read; everything shown is computed from published fields."""
    return render("verification.html", **answer_facts(given))


def answer_facts(given: Answer) -> dict[str, Any]:
    """What the page says, for whoever puts it on a page of their own."""
    return {
        "title": "Answer to a claim",
        "kind": MARKS[given.verdict][0],
        "sign": MARKS[given.verdict][1],
        "verdict": given.verdict[0].upper() + given.verdict[1:],
        "claim": given.asked.get("claim"),
        "model": given.asked.get("model"),
        "family": FAMILIES.get(str(given.asked.get("family")), ""),
        "rehearsal": given.rehearsal,
        "sentences": given.sentences()[1:],
        "epsilon": written(given.epsilon),
        "partitions": given.partitions,
        "charts": charts(given),
        "level": f"{LEVEL:.0%}",
        "rows": _rows(given),
        "mechanism": given.mechanism,
        "meaning": given.meaning,
        "rules": RULES,
        "privacy": given.privacy,
        "version": version("countwise"),
    }


def charts(given: Answer) -> list[Mapping[str, str | Markup]]:
    """The density of r, or of each range's share when there are several."""
    if len(given.fitted) == 2:
        law, summary = given.shares[0]
        title = "r, the share of partitions where the claim holds"
        return [{"title": title, "svg": share_chart(law, summary, title=title)}]
    return [
        {
            "title": f"Share of partitions: {given.outcomes[j]}",
            "svg": share_chart(*given.shares[j], title=f"Share: {given.outcomes[j]}"),
        }
        for j in given.fitted
    ]


def _rows(given: Answer) -> list[tuple[str, ...]]:
    return [
        (
            name,
            f"{noisy:,.6g}",
            f"{found.median:.3f}",
            f"{found.lower:.3f} to {found.upper:.3f}",
        )
        for name, noisy, found in zip(given.outcomes, given.noisy, given.summaries, strict=True)
    ]
