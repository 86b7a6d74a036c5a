"""Which of the wanted tables is the expensive one: what leaving it out would save."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from countwise.errors import InputError
from countwise.noise.numbers import written
from countwise.release.aims import least_plan
from countwise.release.noise_budget import OPEN
from countwise.release.plan import Plan
from countwise.release.table_accuracy import overall, table_accuracy
from countwise.release.wanted import targets_of
from countwise.tables.workload import Workload

MOST_WISHES = 8  # a plan is made anew without each, which takes up to half a second
WORTH_SAYING = 0.95  # of the loss, or of the others' errors: less is no reason to leave a table out


@dataclass(frozen=True, kw_only=True)
class Saving:
    """The wish that costs most, and what the others would cost, or get, without it."""

    table: str
    with_it: float
    without_it: float
    words: str


def largest_saving(asked: Plan, cells: Workload, *, least: bool = False) -> Saving | None:
    """The wish whose leaving out saves most, if there is one worth saying.

    With `least` of the loss that targets need; else of the errors of the others, where the plan
    leaves their shares open.
    """
    if not 2 <= len(asked.wishes) <= MOST_WISHES or (asked.split != OPEN and not least):
        return None
    found = list(_by_loss(asked, cells) if least else _by_errors(asked, cells))
    best = min(found, key=lambda each: each.without_it / each.with_it, default=None)
    return best if best and best.without_it < WORTH_SAYING * best.with_it else None


def _without(asked: Plan, cells: Workload) -> Iterator[tuple[str, Plan]]:
    """The plan without each wish, where the others still have every variable."""
    for wish in asked.wishes:
        others = [each.to_dict() for each in asked.wishes if each is not wish]
        try:
            plan = replace(asked, tables=others)
            plan.workload(cells)
        except InputError:
            continue
        yield wish.by, plan


def _by_loss(asked: Plan, cells: Workload) -> Iterator[Saving]:
    now = least_plan(asked, cells).budget(cells)
    for table, plan in _without(asked, cells):
        if not targets_of(plan):
            continue
        other = least_plan(plan, cells).budget(cells).loss
        yield Saving(
            table=table,
            with_it=float(now.loss),
            without_it=float(other),
            words=f"The expensive table is {table}: the others' targets need "
            f"--{now.unit} {written(other)} without it.",
        )


def _by_errors(asked: Plan, cells: Workload) -> Iterator[Saving]:
    now = table_accuracy(asked.workload(cells), asked.budget(cells))
    for table, plan in _without(asked, cells):
        found = table_accuracy(plan.workload(cells), plan.budget(cells))
        names = {each.table for each in found}
        before, after = overall([each for each in now if each.table in names]), overall(found)
        yield Saving(
            table=table,
            with_it=before,
            without_it=after,
            words=f"The expensive table is {table}: without it the others would be within "
            f"±{after:,.3g} in place of ±{before:,.3g} (geometric means).",
        )
