"""The figures of `accuracy.py` as a page."""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from least_worst import Best

OWN = ("default", "all defaults")
LOSING = 1.03
PROMISED = 0.93
ENOUGH_CASES = 1000
MARK = "**✗**"
FEWEST = 10

HEAD = """# Accuracy at the same privacy loss

Made by one command, `python benchmarks/accuracy.py --json figures.json --out docs/accuracy.md`;
nothing on this page is typed in. Every method of a table is fed the same noisy counts and releases
whole numbers that are not negative and add up. The figures are root mean squared errors over the
nodes of a level and over releases. The last columns divide the error of the default
(`--adjust auto`) by that of the best other method of the level, best in these very releases: below
1 the default is better. ± is one standard error, from the paired releases. Where
there is a column *all defaults*, it is of releases of the same whole loss that leave split and
noise to the planner too: other noise, so it stands beside and takes no part.

A level is marked ✗ where the default is more than 3% worse than the best beyond two standard
errors (more of them by Student's t where releases are few; with fewer than ten there is a question
mark), and a range ✗ where it holds the truth in fewer than 93% of 1,000 or more cases. What was
known before (the scenarios of Wang & Reiter 2021, tables of earlier versions of this page) stands
apart from tables of kinds that no adjustment was tuned on.

The methods, each in the best form we know:

- *least squares*: the best linear estimates of the whole tree, projected from the root down.
- *mode*: that of the multinomial (Wang & Reiter 2021).
- *Webster*, *Hamilton*: divisor method and largest remainders on the clipped estimates from below.
- *OSQP*: least squares to the parent's count by that solver, estimates from below, as in the 2020
  census but for these estimates, and largest remainders.
- *NNLS*: the x ≥ 0 of least Σ (Ax − y)²/v over all nodes of the tree at once, solved exactly, then
  rounded so that all adds up.
- *James–Stein*: positive part, a factor for each level, towards the parents' even share or the
  share of the label, whichever has the smaller estimated risk.
- *normal EB*: counts normal about the same targets t with variance a·tᵖ, p = 0, 1, 2, noise of each
  node's own variance; a, p and target by maximum likelihood for each level.
- *neg. binomial EB*: least squares above the cells; cells negative binomial about a mixture of
  their parent's and the whole level's share, shape and mixture by maximum likelihood under the
  exact law of the noise.

The last three are projected on their parents' counts by their posterior variances and rounded.
"""


class Ratio(NamedTuple):
    """The default's error divided by another's."""

    value: float
    error: float
    releases: int

    @property
    def lost(self) -> bool:
        """More than 3% worse beyond the error: two of it, or more by Student's t if few."""
        beyond = student.ppf(0.977, max(self.releases - 1, 1))
        return self.releases >= FEWEST and bool(self.value - beyond * self.error > LOSING)

    @property
    def mark(self) -> str:
        """A cross where it lost, a question mark where it might have."""
        if self.lost:
            return MARK
        return "?" if self.releases < FEWEST and self.value > LOSING else ""


def ratio(above: Any, below: Any) -> Ratio:
    """The ratio of root mean squares of paired releases; its error by linearisation."""
    a, b = np.asarray(above, float), np.asarray(below, float)
    if not a.any() and not b.any():
        return Ratio(1.0, 0.0, len(a))
    if not b.any():
        return Ratio(float("inf"), 0.0, len(a))
    square = a.mean() / b.mean()
    rest = (a - square * b) / b.mean()
    error = rest.std(ddof=1) / sqrt(len(a)) if len(a) > 1 else float("nan")
    return Ratio(sqrt(square), error / (2 * sqrt(square)) if square else 0.0, len(a))


class Judged(NamedTuple):
    """One level of one table."""

    level: str
    roots: dict[str, float]
    best: str
    ratio: Ratio


def levels(errors: dict[str, Any]) -> Iterator[Judged]:
    """Every level with its errors, and the default beside the best other method."""
    squares = {name: np.array(each) for name, each in errors["squared"].items()}
    for at, level in enumerate(errors["levels"]):
        means = {name: float(each[:, at].mean()) for name, each in squares.items()}
        best = min((name for name in means if name not in OWN), key=lambda name: means[name])
        roots = {name: sqrt(mean) for name, mean in means.items()}
        yield Judged(level, roots, best, ratio(squares["default"][:, at], squares[best][:, at]))


def as_page(results: dict[str, Any]) -> str:
    """The page."""
    scored = {name: row for name, row in results.items() if "errors" in row}
    ranged = {name: row["ranges"] for name, row in results.items() if "ranges" in row}
    fresh = {name: row["errors"] for name, row in scored.items() if not row["known"]}
    known = {name: row["errors"] for name, row in scored.items() if row["known"]}
    roots = {name: row["totals"] for name, row in results.items() if "totals" in row}
    lines = [HEAD, provenance(scored, roots, ranged), ""]
    for title, these in (
        ("Tables that nothing was tuned on", fresh),
        ("Tables known before", known),
    ):
        if these:
            lines += [f"## {title}", "", *summary(these, results), ""]
    torn = {name: row["equal cells"] for name, row in results.items() if "equal cells" in row}
    if torn:
        lines += ["## What no method can have", "", *bounds(torn), ""]
    if roots:
        lines += ["## Totals", "", *totals(roots), ""]
    if ranged:
        alone = {name: row for name, row in ranged.items() if results[name]["lone"]}
        lines += ["## Ranges", "", *ranges(ranged, alone), ""]
    for name, errors in (fresh | known).items():
        lines += [f"## {name}", "", *table(errors), ""]
    return "\n".join(lines).rstrip() + "\n"


