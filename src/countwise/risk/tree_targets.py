"""The plan with the least loss at which the levels of a tree stay within stated errors."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import exp, floor, log, log10
from typing import Any

from scipy.optimize import brentq

from countwise.choices import one_of
from countwise.errors import PlanError
from countwise.margins.shares import Design, targets
from countwise.noise.count_noise import plainest
from countwise.noise.numbers import LARGEST, SMALLEST
from countwise.release import aims
from countwise.release.noise_budget import OPEN
from countwise.release.plan import Plan
from countwise.release.wanted import Wanted, read_wanted
from countwise.risk.closed_form import as_workload
from countwise.risk.loss_curve import to_four_digits
from countwise.risk.promised_margins import level_margins
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import ROOT, Hierarchy
from countwise.tables.workload import Margin, Workload

NEAR = 3.0  # logarithms of losses: levels that are measured for nothing and single exact counts
NOTHING = 1e-9  # stands for an error of 0
LEAST_SHARE = Fraction(2, 1000)  # a level of a tree is measured; with less its noise says nothing


def plan_for_targets(
    cells: Workload | Hierarchy | Confidential[Workload] | Confidential[Hierarchy],
    *,
    unit: str = "rho",
    tables: str | Sequence[Any] = (),
    **words: Any,
) -> Plan:
    """The plan with the least loss, in `rho` or `epsilon`, that meets the targets of `tables`.

    A target is the half-width of 95% of a table's counts after least squares: `tables="county*sex:
    ±20, tract"`, or `within` in a list of wishes; of one tree the tables are its levels, `county:
    ±20; total: ±50`. The other words are those of `Plan`. Of `cells` only the public categories are
    used. Tables without a target are published too, and may have any error.
    """
    space = cells.space if isinstance(cells, Confidential) else cells
    aims.refuse_loss(words, unit)
    if isinstance(space, Workload):
        return aims.least_plan(Plan(**{**words, "tables": tables, unit: aims.ANY_LOSS}), space)
    return least_tree_plan(Plan(**{**words, unit: aims.ANY_LOSS}), space, read_wanted(tables))


def least_tree_plan(asked: Plan, tree: Hierarchy, wishes: Sequence[Wanted]) -> Plan:
    """The plan with the least loss that meets the targets of levels, and the shares that do it.

    The loss that was asked for is not looked at. Noise is geometric under ε: joint noise has no
    shares.
    """
    one_of(asked.mechanism, aims.MECHANISMS, what="mechanism, of a plan for targets,")
    mechanism = plainest(asked.unit)
    asked = replace(asked, mechanism=mechanism if asked.mechanism == OPEN else asked.mechanism)
    within = _within(wishes, tree)
    reach = _reach(asked, tree)
    if not any(reach[level] for level in within):
        raise PlanError(
            "every level with a target is published exactly, and costs nothing. To fix, state the "
            "target of another level."
        )
    design = _design(asked, tree, within, reach)
    asked = replace(asked, split=_shares(design, reach))
    return aims.with_loss(asked, _least_loss(asked, tree, within, near=float(design.loss)))


def _within(wishes: Sequence[Wanted], tree: Hierarchy) -> dict[str, float]:
    """The targets by level."""
    levels = (ROOT, *tree.by)
    found: dict[str, float] = {}
    for wish in wishes:
        level = one_of(wish.by.strip(), levels, what="a level with a target", error=PlanError)
        if wish.within is not None:
            found[level] = min(float(wish.within), found.get(level, float(wish.within)))
    if not found:
        raise PlanError(
            "no level has a target. To fix, state one, such as --tables 'county: ±20' on the "
            "command line, or within = 20 in a plan file."
        )
    return found


def _reach(asked: Plan, tree: Hierarchy) -> dict[str, int]:
    """How far a person moves each level that has any noise; 0 for the others."""
    levels = replace(asked, split="even").budget(tree).levels
    return {each.level: asked.reach(each.nodes) if each.loss else 0 for each in levels}


def _design(
    asked: Plan, tree: Hierarchy, within: Mapping[str, float], reach: Mapping[str, int]
) -> Design:
    """The shares and the loss that meet the targets, were no single count exact."""
    workload = as_workload(tree)
    margins = dict(zip((ROOT, *tree.by), workload.margins, strict=True))
    return targets(
        workload,
        {margins[level]: width for level, width in within.items() if reach[level]},
        {margins[level]: 1.0 for level, far in reach.items() if far},
        unit=asked.unit,
        reach={margins[level]: float(far) for level, far in reach.items()},
    )


def _shares(design: Design, reach: Mapping[str, int]) -> dict[str, Fraction]:
    """The shares of a design by level, where every level with noise has some."""
    margins = [Margin((place,)) for place in range(len(reach))]
    shares = {
        level: max(design.shares.get(margin, LEAST_SHARE), LEAST_SHARE)
        for (level, far), margin in zip(reach.items(), margins, strict=True)
        if far
    }
    shares[max(shares, key=lambda level: shares[level])] += 1 - sum(shares.values())
    return shares


def _least_loss(
    asked: Plan, tree: Hierarchy, within: Mapping[str, float], *, near: float
) -> Fraction:
    """The least loss of four digits at which these shares meet the targets: errors fall in it."""
    places = {level: place for place, level in enumerate((ROOT, *tree.by))}

    def excess(log_loss: float) -> float:
        loss = min(max(Fraction(exp(log_loss)), SMALLEST), LARGEST)
        fitted = level_margins(tree, aims.with_loss(asked, loss).budget(tree))
        worst = max(fitted[places[level]].fitted / width for level, width in within.items())
        return log(max(worst, NOTHING))

    low, high = log(near) - NEAR, log(near) + NEAR
    if excess(low) < 0 or excess(high) > 0:
        raise PlanError(
            f"no loss near {near:.4g} just meets these targets, and losses are between 1e-12 and "
            "1e6. To fix, state others."
        )
    loss = to_four_digits(exp(brentq(excess, low, high, xtol=1e-7)))
    digit = Fraction(10) ** (floor(log10(loss)) - 3)
    while excess(log(loss)) > 0:
        loss += digit
    return loss
