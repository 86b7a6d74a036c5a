"""The certificate: what a release promises, for a person to read."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.laws import Exact
from countwise.pages.text_blocks import (
    FactList,
    Figures,
    Heading,
    Items,
    Paragraph,
    Span,
    TextBlock,
    code,
    strong,
    words,
)
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named

MOST_NAMED = 12  # exact counts on the page; of more their number is said
EXAMPLE = 40  # people of the worked line, unless the noise is wider
LEAD = (
    "The counts in this folder were made from confidential records by adding random noise and then "
    "adjusting the result so that every count is a whole number, none is negative, and the parts "
    "add up to their totals. This page says what that promises to the people behind the counts, "
    "and what to expect of the numbers."
)
SAME_CELLS = (
    "Every published table is the sum of the same whole cells, so any two agree wherever they have "
    "counts in common. A table that was not measured itself is made from those that were. The "
    "figures do not depend on the size of the counts; near zero, where no count is negative, "
    "errors are smaller."
)
NOISE_WITHIN = (
    "“Noise within” is the distance from the true count that the noise alone stays within in 95 of "
    "100 cases; it does not depend on the size of the count. The adjustment then moves counts by "
    "the amount in the last column, measured on the published noisy counts. Less than the noise is "
    "as it should be; much more says that many counts are near zero, where what is noisy falls "
    "below it and has to be lifted."
)
RANGES = {"exact": "the laws of all noises are computed exactly"}
NORMAL_RANGES = (
    "the noise of the count itself is computed exactly, and that of all others is taken as normal"
)
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
    exact: Sequence[dict[str, Any]] = (),
    tables: Sequence[tuple[str, ...]] = (),
    **about: str,
) -> list[TextBlock]:
    """What it says, part by part, from published values only.

    `size` counts are published. `noise` is what that of each level or measured table stays within;
    `moved` is how far adjustment moved it, where that is published. `exact` are the nodes of each
    level that are; `tables` the accuracy of each that crosses.
    `about` has the adjustment used and why it was chosen, how ranges were found (nothing where
    there are none), the software version and the format.
    """
    return [
        Heading("Certificate of this release", level=1),
        Paragraph(words(LEAD), role="lead"),
        *_facts(plan, budget, size, noise, ADJUSTMENTS[about["method"]].words),
        *_promised(plan, budget, exact=bool(exact), crossed=bool(tables)),
        *_expected(budget, noise, moved, tables, about),
        *_unprotected(exact),
        Heading("What is not promised"),
        Items([words(each) for each in _not_promised(plan)]),
        *_computing(plan, about, crossed=bool(tables)),
    ]


def _facts(
    plan: Plan, budget: Budget, size: int, noise: Sequence[str], way: str
) -> Iterator[TextBlock]:
    """What was spent, published and done, and an example of it."""
    yield FactList(
        [
            *make_promise(plan.neighbours, budget).facts(),
            ("Published counts", f"{size:,}"),
            ("Noise", _begun(MECHANISMS[plan.mechanism].words)),
            ("Then made to add up by", _begun(way)),
        ]
    )
    worked = worked_line(budget, noise)
    if worked:
        yield Paragraph(words(worked))


def _begun(text: str) -> str:
    """Words as they begin a line."""
    return text[0].upper() + text[1:]


def _promised(plan: Plan, budget: Budget, *, exact: bool, crossed: bool) -> Iterator[TextBlock]:
    yield Heading("What is promised")
    for paragraph in make_promise(plan.neighbours, budget).paragraphs():
        yield Paragraph((Span(paragraph, "powers"),))
    beyond = ", beyond what the exact counts say" if exact else ""
    yield Paragraph(
        words(
            "This bounds what anyone can learn about one person from these files, whatever else "
            f"they know, now and later{beyond}. The smaller {budget.symbol}, the stronger the "
            "promise."
        )
    )
    unit, by = ("measured table", "table by table") if crossed else ("level", "level by level")
    yield Paragraph(
        words(
            f"The loss {'spent ' if exact else ''}adds up {by}: {budget.sum_in_words()}. The cells "
            f"of one {unit} are disjoint, so a {unit} costs once what one of its cells costs."
        )
    )
    if not plan.person:
        yield Paragraph(
            words(
                strong("Taken on trust:"),
                f" that nobody has more than {_rows(plan)} in the records. It was stated, and not "
                "enforced when they were counted for this release.",
            )
        )


def _expected(
    budget: Budget,
    noise: Sequence[str],
    moved: Sequence[float | None],
    tables: Sequence[tuple[str, ...]],
    about: Mapping[str, str],
) -> Iterator[TextBlock]:
    """Errors of tables, noise of all that was measured, ranges, warnings and the adjustment."""
    yield Heading("What to expect of the numbers")
    if tables:
        columns = ("Table", "Counts", "As drawn", "After least squares")
        yield Figures("Published tables: what 95 of 100 errors stay within", columns, tables)
        yield Paragraph(words(SAME_CELLS))
    yield Figures(
        f"Noise and adjustment, {'table by table' if tables else 'level by level'}",
        (
            "Measured table" if tables else "Level",
            "Counts",
            budget.symbol,
            "Noise scale",
            "Noise within, 95%",
            "Moved by the adjustment, on average",
        ),
        [
            (
                each.level,
                f"{each.nodes:,}",
                f"{float(each.loss):.4g}",
                f"{float(each.law.scale):.3g}" if each.law.scale else "none",
                within,
                "not published" if mean is None else f"{mean:,.2f}",
            )
            for each, within, mean in zip(budget.levels, noise, moved, strict=True)
        ],
    )
    yield Paragraph(words(NOISE_WITHIN))
    if about["ranges"]:
        yield Paragraph(
            words(
                "Beside every count stand ", code("low"), " and ", code("high"),
                ": in 95 of 100 releases, or more near zero, the true count is between them, "
                "whatever it is. They follow from the noisy counts alone and assume nothing of the "
                f"other counts; {RANGES.get(about['ranges'], NORMAL_RANGES)}.",
            )
        )  # fmt: skip
    if budget.warning():
        yield Paragraph(words(strong(budget.warning())))
    if about["reason"]:
        yield Paragraph(
            words(
                "The adjustment, ", code(about["method"]),
                f", was chosen from the noisy counts alone: {about['reason']}.",
            )
        )  # fmt: skip
    free = [each.level for each in budget.levels if isinstance(each.law, Exact) and not each.exact]
    if free:
        yield Paragraph(
            words(
                strong("Not protected:"),
                f" the counts of {', '.join(free)} carry no noise, because under the chosen notion "
                "of neighbours no person can change them.",
            )
        )


def _unprotected(exact: Sequence[Mapping[str, Any]]) -> Iterator[TextBlock]:
    """The counts that are published as they are."""
    if not exact:
        return
    yield Heading("What is not protected")
    yield Paragraph(
        words(
            "These counts are published as they are. They say of everyone counted in them that "
            "they are."
        )
    )
    yield Items([words(_exact_line(each)) for each in exact])


def _exact_line(row: Mapping[str, Any]) -> str:
    zeros = row["zeros"]
    empty = f", {zeros:,} of them cells or totals that can only be zero" if zeros else ""
    more = f" and {row['more']:,} more" if row["more"] else ""
    return f"{row['level']}: {row['count']:,} exact{empty} ({row['names']}{more})"


def _not_promised(plan: Plan) -> list[str]:
    rows, were = _rows(plan), "was" if plan.rows == 1 else "were"
    bounded = (
        f"Of each person at most {rows} of the records {were} counted, chosen at random: the "
        "counts are of those rows."
    )
    trusted = f"A person with more than {rows} in the records is protected less, in proportion."
    return [
        "Nothing is hidden about groups: a fact true of many people can be learned from any useful "
        "table.",
        bounded if plan.person else trusted,
        "Other releases from the same records add their own loss to this one.",
        "The list of cells was declared public. It is published as it is.",
        "Errors made before the noise was added (miscounts, duplicates, late reports) are still "
        "there.",
    ]


def _rows(plan: Plan) -> str:
    return f"{plan.rows} row{'' if plan.rows == 1 else 's'}"


def _computing(plan: Plan, about: Mapping[str, str], *, crossed: bool) -> Iterator[TextBlock]:
    """What the files hold, and what made them."""
    unit = "measured table" if crossed else "level"
    ties = f" {TIES[plan.ties]}" if about["method"] == "mode" else ""
    yield Heading("For those who compute with it")
    yield Paragraph(
        words(
            code("counts.parquet"), ", and ", code("counts.csv"),
            " unless the table is too large for one, hold the adjusted counts of every "
            f"{'table' if crossed else 'level'}. ", code("measurements.parquet"),
            " holds the noisy counts as they were drawn, also those below 0, and ",
            code("release.json"), f" the exact noise law of each {unit}: together they are all "
            f"that can be known, and the better start for any estimate.{ties}",
        )
    )  # fmt: skip
    made = f"Made by countwise {about['version']}, release format {about['format']}."
    yield Paragraph(words(made), role="footer")
