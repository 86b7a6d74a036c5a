"""The figures of `crossed.py` as a page."""

from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from accuracy_page import MARK, PROMISED, number
from residual_planner import SIZES
from residual_planner import lines as parts_of_margins

DEFAULT, SIGNED = "default", "signed least squares"
LOSING = 1.03
EVERY = "every margin"
OTHERS = ("former default", "mbi, fractional", "tree, best order and split", "level by level")
MAYBE = "?"
UNITS = {"epsilon": "ε", "rho": "ρ"}

HEAD = """# Accuracy of tables that cross

Made by `python benchmarks/crossed.py --out docs/crossed-accuracy.md`, run with {asked};
nothing on this page is typed in. It is of
{provenance}.
Releases are few; each table has their number, and ± is one standard error over them. Every figure
is a root mean squared error of the counts of a margin, over its counts and over releases.

- *default*: [a release of tables that cross](crossed.md), all but tables and loss as it comes.
- *signed least squares*: the best linear estimates from the same noisy margins. They are neither
  whole nor free of negative counts, so they could not be published; they are what a method loses to
  if being whole costs accuracy.
- *clipped and rounded*: these estimates of the cells, negative ones made 0, each to the nearest
  whole number, and summed.
- *tree, auto split*: one tree with all variables below each other, as `--by` with all of them
  releases it by default, with noise of its own at the same loss; margins are sums of its cells.
- *tree, even split*: the same with `--split even`.
- *tree, best order and split*: of all orders of the levels, and all shares of the loss, those with
  the least geometric mean of the variances after least squares over the published margins.
- *former default*: the default release of that tree by countwise at 64407cb, before there were
  tables that cross.
- *mbi, fractional*: the table that mbi 2.0 (McKenna et al.) fits to the same noisy margins by
  mirror descent. It is not whole, so it could not be published as counts.
- *level by level*: the same noisy margins solved from the root of the places to the tracts, as
  TopDown does: the non-negative tables of siblings nearest to all margins of their level, with the
  whole table of their parent as their sum (OSQP), then whole ones next to them.

The last column divides the error of the default by that of signed least squares, in the same
releases: below 1 the default is better. Where it is more than 3% above, there is ✗ if that is
beyond the error (by Student's t at 97.7%), a question mark if it may be chance. *Whole* is what the
last column would be if each signed estimate were rounded to the nearest whole number and nothing
else: a twelfth is added to its squared error. Counts can not be published and lose less than that,
but where there are negative ones to clip or cells that learn from each other.
"""

PARTS = """## Noise of parts

Where all variables are flat, ResidualPlanner gives each part of the margins noise of its own. Its
closed form is the least error of any Gaussian noise; noise on whole margins, at the best shares,
comes this near to it at ρ = ½ with {sizes} categories (root mean squared errors a count before
anything is rounded). No shares of whole margins are better. In return every noisy count that is
published is a count, of a table that can be checked."""


class Figure(NamedTuple):
    """A figure over releases and its standard error."""

    value: float
    error: float
    releases: int

    def __str__(self) -> str:
        if not np.isfinite(self.value):
            return "–"
        known = np.isfinite(self.error)
        return (
            f"{number(self.value)} ± {number(float(f'{self.error:.2g}'))}"
            if known
            else number(self.value)
        )

    @property
    def mark(self) -> str:
        """Of a ratio: a cross where it lost, a question mark where it might have."""
        if not self.value > LOSING:
            return ""
        beyond = student.ppf(0.977, max(self.releases - 1, 1)) * self.error
        return MARK if self.value - beyond > LOSING else MAYBE

    @property
    def as_ratio(self) -> str:
        """With three decimals, and its mark."""
        if not np.isfinite(self.value):
            return "–"
        error = f" ± {self.error:.3f}" if np.isfinite(self.error) else ""
        return f"{self.value:.3f}{error} {self.mark}".rstrip()


def influences(squared: np.ndarray) -> tuple[float, np.ndarray]:
    """The logarithm of the geometric mean over margins of root mean squared errors over releases,
    and what each release has to do with it, to first order.
    """
    means = squared.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.log(means).mean() / 2), (squared / means).mean(axis=1) / 2


def _figure(log: float, parts: np.ndarray) -> Figure:
    value, n = float(np.exp(log)), len(parts)
    error = value * parts.std(ddof=1) / sqrt(n) if n > 1 else float("nan")
    return Figure(value, float(error), n)


def root(squared: np.ndarray) -> Figure:
    """The geometric mean over margins (columns) of errors over releases (rows)."""
    return _figure(*influences(squared))


def ratio(above: np.ndarray, below: np.ndarray) -> Figure:
    """That of one method divided by another's, from paired releases."""
    (one, ones), (other, others) = influences(above), influences(below)
    return _figure(one - other, ones - others)


