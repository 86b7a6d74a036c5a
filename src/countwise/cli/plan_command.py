"""countwise plan: what a release would cost and how good it would be, before anything is spent."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.table_margins import print_outlook, print_promise
from countwise.front_door import plan_function
from countwise.front_door.plan_outlooks import LevelOutlook
from countwise.noise.numbers import written
from countwise.release.budget import counts_in_words

EXAMPLE = "Example: countwise plan cells.csv --by region,county --epsilon 1 --out plan.toml"


@options.taking(
    options.CROSSING,
    options.DRAWING,
    options.ADJUSTING,
    options.IMPRINT,
    options.RECORDS,
    options.FILE,
    before="plan_file",
)
def plan(
    cells: Annotated[Path, typer.Argument(help="Public list of cells; counts are not read.")],
    plan_file: options.PlanFile = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Find the least loss, in rho or epsilon, at which tables meet their targets: "
            "--tables 'county*age: ±20; tract: ±50'."
        ),
    ] = None,
    stand_in: Annotated[
        Path | None,
        typer.Option(
            help="Public or made-up counts of the same cells, to simulate the release on."
        ),
    ] = None,
    count: Annotated[str, typer.Option(help="Count column of the stand-in.")] = "count",
    repetitions: Annotated[
        int, typer.Option(min=1, help="Simulated releases.")
    ] = plan_function.REPETITIONS,
    seed: options.Seed = 0,
    out_file: Annotated[
        Path | None,
        typer.Option("--out", help="Write the plan here, for countwise release --plan."),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Write a page to try other losses and shares on, with the errors."),
    ] = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Show what this ledger would be charged and has left; with no loss, plan with "
            "all of that. Nothing is charged."
        ),
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Data set of the ledger.")] = None,
    releases: Annotated[
        int, typer.Option(min=1, help="So many releases of the same people: 12 for a year's.")
    ] = 1,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    **words: Any,
) -> None:
    """Show levels, privacy loss and expected error. Reads no count and spends nothing."""
    with progress() as tell:
        outlook = plan_function.plan(
            cells,
            plan_file,
            unit=unit,
            stand_in=stand_in,
            count=count,
            repetitions=repetitions,
            seed=seed,
            out=out_file,
            page=page,
            ledger=ledger,
            dataset=dataset,
            releases=releases,
            overwrite=overwrite,
            tell=tell,
            **words,
        )
    if json:
        print_json(outlook.to_dict())
        return
    if isinstance(outlook, LevelOutlook):
        _print(outlook)
    else:
        print_outlook(outlook)
        if outlook.saving is not None:
            out.print(outlook.saving.words, markup=False)
    costs = outlook.costs
    for sentence in () if costs is None else costs.sentences():
        style = None if costs is None or costs.enough else "bold"
        out.print(sentence, markup=False, soft_wrap=True, style=style)
    if out_file is not None:
        out.print(f"Plan written to {out_file}.")


def _print(outlook: LevelOutlook) -> None:
    """The levels, with the errors that 95 of 100 counts stay within."""
    even, errors = outlook.even, outlook.errors
    titles = ["level", "counts", outlook.budget.symbol, "noise", "fitted"]
    titles += [] if even is None else ["even split"]
    titles += [] if errors is None else ["adjusted"]
    rows = []
    for i, each in enumerate(outlook.budget.levels):
        margins = outlook.margins[i]
        row = [each.level, counts_in_words(each), written(each.loss)]
        row += [f"±{margins.noise:,}", f"±{margins.fitted:,.1f}"]
        row += [] if even is None else [f"±{even[i].fitted:,.1f}"]
        row += [] if errors is None else [f"±{errors[i].after:,.0f}"]
        rows.append(tuple(row))
    print_table(tuple(titles), rows)
    out.print(
        "95 of 100 counts stay within: the noise as drawn; fitted to all levels by least squares"
        + ("" if even is None else "; the same with an even split")
        + ("" if errors is None else "; as adjusted, in simulated releases of the stand-in")
        + "."
    )
    print_promise(outlook.chosen, outlook.budget)
    if errors is None:
        out.print("For errors after adjustment, pass public counts of a similar shape: --stand-in.")
    for sentence in (*outlook.repeated_levels(), *outlook.exact_sentences()):
        out.print(sentence, markup=False)
