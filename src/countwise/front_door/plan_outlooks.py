"""What a plan gives, known before anything is spent: of the levels of a tree, or of tables."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Any

from countwise.ledger.series import Series
from countwise.noise.numbers import LARGEST, written
from countwise.release.aims import with_loss
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.release.savings import Saving
from countwise.release.table_accuracy import TableAccuracy, overall, table_accuracy
from countwise.release.wanted import table_design, targets_of
from countwise.risk.promised_margins import LevelMargins, level_margins
from countwise.risk.simulated_tables import SimulatedTables
from countwise.risk.simulation import LevelError
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.workload import Workload

EXAMPLE = 40
"""A small count, to show what an error does to it."""
HOPELESS = 2.0
"""Times wider than Gaussian noise of the ρ that the same ε implies, from where on that is said."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelOutlook:
    """What a plan of one tree would give, level by level.

    `even` has the margins of the same loss divided evenly, where the plan left that open, and
    `errors` those of simulated releases of a stand-in, where there was one.
    """

    asked: Plan
    chosen: Plan
    """The plan that was asked for, with what it left open settled."""
    hierarchy: Hierarchy
    budget: Budget
    margins: Sequence[LevelMargins]
    even: Sequence[LevelMargins] | None = None
    errors: Sequence[LevelError] | None = None
    costs: Series | None = None
    """What so many releases cost, and what is left of the budget of a ledger, if one was named."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "plan": self.chosen.to_dict(),
            self.budget.unit: written(self.budget.loss),
            "in_words": self.budget.in_words(),
            "sum": self.budget.sum_in_words(),
            "levels": [self._level(i) for i in range(len(self.budget.levels))],
            **({"warning": self.budget.warning()} if self.budget.warning() else {}),
            **make_promise(self.chosen.neighbours, self.budget).to_dict(),
            **_as_data(self.costs),
        }

    def _level(self, i: int) -> dict[str, Any]:
        own = self.budget.levels[i]
        entry: dict[str, Any] = {
            "level": own.level,
            "nodes": own.nodes,
            self.budget.unit: written(own.loss),
            "sensitivity": own.sensitivity,
            "law": own.law.name,
            "scale": written(own.law.scale),
            "exact": own.exact,
            "error95_before": self.margins[i].noise,
            "error95_fitted": self.margins[i].fitted,
        }
        if self.even is not None:
            entry["error95_fitted_even"] = self.even[i].fitted
        if self.errors is not None:
            entry["error95_after"] = self.errors[i].after
            entry["mean_error_after"] = self.errors[i].mean_after
        return entry

    def exact_sentences(self) -> list[str]:
        """How much is not protected, and what that leaves of the promise.

        Which counts those are is not told: their labels are the file's, and a file whose columns
        were mixed up has counts in the place of labels.
        """
        found = [
            f"Exact at level {each.level!r}: {each.exact:,} of {each.nodes:,} counts."
            for each in self.budget.levels
            if each.exact
        ]
        if self.budget.exact is not None:
            found.append(make_promise(self.chosen.neighbours, self.budget).sentences())
        return found

    def repeated_levels(self) -> list[str]:
        """Levels that spend a second time on the same nodes."""
        return [
            f"Level {below.level!r} has the same nodes as {above.level!r} and spends on them "
            "again; leaving it out of --by would save that."
            for above, below in pairwise(self.budget.levels)
            if above.nodes == below.nodes and above.loss
        ]


def level_outlook(
    asked: Plan,
    hierarchy: Hierarchy,
    *,
    errors: Sequence[LevelError] | None = None,
    costs: Series | None = None,
) -> LevelOutlook:
    """What the plan gives on a tree, beside an even split."""
    chosen = asked.settled(hierarchy)
    budget = chosen.budget(hierarchy)
    even = None
    if asked.split == "auto" and chosen.split != "even":
        even = level_margins(hierarchy, replace(chosen, split="even").budget(hierarchy))
    return LevelOutlook(
        asked=asked,
        chosen=chosen,
        hierarchy=hierarchy,
        budget=budget,
        margins=level_margins(hierarchy, budget),
        even=even,
        errors=errors,
        costs=costs,
    )


def _as_data(costs: Series | None) -> dict[str, Any]:
    """What is shown of the charges: nothing where there is one release and no ledger."""
    return {"series": costs.to_dict()} if costs is not None and costs.sentences() else {}


@dataclass(frozen=True, kw_only=True, eq=False)
class TableOutlook:
    """What a plan of tables that cross would give, known before anything is spent.

    `even` is the accuracy of the same loss divided evenly, where the plan left that open; `rho` a
    loss that ε implies, and the accuracy that Gaussian noise has at it.
    """

    asked: Plan
    chosen: Plan
    budget: Budget
    accuracy: list[TableAccuracy]
    even: list[TableAccuracy] | None
    rho: tuple[Fraction, list[TableAccuracy]] | None
    needed: Fraction | None
    """The least loss that meets the targets of the plan, if it has any."""
    within: dict[str, float]
    """The targets by table."""
    doubled: list[TableAccuracy] | None
    """The accuracy of twice the least loss, where that was looked for."""
    saving: Saving | None = None
    """The table whose leaving out saves most, if that is worth saying."""
    trial: SimulatedTables | None = None
    """The errors of simulated releases of a stand-in, where there was one."""
    costs: Series | None = None
    """What so many releases cost, and what is left of the budget of a ledger, if one was named."""

    @property
    def advice(self) -> str:
        """Says when losses in ε add up to more than the tables can bear; else nothing."""
        if self.rho is None:
            return ""
        loss, gaussian = self.rho
        ours, theirs = overall(self.accuracy), overall(gaussian)
        if ours < HOPELESS * theirs:
            return ""
        return (
            f"Losses in ε add up table by table. Gaussian noise at --rho {written(loss)}, which "
            f"this ε implies, would keep these tables within ±{theirs:,.3g} where they are within "
            f"±{ours:,.3g} now (geometric means). Its promise is the weaker one: zCDP."
        )

    @property
    def verdict(self) -> str:
        """Whether the loss meets the targets; nothing where there are none."""
        if not self.within:
            return ""
        if self.needed is None:
            wide = [e.table for e in self.accuracy if e.fitted > self.within.get(e.table, e.fitted)]
            far = f"NOT met for {', '.join(wide)}" if wide else "met"
            return f"The targets are {far} at this loss and split."
        unit = f"--{self.budget.unit} {written(self.needed)}"
        met = "met" if self.needed <= self.budget.loss else "NOT met"
        return f"The targets are {met} at this loss. The least that meets them is {unit}."

    def target_sentences(self) -> list[str]:
        """What the targets leave open, how a small count will look, what twice the loss buys."""
        if self.needed != self.budget.loss:
            return []
        accuracy = self.accuracy
        open_ones = [e for e in accuracy if e.table not in self.within and e.fitted]
        found = []
        if open_ones:
            worst = max(open_ones, key=lambda each: each.fitted)
            found.append(
                f"No target bounds {', '.join(e.table for e in open_ones)}: the loss is the least "
                f"for the others, and errors go up to ±{worst.fitted:,.1f} ({worst.table}). To "
                "bound them, state their targets too."
            )
        small = max(
            (i for i, e in enumerate(accuracy) if e.fitted), key=lambda i: accuracy[i].counts
        )
        table, width = accuracy[small].table, accuracy[small].fitted
        low, high = max(0, floor(EXAMPLE - width)), ceil(EXAMPLE + width)
        found.append(
            f"The smallest counts are those of {table}: a true {EXAMPLE} is published between "
            f"{low:,} and {high:,}, 95 times of 100."
        )
        if self.doubled is not None:
            found.append(
                f"Twice the loss (--{self.budget.unit} {written(2 * self.budget.loss)}) would "
                f"bring {table} from ±{width:,.1f} to ±{self.doubled[small].fitted:,.1f}."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """As data."""
        budget, losses = self.budget, {each.level: each for each in self.budget.levels}
        tables = []
        for i, each in enumerate(self.accuracy):
            entry: dict[str, Any] = {"table": each.table, "counts": each.counts}
            if each.table in losses:
                own = losses[each.table]
                entry |= {budget.unit: written(own.loss), "sensitivity": own.sensitivity}
                entry |= {"law": own.law.name, "scale": written(own.law.scale)}
                entry["error95_before"] = each.noise
            entry["error95_fitted"] = each.fitted
            if each.table in self.within:
                entry["target"] = self.within[each.table]
            if self.doubled is not None:
                entry["error95_fitted_doubled"] = self.doubled[i].fitted
            if self.even is not None:
                entry["error95_fitted_even"] = self.even[i].fitted
            tables.append(entry)
        return {
            "plan": self.chosen.to_dict(),
            budget.unit: written(budget.loss),
            "in_words": budget.in_words(),
            "sum": budget.sum_in_words(),
            "tables": tables,
            **({"advice": self.advice} if self.advice else {}),
            **({} if self.needed is None else {f"least_{budget.unit}": written(self.needed)}),
            **({"warning": budget.warning()} if budget.warning() else {}),
            **make_promise(self.chosen.neighbours, budget).to_dict(),
            **({} if self.saving is None else {"expensive": asdict(self.saving)}),
            **({} if self.trial is None else self.trial.to_dict()),
            **_as_data(self.costs),
        }


def table_outlook(
    asked: Plan,
    cells: Workload,
    *,
    least: bool = False,
    saving: Saving | None = None,
    costs: Series | None = None,
) -> TableOutlook:
    """What the plan gives, beside an even split and, of a loss in ε, beside Gaussian noise.

    Where its loss is the `least` that meets its targets, also what twice that gives. Pure ε
    implies zCDP at ρ = ε²/2 (Bun & Steinke 2016, proposition 1.4).
    """
    workload = asked.workload(cells)
    chosen = asked.settled(cells)
    budget = chosen.budget(cells)
    even = rho = None
    if asked.split == "auto" and chosen.split != "even":
        even = table_accuracy(workload, replace(chosen, split="even").budget(cells))
    needed, doubled = budget.loss if least else None, None
    if least and 2 * budget.loss <= LARGEST:
        twice = with_loss(chosen, 2 * budget.loss)
        doubled = table_accuracy(workload, twice.budget(cells))
    if asked.split == "auto" and any(each.within is not None for each in asked.wishes):
        needed = table_design(asked, workload).loss
    if asked.unit == "epsilon" and budget.loss**2 / 2 <= LARGEST:
        loss = budget.loss**2 / 2
        gaussian = replace(asked, epsilon=None, rho=loss, split="auto", mechanism="auto")
        rho = loss, table_accuracy(workload, gaussian.budget(cells))
    return TableOutlook(
        asked=asked,
        chosen=chosen,
        budget=budget,
        accuracy=table_accuracy(workload, budget),
        even=even,
        rho=rho,
        needed=needed,
        within={workload.name(each): float(width) for each, width in targets_of(asked).items()},
        doubled=doubled,
        saving=saving,
        costs=costs,
    )