class Row(NamedTuple):
    """One margin, or all of a kind together."""

    name: str
    counts: int
    margins: int
    figures: dict[str, Figure]
    lost: Figure


def rows(found: dict[str, Any], *, kinds: bool) -> Iterator[Row]:
    """Every kind of margin, or every margin."""
    names, squared = found["kinds" if kinds else "margins"], arrays(found)
    together = [*dict.fromkeys(sorted(names, key=_order)), EVERY] if kinds else names
    for name in together:
        columns = [i for i, each in enumerate(names) if name in (each, EVERY)]
        yield Row(
            name=name,
            counts=sum(found["counts"][i] for i in columns),
            margins=len(columns),
            figures={each: root(squares[:, columns]) for each, squares in squared.items()},
            lost=ratio(squared[DEFAULT][:, columns], squared[SIGNED][:, columns]),
        )


def _order(kind: str) -> tuple[bool, bool, str]:
    return kind == "cells", kind != "total", kind


def arrays(found: dict[str, Any]) -> dict[str, np.ndarray]:
    """Mean squared errors of every method, a row a release and a column a margin."""
    return {name: np.array(each) for name, each in found["squared"].items()}


def title(found: dict[str, Any]) -> str:
    """The loss."""
    return f"{UNITS[found['unit']]} = {found['loss']}"


def as_page(results: list[dict[str, Any]]) -> str:
    """The page."""
    told = {
        what: list(dict.fromkeys(text for each in results for text in each[what]))
        for what in ("provenance", "asked")
    }
    provenance, asked = "; ".join(told["provenance"]), ", ".join(map(literal, told["asked"]))
    lines = [HEAD.format(provenance=provenance, asked=asked)]
    lines += [BESIDE, "", *beside_others(results), ""]
    lines += ["## Where the default loses", "", *losses(results), ""]
    tables = dict.fromkeys(each["table"] for each in results)
    for name in tables:
        these = [each for each in results if each["table"] == name]
        lines += [f"## {upper(name)}", ""]
        for each in these:
            lines += [f"### By kind of margin, {title(each)}", "", *by_kind(each), ""]
        for each in these:
            lines += [f"### Every margin, {title(each)}", "", *every_margin(each), ""]
        lines += ["### Ranges of 95%", "", *ranges(these), ""]
    lines += [PARTS.format(sizes=", ".join(map(str, SIZES))), "", *parts_of_margins()]
    return "\n".join(lines).rstrip() + "\n"


def upper(text: str) -> str:
    """With a capital."""
    return text[:1].upper() + text[1:]


def losses(results: list[dict[str, Any]]) -> list[str]:
    """In sentences, margin by margin: against signed least squares, and against other releases."""
    behind, count = [], 0
    for found in results:
        margins = list(rows(found, kinds=False))
        count += len(margins)
        lost = [row for row in margins if row.lost.mark]
        if lost:
            told = ", ".join(f"{written(row.name)} {row.lost.as_ratio}" for row in lost)
            behind.append(f"- {upper(found['table'])}, {title(found)}: {told}.")
    sure = sum(each.count(MARK) for each in behind)
    maybe = sum(each.count(MAYBE) for each in behind)
    lines = [
        f"Of {count} margins, each at its loss, the default is more than 3% worse than signed "
        f"least squares at {sure} beyond the error and at {maybe} that may be chance"
        + (". These are the ratios:" if behind else "."),
        *([""] if behind else []),
        *behind,
        "",
    ]
    nearer = list(nearer_elsewhere(results))
    if not nearer:
        return [*lines, "Of the other releases, none is nearer at any margin."]
    return [*lines, ELSEWHERE, "", *nearer]


BESIDE = """## Beside other ways

The error of another way divided by that of the default, geometric means over the margins of a kind
and over all: above 1 the default is nearer to the truth. ± is one standard error over releases."""


def beside_others(results: list[dict[str, Any]]) -> list[str]:
    """How many times nearer to the truth the default is, by kind of margin."""
    kinds = sorted({kind for each in results for kind in each["kinds"]}, key=_order)
    lines = [f"| table | way | {' | '.join(kinds)} | {EVERY} |", "|---" * (len(kinds) + 3) + "|"]
    for found in results:
        squared = arrays(found)
        for name in (each for each in OTHERS if each in squared):
            told = []
            for kind in (*kinds, EVERY):
                columns = [i for i, each in enumerate(found["kinds"]) if kind in (each, EVERY)]
                chosen = squared[name][:, columns], squared[DEFAULT][:, columns]
                told.append(str(ratio(*chosen)) if columns else "")
            lines.append(f"| {found['table']}, {title(found)} | {name} | {' | '.join(told)} |")
    return lines


