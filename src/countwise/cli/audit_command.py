"""countwise audit: checks a user can run on their own machine."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.front_door import audit_functions
from countwise.front_door.audit_functions import LAWS, NOISE_DRAWS
from countwise.noise.numbers import written
from countwise.release.blackbox import CONFIDENCE, RUNS, ProvenLoss

EXAMPLE = "Example: countwise audit noise --draws 1000000"
RELEASE_EXAMPLE = "Example: countwise audit release cells.csv --plan plan.toml --runs 20000"
FEWEST = 1000
"""Releases of each table below which next to nothing could be proved."""

app = typer.Typer(no_args_is_help=True, help="Checks to run on your own machine.")


@app.command("noise", epilog=EXAMPLE)
def noise(
    law: Annotated[str, typer.Option(help=f"all, {', '.join(LAWS)}.")] = "all",
    sampler: Annotated[str, typer.Option("--noise", help="exact or opendp.")] = "exact",
    draws: Annotated[int, typer.Option(min=100_000, help="Draws at each scale.")] = NOISE_DRAWS,
    json: options.Json = False,
) -> None:
    """Test that the noise drawn here has the law it should have, scale by scale."""
    with progress() as tell:
        verdicts = audit_functions.audit_noise(law, noise=sampler, draws=draws, tell=tell)
    passed = all(verdict.passed for verdict in verdicts)
    if json:
        print_json(
            [
                {
                    "law": each.law.name,
                    "scale": written(each.law.scale),
                    "p_true": each.p_true,
                    "p_wrong": list(each.p_wrong),
                    "passed": each.passed,
                }
                for each in verdicts
            ]
        )
    else:
        print_table(
            ("law", "scale", "fits, p", "fits 0.9×, p", "fits 1.1×, p", "verdict"),
            [
                (
                    each.law.name,
                    written(each.law.scale),
                    f"{each.p_true:.3f}",
                    *(f"{p:.0e}" for p in each.p_wrong),
                    "pass" if each.passed else "FAIL",
                )
                for each in verdicts
            ],
        )
        out.print(
            "\nThe noise is what it should be."
            if passed
            else "\nThe noise is NOT what it should be: do not release from this machine."
        )
    if not passed:
        raise typer.Exit(1)


@app.command("release", epilog=RELEASE_EXAMPLE)
@options.taking(options.LEVELS, options.DRAWING, options.ADJUSTING, before="plan_file")
def release(
    cells: Annotated[Path, typer.Argument(help="Public list of cells; counts are not read.")],
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
    **words: Any,
) -> None:
    """Release two tables that differ in one person, again and again, and prove a loss from it.

    Reads no confidential count and spends nothing. Exit code 1 if more is proved than stated.
    """
    with progress() as tell:
        made = audit_functions.audit_release(
            cells,
            plan_file,
            table=table,
            other=other,
            count=count,
            adjusted=adjusted,
            runs=runs,
            confidence=confidence,
            no_totals=no_totals,
            tell=tell,
            **words,
        )
    if json:
        print_json(made.to_dict())
    else:
        _print_finding(made.found)
    if made.broken:
        raise typer.Exit(1)


def _print_finding(found: ProvenLoss) -> None:
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