def provenance(scored: dict[str, Any], roots: dict[str, Any], ranged: dict[str, Any]) -> str:
    """Which code the figures are of."""
    parts = {"errors": [row["errors"] for row in scored.values()], "totals": roots.values()}
    found = {
        name: sorted({each for row in rows for each in row["code"]})
        for name, rows in (parts | {"ranges": ranged.values()}).items()
    }
    told = [f"{name} {', '.join(codes)}" for name, codes in found.items() if codes]
    return f"Commits measured: {'; '.join(told)}."


def summary(these: dict[str, Any], results: dict[str, Any]) -> list[str]:
    """One line a table: where the default does worst and best, and its gain on least squares."""
    lost = sum(each.ratio.lost for row in these.values() for each in levels(row))
    count = sum(len(row["levels"]) for row in these.values())
    lines = [
        f"{len(these)} tables, {count} levels, {lost} of them marked.",
        "",
        "| table | releases | cells | empty | worst level | best method there | default / best | "
        "cells: default / best | cells: default / least squares | marked |",
        "|---" * 10 + "|",
    ]
    for name, row in these.items():
        found = list(levels(row))
        worst = max(found, key=lambda each: each.ratio.value)
        squares = {
            each: np.array(row["squared"][each])[:, -1] for each in ("default", "least squares")
        }
        marks = ", ".join(each.level for each in found if each.ratio.lost)
        if marks and "equal cells" in results[name]:
            bound, error = results[name]["equal cells"]["bound"]
            marks += f"; of any method at least {bound:.3f} ± {error:.3f} in one of its kind, below"
        lines.append(
            f"| {name} | {row['releases']} | {row['sizes'][-1]:,} | {100 * row['empty']:.0f}% | "
            f"{worst.level} | {worst.best} | {written(worst.ratio)} | {written(found[-1].ratio)} | "
            f"{written(ratio(squares['default'], squares['least squares']))} | "
            f"{MARK + ' ' + marks if marks else ''} |"
        )
    return lines


BOUNDS = """One cell of 12 among 200 empty ones, and twelve cells of 1 among 189 empty ones, have
the same total, and through the noise they are hard to tell apart: who finds the lone cell scatters
nobody, who scatters loses it. These are the default's errors divided by those of the best other
method, table by table, for the totals of the lone cells above in one cell and in several equal
ones. The *bound* says what there is to be had: whatever a method does, if it treats all cells
alike, the largest of its ratios is no less. It is what the posterior mean of someone has who knows
the total, that the truth is one of these tables and how likely each is, and who may release
fractions (`benchmarks/least_worst.py`); methods that know nothing have more. What the default has
beyond it may still be there to gain."""


def bounds(torn: dict[str, Any]) -> list[str]:
    """The default on tables of the same total, and the least that the worst can be."""
    lines = [BOUNDS, "", "| total | in cells | releases | best there | default / best | bound |"]
    lines.append("|---" * 6 + "|")
    for name, row in torn.items():
        bound, error = row["bound"]
        for number, one in row["errors"].items():
            cells = [*levels(one)][-1]
            lines.append(
                f"| {name} | {number} | {one['releases']} | {cells.best} | {written(cells.ratio)} "
                f"| {bound:.3f} ± {error:.3f} |"
            )
    return lines


def lowest(errors: dict[str, Any]) -> Best:
    """The error in the cells of the best other method."""
    squares = np.array(errors["squared"][[*levels(errors)][-1].best])[:, -1]
    spread = squares.std(ddof=1) / sqrt(len(squares)) if len(squares) > 1 else float("nan")
    return Best(float(squares.mean()), float(spread))


TOTALS = """The total of the default is that of least squares. It is one count a release, so the
releases below are few to judge it by, and where NNLS happened to be nearer it looks better than it
is. These are the totals alone, in many more releases."""


def totals(roots: dict[str, Any]) -> list[str]:
    """The default's total beside that of NNLS, table by table."""
    lines = [
        TOTALS,
        "",
        "| table | releases | default | NNLS | default / NNLS | |",
        "|---" * 6 + "|",
    ]
    for name, row in roots.items():
        ours, others = (np.array(row["squared"][each]) for each in ("default", "NNLS"))
        found = ratio(ours, others)
        lines.append(
            f"| {name} | {len(ours):,} | {number(sqrt(ours.mean()))} | "
            f"{number(sqrt(others.mean()))} | {written(found)} | {found.mark} |"
        )
    return lines


