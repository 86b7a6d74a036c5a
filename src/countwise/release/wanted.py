"""The tables a plan asks for, and what of tables that cross is measured, at which share."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.choices import one_of
from countwise.errors import PlanError
from countwise.margins.shares import Design, candidates, design, targets
from countwise.noise.numbers import exact, written
from countwise.tables.crossed_invariants import (
    crossed_pattern,
    exact_margins,
    find_crossed_invariants,
    margin_named_by,
)
from countwise.tables.invariants import Invariants
from countwise.tables.notation import Names, margin_of, margins_of, name_of, wanted
from countwise.tables.pattern import Pattern
from countwise.tables.workload import Margin, Workload

if TYPE_CHECKING:
    from countwise.release.plan import Plan

CROSSING = tuple(name for name, each in ADJUSTMENTS.items() if each.crosses)
"""Adjustments of tables that cross."""
TREES_ONLY = {"pool": "", "total": "independent"}
Patterns = tuple[Pattern, ...]
KEYS = ("by", "weight", "within")
TARGET = re.compile(r"(?P<by>.*?)\s*(?:±|:\s*(?:±|\+-|\+/-))(?P<within>.*)", re.DOTALL)
CELLS = 1 / 8  # of all weight
LEAST_TARGET = 1  # published counts are whole numbers


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Tables to be published, in the notation, and how much their accuracy counts."""

    by: str
    weight: Fraction = Fraction(1)
    within: Fraction | None = None
    """What 95 of 100 errors of its counts are to stay within, if that was said."""

    def to_dict(self) -> dict[str, Any]:
        """As a plan file has it; a weight of one goes without saying."""
        data = {"by": self.by}
        if self.weight != 1:
            data["weight"] = written(self.weight)
        return data if self.within is None else data | {"within": written(self.within)}


def read_wanted(tables: str | Sequence[Any]) -> tuple[Wanted, ...]:
    """The wishes in `county*age, tract:race`, or in a list of such texts, mappings or wishes.

    A target may follow each, `county*age: ±20; tract: ±50`, with `+-` for a sign that is no key.
    """
    if isinstance(tables, str):
        tables = [text for text in re.split("[,;]", tables) if text.strip()]
    return tuple(_read_one(each) for each in tables)


def _read_one(given: Any) -> Wanted:
    if isinstance(given, Wanted):
        return given
    if isinstance(given, str):
        found = TARGET.fullmatch(given)
        given = {"by": given.strip()} if found is None else found.groupdict()
        return Wanted(by=given["by"].strip(), within=_target(given.get("within"), given["by"]))
    if not isinstance(given, Mapping) or "by" not in given:
        raise PlanError(
            'a table needs the levels it crosses, such as by = "county*sex" or by = ["county", '
            '"sex"].'
        )
    for key in given:
        one_of(key, KEYS, what="a key of a table", error=PlanError)
    by = given["by"]
    text = by if isinstance(by, str) else ":".join(map(str, by))
    return Wanted(
        by=text,
        weight=exact(given.get("weight", 1), what=f"weight of table {text!r}"),
        within=_target(given.get("within"), text),
    )


def _target(given: Any, table: str) -> Fraction | None:
    """What the errors of a table are to stay within, if that is said."""
    if given is None:
        return None
    found = exact(given, what=f"the target of table {table.strip()!r}")
    if found < LEAST_TARGET:
        raise PlanError(
            f"the target of table {table.strip()!r} is ±{written(found)}, and published counts are "
            "whole numbers. To fix, choose ±1 or more, or publish the table as it is (--exact)."
        )
    return found