ELSEWHERE = """Other releases at the same loss are nearer to the truth at these margins. In brackets
is the error of the default divided by theirs; the tables below have the standard errors."""


def nearer_elsewhere(results: list[dict[str, Any]]) -> Iterator[str]:
    """Margins at which a method that could be published is nearer than the default, by method."""
    for found in results:
        margins = list(rows(found, kinds=False))
        for name in found["squared"]:
            times = {row.name: _times(row, name) for row in margins}
            better = [f"{margin} ({each:.2f})" for margin, each in times.items() if each > 1]
            if name not in (DEFAULT, SIGNED) and better:
                yield (
                    f"- {upper(found['table'])}, {title(found)}, {name}: {len(better)} of "
                    f"{len(margins)}: {written(', '.join(better))}."
                )


def _times(row: Row, name: str) -> float:
    own, other = row.figures[DEFAULT].value, row.figures[name].value
    return own / other if other else float("inf") if own else 1.0


def written(text: str) -> str:
    """Names of margins as the tables have them."""
    return text.replace("*", " × ")


def by_kind(found: dict[str, Any]) -> list[str]:
    """Geometric means over margins of a kind."""
    taken = ", ".join(f"{name} in {times}" for name, times in found["taken"].items())
    measured = ", ".join(map(literal, found["measured"]))
    trees = ", ".join(
        f"{name}: {len(found['squared'][name])} with {noise} noise"
        for name, noise in found["mechanisms"].items()
    )
    best = ", ".join(f"{name} ({share:.1%})" for name, share in found["best_tree"].items())
    return [
        f"{found['releases']} releases ({trees}). Geometric means over the margins of a kind. "
        f"The default measured {len(found['measured'])} margins ({measured}) "
        f"and took {taken}. The best order of a tree: {best}.",
        "",
        *_table(found, "kind | margins", rows(found, kinds=True), lambda row: str(row.margins)),
    ]


def every_margin(found: dict[str, Any]) -> list[str]:
    """Root mean squared errors margin by margin."""
    return _table(found, "margin | counts", rows(found, kinds=False), lambda row: f"{row.counts:,}")


def literal(name: str) -> str:
    """A margin as it is written in the notation."""
    return f"`{name}`"


def _table(found: dict[str, Any], first: str, lines: Iterator[Row], second: Any) -> list[str]:
    names = list(found["squared"])
    return [
        f"| {first} | {' | '.join(names)} | whole | default / signed |",
        "|---" * (len(names) + 4) + "|",
        *(
            f"| {written(row.name)} | {second(row)} | "
            f"{' | '.join(str(row.figures[name]) for name in names)} | "
            f"{whole(row.figures[SIGNED].value)} | {row.lost.as_ratio} |"
            for row in lines
        ),
    ]


def whole(signed: float) -> str:
    """What rounding each estimate alone makes of its error."""
    return f"{sqrt(1 + 1 / (12 * signed**2)):.3f}" if signed > 0 else "–"


RANGES = """Share of the 95% ranges of the default releases (`low` to `high`) that hold the true
count, with the mean width (`high` less `low`) in brackets. ± is one standard error over releases,
as errors of counts of one release go together, and no less than if all were independent. ✗ marks
a share below 93% beyond that error."""


def ranges(these: list[dict[str, Any]]) -> list[str]:
    """By the size of the true count, then by margin."""
    columns = f"{' | '.join(map(title, these))} |"
    head = "|---" * (len(these) + 2) + "|"
    lines = [RANGES, "", f"| true count | cases a release | {columns}", head]
    lines += _covered(these, "by_size", these[0]["sizes"])
    lines += ["", f"| margin | counts | {columns}", head]
    return [*lines, *_covered(these, "by_margin", these[0]["margins"])]


def _covered(these: list[dict[str, Any]], part: str, names: list[str]) -> Iterator[str]:
    for i, name in enumerate(names):
        tallies = [np.array(each[part])[:, i] for each in these]
        cells = " | ".join(map(covered, tallies))
        yield f"| {written(name)} | {tallies[0][0, 0]:,.0f} | {cells} |"


def covered(tally: np.ndarray) -> str:
    """Of releases' cases, held ranges and widths: the share held, and the mean width."""
    cases, good, width = tally.T
    if not cases.any():
        return "–"
    shares, n = good / cases, len(cases)
    error = sqrt(PROMISED * (1 - PROMISED) / cases.sum())
    if n > 1:
        error = max(error, float(shares.std(ddof=1)) / sqrt(n))
    beyond = student.ppf(0.977, max(n - 1, 1)) * error
    short = shares.mean() + beyond < PROMISED
    told = f" ± {100 * error:.1f}"
    mark = f" {MARK}" if short else ""
    mean = number(width.sum() / cases.sum())
    return f"{100 * shares.mean():.1f}%{told}{mark} ({mean})"
