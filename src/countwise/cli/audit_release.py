"""countwise audit release: what releases of a plan give away about one person, tried out."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.errors import PlanError
from countwise.noise.numbers import written
from countwise.release.blackbox import CONFIDENCE, RUNS, TOLD, ProvenLoss, prove_loss
from countwise.release.neighbours import Pair, given_pair, widest_pair
from countwise.release.plan import Plan
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain, read_public_counts

EXAMPLE = "Example: countwise audit release cells.csv --plan plan.toml --runs 20000"
FEWEST = 1000


def release(
    cells: Annotated[Path, typer.Argument(help="Public list of cells; counts are not read.")],
    by: options.By = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
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
    plan_file: options.PlanFile = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Public or made-up counts of the cells (default: made here)."),
    ] = None,
    other: Annotated[
        Path | None, typer.Option(help="The same counts but for one person, with --table.")
    ] = None,
    count: Annotated[str, typer.Option(help="Count column of these tables.")] = "count",
    adjusted: Annotated[
        bool,
        typer.Option("--adjusted", help="Judge by the adjusted counts, not by the noisy ones."),
    ] = False,
    runs: Annotated[int, typer.Option(min=FEWEST, help="Releases of each table.")] = RUNS,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=1 - 1e-12, help="Of the loss that is proved.")
    ] = CONFIDENCE,
    no_totals: options.NoTotals = False,
    json: options.Json = False,
) -> None:
    """Release two tables that differ in one person, again and again, and prove a loss from it.

    Reads no confidential count and spends nothing. Exit code 1 if more is proved than stated.
    """
    asked = options.with_zeros_of(cells, options.make_plan(plan_file, locals()))
    layout = Layout(no_totals=no_totals)
    hierarchy = read_domain(cells, by=asked.by, layout=layout)
    chosen = asked.settled(hierarchy)
    budget = chosen.budget(hierarchy)
    if (table is None) != (other is None):
        raise PlanError("--table and --other go together: give both tables, or neither.")
    if table is None or other is None:
        pair = widest_pair(hierarchy, chosen, budget)
    else:
        given = [
            read_public_counts(path, by=chosen.by, count=count, domain=cells, loader=layout)[1]
            for path in (table, other)
        ]
        pair = given_pair(hierarchy, chosen, budget, (given[0], given[1]))
    with progress(2 * TOLD) as tell:
        found = prove_loss(
            chosen, budget, pair, runs=runs, confidence=confidence, adjusted=adjusted, tell=tell
        )
    if json:
        print_json(as_data(found, chosen, adjusted=adjusted))
    else:
        print_finding(found)
    if found.broken:
        raise typer.Exit(1)


def as_data(found: ProvenLoss, plan: Plan, *, adjusted: bool) -> dict[str, Any]:
    """What was tried and found."""
    return {
        "plan": plan.to_dict(),
        "judged_by": "adjusted counts" if adjusted else "noisy counts",
        "person": found.pair.what,
        "changed_counts": _changed(found.pair),
        "unit": found.unit,
        "stated": written(found.pair.stated.amount),
        "proved": found.proved,
        "confidence": found.confidence,
        "event_hits": list(found.hits),
        "event_runs": found.runs,
        "above_stated": found.broken,
    }


def _changed(pair: Pair) -> dict[str, int]:
    levels = zip(pair.hierarchy.levels, pair.changes(), strict=True)
    return {level: int((change != 0).sum()) for level, change in levels}


def print_finding(found: ProvenLoss) -> None:
    """The loss proved beside the loss stated, and what that means."""
    symbol = "ε" if found.unit == "epsilon" else "ρ"
    print_table(
        ("two tables between which", f"{symbol} stated", f"{symbol} proved", "event seen", "of"),
        [
            (
                found.pair.what,
                written(found.pair.stated.amount),
                f"{found.proved:.3g}",
                f"{found.hits[0]:,} and {found.hits[1]:,}",
                f"{found.runs:,} each",
            )
        ],
    )
    out.print(f"\n{_verdict(found, symbol)}")


def _verdict(found: ProvenLoss, symbol: str) -> str:
    sure = f"{100 * found.confidence:.10g}%"
    if found.broken:
        return (
            f"These releases give away MORE than is stated: a loss of at least {symbol} = "
            f"{found.proved:.3g}, with {sure} confidence. Do not release with this plan on this "
            "machine, and report it."
        )
    return (
        f"Nothing found: the loss that these releases prove, with {sure} confidence, is not above "
        f"the stated one. It can not be more than what so many releases show of one pair of "
        "tables and one event, so it does not prove that the loss is as small as stated; that "
        "rests on the noise and its scale. More --runs come closer."
    )