def declared_variables(data: Any, *, where: str) -> dict[str, tuple[str, ...]]:
    """The variables of a plan file: `[variables.age]` with `levels = ["band", "year"]`."""
    if not isinstance(data, Mapping):
        raise PlanError(f'{where}: write [variables.age] above levels = ["band", "year"].')
    found = {}
    for name, entry in data.items():
        levels = entry.get("levels") if isinstance(entry, Mapping) else None
        texts = isinstance(levels, list | tuple) and all(isinstance(each, str) for each in levels)
        if not levels or not texts or set(entry) != {"levels"}:
            raise PlanError(
                f"{where}: variable {name!r} needs its levels from coarse to fine and nothing "
                'else: levels = ["band", "year"].'
            )
        found[str(name)] = tuple(levels)
    return found


def refuse_trees_only(plan: "Plan") -> None:
    """Refuse what speaks of one tree of levels, in a plan of tables that cross."""
    if plan.joint:
        raise PlanError(
            "joint noise adds up along one tree, and tables that cross have none. To fix, leave "
            "the mechanism out."
        )
    one_of(plan.adjust, CROSSING, what="adjust, of tables that cross,", error=PlanError)
    for name, usual in TREES_ONLY.items():
        if getattr(plan, name) != usual:
            raise PlanError(
                f"{name} is not there for tables that cross. To fix, leave it out, or release "
                "one tree of levels with --by alone."
            )


def crossed_fields(plan: "Plan") -> Iterator[tuple[str, Any]]:
    """Of a plan of tables that cross, checked: patterns as they are meant, losses by table name."""
    names = plan.variables
    for kind in ("exact", "zeros"):
        patterns = tuple(map(crossed_pattern, getattr(plan, kind)))
        for each in patterns:
            margin_named_by(each, names)
        yield kind, patterns
    exact_margins(cast(Patterns, plan.exact), names)
    wanted([each.by for each in plan.wishes], names)
    for field in ("epsilon", "rho", "split"):
        given = getattr(plan, field)
        if isinstance(given, Mapping):
            yield field, _by_table(given, names, what=field)


def _by_table(given: Mapping[str, Any], names: Names, *, what: str) -> dict[str, Any]:
    """Losses or weights by the names of tables as they are written, each table once."""
    found: dict[str, Any] = {}
    for text, number in given.items():
        margins = margins_of(text.replace("*", ":"), names)
        if len(margins) > 1:
            raise PlanError(
                f"{what} of {text!r} is for {len(margins)} tables at once. To fix, state it for "
                "each, by its name, such as county*sex."
            )
        name = name_of(margins[0], names)
        if name in found:
            raise PlanError(f"{what} of table {name} is stated twice. To fix, state it once.")
        found[name] = number
    return found


def refuse_undetermined(workload: Workload, measured: Iterable[str]) -> None:
    """Every published table is a sum of a measured one, or nothing is known of its counts."""
    finer = [margin_of(name, workload.names) for name in measured]
    for margin in workload.margins:
        if not any(each.covers(margin) for each in finer):
            raise PlanError(
                f"table {workload.name(margin)} is a sum of no table with a loss, so nothing would "
                "be known of its counts. To fix, give it or a finer table a loss, or do not "
                "publish it."
            )


def crossed_facts(plan: "Plan") -> dict[str, Any]:
    """The variables and tables of a plan that has them; of others, nothing."""
    if not plan.across:
        return {}
    across = cast(Names, plan.across)
    return {
        "variables": {name: {"levels": list(levels)} for name, levels in across.items()},
        "tables": [each.to_dict() for each in plan.wishes],
    }


def chosen_workload(plan: "Plan", cells: Workload) -> Workload:
    """The variables of a table with the margins that a plan publishes."""
    if list(plan.variables.values()) != list(cells.names.values()):
        ours = f"variables {in_words(plan.variables)}" if plan.across else "levels of one tree"
        raise PlanError(f"the plan is for the {ours}, the table has {in_words(cells.names)}.")
    found = wanted([each.by for each in plan.wishes], plan.variables)
    pairs = zip(cells.variables, plan.variables, strict=True)
    return Workload(
        variables=tuple(replace(each, name=name) for each, name in pairs),
        margins=tuple(margin for new in found for margin in new),
    )


