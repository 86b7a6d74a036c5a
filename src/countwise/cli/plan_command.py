"""countwise plan: what a release would cost and how good it would be, before anything is spent."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.planned_charges import Account, as_data, print_charges
from countwise.cli.stand_in_tables import Trial, print_stand_in
from countwise.cli.table_margins import make_outlook, print_outlook, print_promise
from countwise.noise.numbers import written
from countwise.release.aims import least_plan
from countwise.release.budget import Budget, counts_in_words
from countwise.release.folder import whole
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.release.savings import largest_saving
from countwise.reports.plan_page import plan_page
from countwise.risk.closed_form import closed_form
from countwise.risk.loss_curve import POINTS, loss_curve
from countwise.risk.promised_margins import LevelMargins, level_margins
from countwise.risk.simulation import LevelError, expected_errors
from countwise.risk.tree_targets import least_tree_plan
from countwise.tables.crossed_cells import read_crossed_domain
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain, read_public_counts
from countwise.tables.workload import Workload

EXAMPLE = "Example: countwise plan cells.csv --by region,county --epsilon 1 --out plan.toml"


def plan(
    cells: Annotated[Path, typer.Argument(help="Public list of cells; counts are not read.")],
    by: options.By = None,
    across: options.Across = None,
    tables: options.Tables = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="Find the least loss, in rho or epsilon, at which tables meet their targets: "
            "--tables 'county*age: ±20; tract: ±50'."
        ),
    ] = None,
    split: options.Split = None,
    neighbours: options.Neighbours = None,
    rows: options.Rows = None,
    mechanism: options.Mechanism = None,
    noise: options.Noise = None,
    adjust: options.Adjust = None,
    pool: options.Pool = None,
    total: options.Total = None,
    ties: options.Ties = None,
    exact: options.Exact = None,
    zeros: options.Zeros = None,
    title: options.Title = None,
    producer: options.Producer = None,
    contact: options.Contact = None,
    person: options.Person = None,
    outside: options.Outside = None,
    plan_file: options.PlanFile = None,
    layout: options.LayoutName = "long",
    total_code: options.TotalCode = None,
    no_totals: options.NoTotals = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    thousands: options.Thousands = None,
    skip: options.Skip = 0,
    sheet: options.Sheet = None,
    stand_in: Annotated[
        Path | None,
        typer.Option(
            help="Public or made-up counts of the same cells, to simulate the release on."
        ),
    ] = None,
    count: Annotated[str, typer.Option(help="Count column of the stand-in.")] = "count",
    repetitions: Annotated[int, typer.Option(min=1, help="Simulated releases.")] = 100,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the simulation (not of any noise).")
    ] = 0,
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
) -> None:
    """Show levels, privacy loss and expected error. Reads no count and spends nothing."""
    account = Account(url=ledger, dataset=dataset, releases=releases)
    asked = options.with_zeros_of(cells, account.plan(plan_file, locals()))
    loader = options.make_layout(
        layout,
        total_code,
        domain=None,
        by=asked.columns,
        no_totals=no_totals,
        reading=options.make_reading(locals()),
    )
    if asked.across:
        trial = (
            None
            if stand_in is None
            else Trial(
                file=stand_in, count=count, layout=loader, repetitions=repetitions, seed=seed
            )
        )
        _plan_crossed(
            cells,
            asked,
            trial,
            out_file,
            least=unit is not None,
            page=page,
            account=account,
            overwrite=overwrite,
            json=json,
            count=count,
            layout=loader,
        )
        return
    hierarchy = read_domain(cells, by=asked.by, count=count, layout=loader)
    if unit is not None:
        asked = least_tree_plan(asked, hierarchy, options.targets_of_tree(plan_file, tables))
    costs = account.charges(asked)
    chosen = asked.settled(hierarchy)
    budget = chosen.budget(hierarchy)
    margins = level_margins(hierarchy, budget)
    even = None
    if asked.split == "auto" and chosen.split != "even":
        even = level_margins(hierarchy, replace(chosen, split="even").budget(hierarchy))
    errors = None
    if stand_in is not None:
        _, public = read_public_counts(
            stand_in, by=chosen.by, count=count, domain=hierarchy, loader=loader
        )
        with progress(repetitions) as tell:
            errors = expected_errors(
                hierarchy,
                public,
                chosen,
                repetitions=repetitions,
                rng=np.random.default_rng(seed),
                tell=lambda done: tell(f"simulated release {done + 1}"),
            )
    _write(asked, out_file, overwrite=overwrite)
    _write_page(chosen, hierarchy, page, {}, overwrite=overwrite)
    if json:
        print_json(_as_data(chosen, budget, margins, even, errors) | as_data(costs))
    else:
        _print(chosen, budget, margins, even, errors)
        _print_exact(chosen, budget)
        print_charges(costs)
        if out_file is not None:
            out.print(f"Plan written to {out_file}.")


def _write(asked: Plan, out_file: Path | None, *, overwrite: bool) -> None:
    if out_file is not None:
        with whole(out_file, overwrite=overwrite) as partial:
            partial.write_text(asked.to_toml(), encoding="utf-8")


def _write_page(
    chosen: Plan,
    shape: Hierarchy | Workload,
    page: Path | None,
    within: Mapping[str, float],
    *,
    overwrite: bool,
) -> None:
    """The page of a settled plan, where one was asked for."""
    if page is None:
        return
    with whole(page, overwrite=overwrite) as partial, progress(POINTS) as tell:
        curve = loss_curve(chosen, shape, tell=tell)
        form = closed_form(chosen, shape, curve.planned)
        text = plan_page(chosen, chosen.budget(shape), curve, form, within=within)
        partial.write_text(text, encoding="utf-8")


def _plan_crossed(
    cells: Path,
    asked: Plan,
    trial: Trial | None,
    out_file: Path | None,
    *,
    least: bool,
    page: Path | None,
    account: Account,
    overwrite: bool,
    json: bool,
    count: str,
    layout: Layout,
) -> None:
    """The same for tables that cross: what each publishes, costs, and stays within."""
    crossing = read_crossed_domain(cells, asked.variables, count=count, layout=layout)
    saving = largest_saving(asked, crossing.workload, least=least)
    if least:
        asked = least_plan(asked, crossing.workload)
    costs = account.charges(asked)
    outlook = make_outlook(asked, crossing.workload, least=least)
    simulated = None
    if trial is not None:
        simulated = trial.errors(outlook.chosen, crossing.workload, outlook.budget)
    _write(asked, out_file, overwrite=overwrite)
    _write_page(outlook.chosen, crossing.workload, page, outlook.within, overwrite=overwrite)
    if json:
        said: dict[str, Any] = {} if saving is None else {"expensive": asdict(saving)}
        if simulated is not None:
            said |= {"stand_in": simulated.to_list(), "releases": simulated.releases}
        print_json(outlook.to_dict() | said | as_data(costs))
        return
    print_outlook(outlook)
    if simulated is not None:
        print_stand_in(simulated, outlook.accuracy)
    if saving is not None:
        out.print(saving.words, markup=False)
    print_charges(costs)
    if out_file is not None:
        out.print(f"Plan written to {out_file}.")


def _as_data(
    chosen: Plan,
    budget: Budget,
    margins: list[LevelMargins],
    even: list[LevelMargins] | None,
    errors: list[LevelError] | None,
) -> dict[str, Any]:
    levels = []
    for i, each in enumerate(budget.levels):
        entry: dict[str, Any] = {
            "level": each.level,
            "nodes": each.nodes,
            budget.unit: written(each.loss),
            "sensitivity": each.sensitivity,
            "law": each.law.name,
            "scale": written(each.law.scale),
            "exact": each.exact,
            "error95_before": margins[i].noise,
            "error95_fitted": margins[i].fitted,
        }
        if even is not None:
            entry["error95_fitted_even"] = even[i].fitted
        if errors is not None:
            entry["error95_after"] = errors[i].after
            entry["mean_error_after"] = errors[i].mean_after
        levels.append(entry)
    return {
        "plan": chosen.to_dict(),
        budget.unit: written(budget.loss),
        "in_words": budget.in_words(),
        "sum": budget.sum_in_words(),
        "levels": levels,
        **({"warning": budget.warning()} if budget.warning() else {}),
        **make_promise(chosen.neighbours, budget).to_dict(),
    }


def _print_exact(chosen: Plan, budget: Budget) -> None:
    """How much is not protected, and what that leaves of the promise.

    Which counts those are is not told: their labels are the file's, and a file whose columns were
    mixed up has counts in the place of labels.
    """
    for each in budget.levels:
        if each.exact:
            share = f"{each.exact:,} of {each.nodes:,}"
            out.print(f"Exact at level {each.level!r}: {share} counts.", markup=False)
    if budget.exact is not None:
        out.print(make_promise(chosen.neighbours, budget).sentences())


def _print(
    chosen: Plan,
    budget: Budget,
    margins: list[LevelMargins],
    even: list[LevelMargins] | None,
    errors: list[LevelError] | None,
) -> None:
    """The levels, with the errors that 95 of 100 counts stay within."""
    titles = ["level", "counts", budget.symbol, "noise", "fitted"]
    titles += [] if even is None else ["even split"]
    titles += [] if errors is None else ["adjusted"]
    rows = []
    for i, each in enumerate(budget.levels):
        row = [each.level, counts_in_words(each), written(each.loss)]
        row += [f"±{margins[i].noise:,}", f"±{margins[i].fitted:,.1f}"]
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
    print_promise(chosen, budget)
    if errors is None:
        out.print("For errors after adjustment, pass public counts of a similar shape: --stand-in.")
    for above, below in pairwise(budget.levels):
        if above.nodes == below.nodes and above.loss:
            out.print(
                f"Level {below.level!r} has the same nodes as {above.level!r} and spends on "
                "them again; leaving it out of --by would save that."
            )
