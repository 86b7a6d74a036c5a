"""Tables that cross, as commands show them: their counts, what they cost, and their errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any

from countwise.cli.console import out, print_table
from countwise.noise.numbers import LARGEST, written
from countwise.release.aims import with_loss
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.release.table_accuracy import TableAccuracy, overall, table_accuracy
from countwise.release.wanted import table_design, targets_of
from countwise.tables.workload import Workload

EXAMPLE = 40  # a small count, to show what an error does to it
HOPELESS = 2.0  # times wider than Gaussian noise of the ρ that the same ε implies


@dataclass(frozen=True, kw_only=True, eq=False)
class Outlook:
    """What a plan of tables that cross would give, known before anything is spent.

    `even` is the accuracy of the same loss divided evenly, where the plan left that open; `rho` a
    loss that ε implies, and the accuracy that Gaussian noise has at it.
    """

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
        }


def make_outlook(asked: Plan, cells: Workload, *, least: bool = False) -> Outlook:
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
    return Outlook(
        chosen=chosen,
        budget=budget,
        accuracy=table_accuracy(workload, budget),
        even=even,
        rho=rho,
        needed=needed,
        within={workload.name(each): float(width) for each, width in targets_of(asked).items()},
        doubled=doubled,
    )


def target_sentences(outlook: Outlook) -> list[str]:
    """What the targets leave open, how a small count will look, and what twice the loss buys."""
    if outlook.needed != outlook.budget.loss:
        return []
    accuracy = outlook.accuracy
    open_ones = [e for e in accuracy if e.table not in outlook.within and e.fitted]
    found = []
    if open_ones:
        worst = max(open_ones, key=lambda each: each.fitted)
        found.append(
            f"No target bounds {', '.join(e.table for e in open_ones)}: the loss is the least for "
            f"the others, and errors go up to ±{worst.fitted:,.1f} ({worst.table}). To bound them, "
            "state their targets too."
        )
    small = max((i for i, e in enumerate(accuracy) if e.fitted), key=lambda i: accuracy[i].counts)
    table, width = accuracy[small].table, accuracy[small].fitted
    low, high = max(0, floor(EXAMPLE - width)), ceil(EXAMPLE + width)
    found.append(
        f"The smallest counts are those of {table}: a true {EXAMPLE} is published between {low:,} "
        f"and {high:,}, 95 times of 100."
    )
    if outlook.doubled is not None:
        found.append(
            f"Twice the loss (--{outlook.budget.unit} {written(2 * outlook.budget.loss)}) would "
            f"bring {table} from ±{width:,.1f} to ±{outlook.doubled[small].fitted:,.1f}."
        )
    return found


def print_outlook(outlook: Outlook) -> None:
    """The tables, with the errors that 95 of 100 counts stay within."""
    print_tables(outlook.accuracy, outlook.budget, even=outlook.even, within=outlook.within)
    out.print(
        "95 of 100 counts stay within: the noise as drawn; fitted to all measured tables by least "
        "squares" + ("" if outlook.even is None else "; the same with an even split") + "."
    )
    if outlook.verdict:
        out.print(outlook.verdict, style="bold")
    for sentence in target_sentences(outlook):
        out.print(sentence, markup=False)
    if outlook.advice:
        out.print(outlook.advice, style="bold")
    print_promise(outlook.chosen, outlook.budget)
    if outlook.budget.exact is not None:
        out.print(make_promise(outlook.chosen.neighbours, outlook.budget).sentences())


def print_promise(chosen: Plan, budget: Budget) -> None:
    """What a plan spends, and whom it protects."""
    out.print(f"Noise: {chosen.mechanism}.")
    rows_a_person = "one row" if chosen.rows == 1 else f"up to {chosen.rows} rows"
    spent_as = make_promise(chosen.neighbours, budget).spent_as
    out.print(f"\n{spent_as} {budget.in_words()}: {budget.sum_in_words()}")
    if budget.warning():
        out.print(budget.warning(), style="bold")
    out.print(f"Neighbours: {chosen.neighbours}; a person has {rows_a_person}.")
    if not chosen.person:
        out.print(
            "That is taken on trust: nothing enforces it unless records are counted with --person."
        )


def print_tables(
    accuracy: Sequence[TableAccuracy],
    budget: Budget,
    *,
    even: Sequence[TableAccuracy] | None = None,
    within: Mapping[str, float] | None = None,
) -> None:
    """Every published table, and those that are measured for their sake."""
    within = within or {}
    titles = ["table", "counts", budget.symbol, "noise", "fitted"]
    titles += [] if even is None else ["even split"]
    titles += ["target"] if within else []
    losses = {each.level: each for each in budget.levels}
    rows = []
    for i, each in enumerate(accuracy):
        own = losses.pop(each.table, None)
        name, counts, drawn, fitted = each.in_words()
        row = [name, counts, "" if own is None else written(own.loss), drawn, fitted]
        row += [] if even is None else [f"±{even[i].fitted:,.1f}"]
        target = f"±{within[each.table]:,g}" if each.table in within else "none"
        rows.append(tuple(row + ([target] if within else [])))
    for own in losses.values():
        row = [f"{own.level} (not published)", f"{own.nodes:,}", written(own.loss)]
        row += [f"±{own.law.margin(0.95):,}", ""]
        rows.append(tuple(row + [""] * (len(titles) - len(row))))
    print_table(tuple(titles), rows)