def known_counts(plan: "Plan", workload: Workload, measured: Sequence[Margin]) -> Invariants | None:
    """The counts of measured tables that a plan releases without noise, if any."""
    exact, zeros = cast(Patterns, plan.exact), cast(Patterns, plan.zeros)
    return find_crossed_invariants(workload, measured, exact, zeros)


def in_words(names: Names) -> str:
    """Variables with their levels, as `--across` has them."""
    return ", ".join(
        name if levels == (name,) else f"{name}: {' > '.join(levels)}"
        for name, levels in names.items()
    )


def free_margins(plan: "Plan", workload: Workload) -> tuple[Margin, ...]:
    """What is measured without noise: exact tables, the published sums of them, and the total if
    no person can change it.
    """
    found = exact_margins(cast(Patterns, plan.exact), workload.names)
    sums = [each for each in workload.margins if any(known.covers(each) for known in found)]
    total = Margin((0,) * len(workload.variables))
    alone = () if found or plan.reach(1) else (total,)
    return tuple(dict.fromkeys((*alone, *sums, *found)))


def measured_margins(plan: "Plan", workload: Workload) -> tuple[Margin, ...]:
    """The measured tables: those with a loss or share, else those published; and what is free."""
    losses = plan.split if isinstance(plan.split, Mapping) else plan.epsilon or plan.rho
    chosen = workload.margins
    if isinstance(losses, Mapping):
        chosen = tuple(margin_of(name, workload.names) for name in losses)
    return tuple(dict.fromkeys((*free_margins(plan, workload), *chosen)))


def table_design(plan: "Plan", workload: Workload) -> Design:
    """Which tables are measured, and the share of each.

    For the smallest errors by weight, or with targets those that meet them at the least loss.
    """
    wishes = plan.wishes or (Wanted(by=""),)
    found = wanted([each.by for each in plan.wishes], plan.variables)
    pairs = [(wish, margin) for wish, new in zip(wishes, found, strict=True) for margin in new]
    weights = {margin: float(wish.weight) for wish, margin in pairs}
    if all(wish.weight == 1 for wish in wishes):
        weights |= _weight_of_cells(workload)
    within = {margin: float(each) for margin, each in targets_of(plan).items()}
    free = free_margins(plan, workload)
    reach = {
        each: 0 if any(known.covers(each) for known in free) else plan.reach(workload.size(each))
        for each in dict.fromkeys((*candidates(workload), *free))
    }
    loss = plan.epsilon if plan.rho is None else plan.rho
    assert isinstance(loss, Fraction)
    if within and any(reach[margin] for margin in within):
        return targets(workload, within, weights, unit=plan.unit, reach=reach)
    return design(workload, weights, unit=plan.unit, loss=loss, reach=reach)


def _weight_of_cells(workload: Workload) -> dict[Margin, float]:
    """What the cells weigh, where they are published, if no weight was stated.

    All sums that are not published are made of cells, so they have a share of all weight however
    many tables there are beside them.
    """
    others = len(workload.margins) - 1
    if workload.finest not in workload.margins:
        return {}
    return {workload.finest: max(1.0, others * CELLS / (1 - CELLS))}


def targets_of(plan: "Plan") -> dict[Margin, Fraction]:
    """The published tables that have a target; the smallest where several wishes name one."""
    found: dict[Margin, Fraction] = {}
    for wish in plan.wishes:
        if (width := wish.within) is not None:
            for margin in margins_of(wish.by, plan.variables):
                found[margin] = min(width, found.get(margin, width))
    return found


def best_table_shares(plan: "Plan", workload: Workload) -> dict[str, Fraction] | str:
    """The shares of such a design by the names of its tables."""
    shares = table_design(plan, workload).shares
    return {workload.name(margin): share for margin, share in shares.items()} or "even"
