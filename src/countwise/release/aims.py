"""The plan with the least loss at which published tables stay within stated errors."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from countwise.choices import one_of
from countwise.errors import PlanError
from countwise.noise.numbers import LARGEST, SMALLEST
from countwise.release.plan import Plan, from_dict
from countwise.release.wanted import free_margins, table_design, targets_of
from countwise.tables.workload import Workload

UNITS = ("epsilon", "rho")
MECHANISMS = ("auto", "geometric", "gaussian")
"""Those whose variances are the closed forms that the least loss is found with."""
ANY_LOSS = "1"  # the least loss and its shares do not depend on it
HOW = "such as --tables 'county*sex: ±20' on the command line, or within = 20 in a plan file"


def without_loss(words: Mapping[str, Any], unit: str) -> Plan:
    """The plan of a file's words without a loss, which is still to be found in this unit."""
    refuse_loss(words, unit)
    return from_dict({**words, unit: ANY_LOSS})


def least_plan(asked: Plan, cells: Workload) -> Plan:
    """The plan with the least loss that meets its targets, and the shares that do it.

    The loss that was asked for is not looked at.
    """
    one_of(asked.mechanism, MECHANISMS, what="mechanism, of a plan for targets,", error=PlanError)
    within, workload = targets_of(asked), asked.workload(cells)
    if not within:
        raise PlanError(f"no table has a target. To fix, state one, {HOW}.")
    free = free_margins(asked, workload)
    if all(any(known.covers(each) for known in free) for each in within):
        raise PlanError(
            "every table with a target is published exactly, and costs nothing. To fix, state the "
            "target of another table."
        )
    found = table_design(asked, workload)
    if not SMALLEST <= found.loss <= LARGEST:
        way = "larger" if found.loss > LARGEST else "smaller"
        raise PlanError(
            f"these targets need {asked.unit} = {float(found.loss):.4g}, and a loss is between "
            f"1e-12 and 1e6. To fix, state {way} ones."
        )
    shares = {workload.name(margin): share for margin, share in found.shares.items()}
    return replace(with_loss(asked, found.loss), split=shares)


def with_loss(plan: Plan, loss: Fraction) -> Plan:
    """The same plan at another loss in all, in its unit."""
    if plan.unit == "rho":
        return replace(plan, rho=loss)
    return replace(plan, epsilon=loss)


def refuse_loss(words: Mapping[str, Any], unit: str) -> None:
    """Either the loss is given, or it is what is looked for."""
    one_of(unit, UNITS, what="unit", error=PlanError)
    for each in UNITS:
        if words.get(each) is not None:
            raise PlanError(
                f"a plan for targets finds its loss, and {each} = {words[each]} states one. To "
                f"fix, leave out {each}, or ask without unit what that loss gives."
            )
    if words.get("split", "auto") != "auto":
        raise PlanError("a plan for targets finds its shares. To fix, leave out split.")
