"""Tables that cross, as commands show them: their counts, what they cost, and their errors."""

from collections.abc import Mapping, Sequence

from countwise.cli.console import out, print_table
from countwise.front_door.plan_outlooks import TableOutlook
from countwise.margins.shares import NORMAL
from countwise.noise.numbers import written
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.release.table_accuracy import TableAccuracy
from countwise.risk.simulated_tables import SimulatedTables


def print_outlook(outlook: TableOutlook) -> None:
    """The tables, with the errors that 95 of 100 counts stay within."""
    print_tables(outlook.accuracy, outlook.budget, even=outlook.even, within=outlook.within)
    out.print(
        "95 of 100 counts stay within: the noise as drawn; fitted to all measured tables by least "
        "squares" + ("" if outlook.even is None else "; the same with an even split") + "."
    )
    if outlook.trial is not None:
        _print_trial(outlook.trial, outlook.accuracy)
    if outlook.verdict:
        out.print(outlook.verdict, style="bold")
    for sentence in outlook.target_sentences():
        out.print(sentence, markup=False)
    if outlook.advice:
        out.print(outlook.advice, style="bold")
    print_promise(outlook.chosen, outlook.budget)
    if outlook.budget.exact is not None:
        out.print(make_promise(outlook.chosen.neighbours, outlook.budget).sentences())


def _print_trial(trial: SimulatedTables, accuracy: Sequence[TableAccuracy]) -> None:
    """Each table's margin after least squares, and as adjusted with its standard error."""
    rows = [
        (
            fitted.table,
            f"±{fitted.fitted:,.1f}",
            f"±{NORMAL * each.rmse:,.1f}",
            f"{NORMAL * each.uncertain:,.2g}",
        )
        for fitted, each in zip(accuracy, trial.errors, strict=True)
    ]
    out.print(f"\nIn {trial.releases} simulated releases of the stand-in:")
    print_table(("table", "fitted", "adjusted", "give or take"), rows)
    out.print(
        "Fitted is least squares, as above; adjusted is what is published, without negative counts "
        "and with what cells share: 1.96 root mean squared errors, and the standard error of that "
        "over the releases. It holds for counts like those of the stand-in."
    )


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