def table(errors: dict[str, Any]) -> list[str]:
    """Every method at every level."""
    names = ["default", *(name for name in errors["squared"] if name != "default")]
    chosen = ", ".join(f"{name} in {times}" for name, times in errors["chosen"].items())
    lines = [
        f"{errors['releases']} releases, {100 * errors['empty']:.0f}% of the cells empty; the "
        f"default took {chosen}.",
        "",
        "| level | nodes | " + " | ".join(names) + " | default / best | |",
        "|---" * (len(names) + 4) + "|",
    ]
    for size, each in zip(errors["sizes"], levels(errors), strict=True):
        roots = [
            f"**{number(each.roots[name])}**" if name == each.best else number(each.roots[name])
            for name in names
        ]
        lines.append(
            f"| {each.level} | {size:,} | {' | '.join(roots)} | {written(each.ratio)} | "
            f"{each.ratio.mark} |"
        )
    parts = []
    for name, (smallest, largest) in errors["bias"].items():
        kept = f", {100 * errors['empty_kept'][name]:.1f}% of the empty cells empty"
        parts.append(f"{name} {smallest:+.2f} and {largest:+.2f}{kept if errors['empty'] else ''}")
    return [*lines, "", f"Mean error of the smallest cells and of the largest: {'; '.join(parts)}."]


RANGES = """Share of the 95% ranges that hold the true count, with the number of cases and the mean
width (largest less smallest count): *default* as `countwise infer` gives them, *published* with
`--prior published`, each on releases of its own, the latter adjusted by `bayes`. Sizes are true
counts, of cells and of the sums above them. Unusual cells are the 1% with the largest ratio of the
true count to what parent and label let expect (the parent's count times the share of the label in
the whole table, or an even share where labels do not come again)."""
COLUMNS = "| default | cases | width | published | cases | width |"


def ranges(found: dict[str, Any], alone: dict[str, Any]) -> list[str]:
    """All tables together, lone cells, then each table."""
    everywhere: dict[str, dict[str, np.ndarray]] = {}
    for row in found.values():
        for prior, groups in row["tally"].items():
            for group, tally in groups.items():
                if not group.startswith("level "):
                    kept = everywhere.setdefault(group, {})
                    kept[prior] = kept.get(prior, np.zeros(3)) + tally
    rows = [tallies(row, group) for row in found.values() for group in row["tally"]["default"]]
    lines = [RANGES, "", shortfalls([*everywhere.values(), *rows]), ""]
    lines += [f"| all tables {COLUMNS}", "|---" * 7 + "|"]
    lines += [
        f"| {group} | {both(tally)} |"
        for group, tally in everywhere.items()
        if any(each[0] for each in tally.values())
    ]
    if alone:
        lines += ["", f"| the lone cell {COLUMNS}", "|---" * 7 + "|"]
    lines += [f"| {name} | {both(tallies(row, 'unusual cells'))} |" for name, row in alone.items()]
    lines += ["", f"| table | nodes {COLUMNS}", "|---" * 8 + "|"]
    for name, row in found.items():
        for group in row["tally"]["default"]:
            tally = tallies(row, group)
            if any(each[0] for each in tally.values()):
                lines.append(f"| {name} | {group} | {both(tally)} |")
    refusals = [
        f"- {name}, {prior}: no answer for {count} of {row['releases'][prior]} releases "
        f"({row['why'][prior]})"
        for name, row in found.items()
        for prior, count in row["refused"].items()
        if count
    ]
    return lines + (["", *refusals] if refusals else [])


def shortfalls(rows: list[dict[str, np.ndarray]]) -> str:
    """Of how many rows there are enough cases, and in how many of them ranges hold too little."""
    parts = []
    for prior in ("default", "published"):
        enough = [row[prior] for row in rows if prior in row and row[prior][0] >= ENOUGH_CASES]
        short = sum(held < PROMISED * cases for cases, held, _ in enough)
        parts.append(f"{short} of {len(enough)} rows by *{prior}*")
    return f"With 1,000 or more cases, fewer than 93% are held in {' and in '.join(parts)}."


def tallies(row: dict[str, Any], group: str) -> dict[str, np.ndarray]:
    """Cases, how many were held, and widths, by prior."""
    return {prior: np.array(groups[group]) for prior, groups in row["tally"].items()}


def both(tally: dict[str, np.ndarray]) -> str:
    """Coverage, cases and width under both priors."""
    parts = []
    for cases, held, width in (tally[prior] for prior in ("default", "published")):
        if not cases:
            parts.append("– | 0 | –")
            continue
        short = cases >= ENOUGH_CASES and held < PROMISED * cases
        parts.append(
            f"{100 * held / cases:.1f}%{' ' + MARK if short else ''} | {cases:,.0f} | "
            f"{number(width / cases)}"
        )
    return " | ".join(parts)


def written(each: Ratio) -> str:
    """A ratio with its standard error."""
    return f"{each.value:.3f} ± {each.error:.3f}"


def number(value: float) -> str:
    """Three digits."""
    return f"{value:,.3g}" if abs(value) < 100 else f"{value:,.0f}"
