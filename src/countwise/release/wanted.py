"""The tables a plan asks for, and what of tables that cross is measured, at which share."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from countwise.choices import one_of
from countwise.errors import PlanError
from countwise.margins.shares import Design, candidates, design, targets
from countwise.noise.numbers import exact, written
from countwise.tables.notation import Names, margin_of, wanted
from countwise.tables.workload import Margin, Workload

if TYPE_CHECKING:
    from countwise.release.plan import Plan

ADJUSTMENTS = ("auto", "least-squares")
TREES_ONLY = {"pool": "", "total": "independent", "exact": (), "zeros": ()}
KEYS = ("by", "weight", "within")


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
    """The wishes in `county*age, tract:race`, or in a list of such texts, mappings or wishes."""
    if isinstance(tables, str):
        tables = [text for text in tables.split(",") if text.strip()]
    return tuple(_read_one(each) for each in tables)


def _read_one(given: Any) -> Wanted:
    if isinstance(given, Wanted):
        return given
    if isinstance(given, str):
        return Wanted(by=given.strip())
    if not isinstance(given, Mapping) or "by" not in given:
        raise PlanError(
            'a table needs the levels it crosses, such as by = "county*sex" or by = ["county", '
            '"sex"].'
        )
    for key in given:
        one_of(key, KEYS, what="a key of a table", error=PlanError)
    by = given["by"]
    text = by if isinstance(by, str) else ":".join(map(str, by))
    within = given.get("within")
    return Wanted(
        by=text,
        weight=exact(given.get("weight", 1), what=f"weight of table {text!r}"),
        within=None if within is None else exact(within, what=f"within of table {text!r}"),
    )


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
    if plan.mechanism == "joint":
        raise PlanError(
            "joint noise adds up along one tree, and tables that cross have none. To fix, leave "
            "the mechanism out."
        )
    one_of(plan.adjust, ADJUSTMENTS, what="adjust, of tables that cross,", error=PlanError)
    for name, usual in TREES_ONLY.items():
        if getattr(plan, name) != usual:
            raise PlanError(
                f"{name} is not there for tables that cross. To fix, leave it out, or release "
                "one tree of levels with --by alone."
            )


def in_words(names: Names) -> str:
    """Variables with their levels, as `--across` has them."""
    return ", ".join(
        name if levels == (name,) else f"{name}: {' > '.join(levels)}"
        for name, levels in names.items()
    )


def measured_sizes(
    workload: Workload, losses: Mapping[str, Any] | None, *, free: bool
) -> dict[str, int]:
    """The counts of every measured table: those with a loss or share, else those published.

    The grand total is among them where it is `free`, because no person can change it.
    """
    chosen = workload.margins
    if losses is not None:
        chosen = tuple(margin_of(name, workload.names) for name in losses)
    total = (Margin((0,) * len(workload.variables)),) if free else ()
    return {workload.name(each): workload.size(each) for each in (*total, *chosen)}


def table_design(plan: "Plan", workload: Workload) -> Design:
    """Which tables are measured, and the share of each.

    For the smallest errors by weight, or with targets those that meet them at the least loss.
    """
    wishes = plan.wishes or (Wanted(by=""),)
    found = wanted([each.by for each in plan.wishes], plan.variables)
    pairs = [(wish, margin) for wish, new in zip(wishes, found, strict=True) for margin in new]
    weights = {margin: float(wish.weight) for wish, margin in pairs}
    within = {margin: float(wish.within) for wish, margin in pairs if wish.within is not None}
    reach = {each: plan.reach(workload.size(each)) for each in candidates(workload)}
    loss = plan.epsilon if plan.rho is None else plan.rho
    assert isinstance(loss, Fraction)
    if within and any(reach[margin] for margin in within):
        return targets(workload, within, weights, unit=plan.unit, reach=reach)
    return design(workload, weights, unit=plan.unit, loss=loss, reach=reach)


def best_table_shares(plan: "Plan", workload: Workload) -> dict[str, Fraction] | str:
    """The shares of such a design by the names of its tables."""
    shares = table_design(plan, workload).shares
    return {workload.name(margin): share for margin, share in shares.items()} or "even"
