"""countwise risk: expected losses, counterexamples, mechanisms and advice."""

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.options import Seed
from countwise.cli.risk import claim_commands
from countwise.cli.risk.advice_tables import advice_data, print_advice
from countwise.cli.risk.claim_commands import plain
from countwise.errors import InputError
from countwise.front_door import advice_function, risk_functions
from countwise.front_door.advice_function import RiskAdvice
from countwise.front_door.risk_functions import KINDS
from countwise.noise.numbers import exact, written
from countwise.risk import number_lists
from countwise.risk.advice import WARNING
from countwise.risk.loss import DRAWS, METHODS
from countwise.risk.mechanisms import DELTA, MECHANISMS

app = typer.Typer(help="Expected loss of estimators and mechanisms, on public or made-up counts.")

Page = Annotated[
    Path | None,
    typer.Option("--out", help="Page with the figures (.html), or table (.csv, .parquet)."),
]


app.command("search", epilog=claim_commands.SEARCH_EXAMPLE)(claim_commands.search)
app.command("certify", epilog=claim_commands.CERTIFY_EXAMPLE)(claim_commands.certify_claim)


@app.callback(
    invoke_without_command=True,
    epilog="Example: countwise risk --histogram 0,16 --epsilon 0.1",
)
def losses(
    context: typer.Context,
    histogram: Annotated[str | None, typer.Option(help="True counts, such as 0,16.")] = None,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of a count.")] = "1",
    noise: Annotated[str, typer.Option(help=f"One of {', '.join(KINDS)}.")] = "laplace",
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = "auto",
    draws: Annotated[int, typer.Option(min=2, help="Draws of a simulation.")] = DRAWS,
    seed: Seed = 0,
    json: options.Json = False,
) -> None:
    """Expected squared error of every estimator on one histogram."""
    if context.invoked_subcommand is not None:
        return
    if histogram is None:
        if json:
            raise InputError("no histogram given. To fix, add --histogram 0,16.")
        print(context.get_help())
        raise typer.Exit(0)
    with progress() as tell:
        found = risk_functions.risk_losses(
            histogram,
            epsilon=epsilon,
            noise=noise,
            method=method,
            draws=draws,
            seed=seed,
            tell=tell,
        )
    if json:
        print_json(
            {
                "histogram": [written(h) for h in number_lists.histogram(histogram)],
                "epsilon": written(exact(epsilon)),
                "noise": noise,
                "estimators": [asdict(each) for each in found],
            }
        )
        return
    print_table(
        ("estimator", "expected squared error", "error", "method"),
        [(e.estimator, f"{e.expected_sse:.12g}", f"{e.error:.2g}", e.method) for e in found],
    )


@app.command(
    "mechanisms", epilog="Example: countwise risk mechanisms --epsilons 0.1:5 --out m.html"
)
def mechanisms(
    epsilons: Annotated[str, typer.Option(help="Privacy losses, such as 0.1:5.")] = "0.1:5",
    histogram: Annotated[
        str | None, typer.Option(help="True counts; left out, a made-up payroll of 50 bins.")
    ] = None,
    draws: Annotated[int, typer.Option(min=2, help="Draws at each ε.")] = 500,
    delta: Annotated[float, typer.Option(help="δ of gaussian-delta.")] = DELTA,
    seed: Seed = 0,
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Variance, L1 and L2 error and quantiles of the mechanisms at matched privacy."""
    with progress() as tell:
        pairs = risk_functions.risk_mechanisms(
            epsilons,
            histogram=histogram,
            draws=draws,
            delta=delta,
            seed=seed,
            out=page,
            overwrite=overwrite,
            tell=tell,
        )
    if json:
        print_json([plain(asdict(one)) | plain(asdict(whole_)) for one, whole_ in pairs])
        return
    shown = [
        pair for pair in pairs if len(pairs) <= 12 * len(MECHANISMS) or _round(pair[0].epsilon)
    ]
    print_table(
        ("mechanism", "ε", "variance", "mean |error|", "within, 95%", "L1, histogram", "L2"),
        [
            (
                one.mechanism,
                written(one.epsilon),
                f"{one.variance:.4g}",
                f"{one.mean_absolute:.4g}",
                f"±{one.within['0.95']:.3g}",
                f"{hist.l1:.4g} ± {hist.l1_sd:.2g}",
                f"{hist.l2:.4g} ± {hist.l2_sd:.2g}",
            )
            for one, hist in shown
        ],
    )
    if len(shown) < len(pairs):
        out.print(f"{len(pairs) // len(MECHANISMS)} values of ε computed; --json prints all.")
    if page is not None:
        out.print(f"Written: {page.resolve()}", soft_wrap=True)


def _round(epsilon: Fraction) -> bool:
    """Values of ε that a long table shows."""
    return epsilon.denominator == 1 or epsilon in (Fraction(1, 10), Fraction(1, 2))


@app.command(
    "advise",
    epilog="Example: countwise risk advise stand-in.csv --by region,county --count n --epsilon 1",
)
def advise_on(
    table: Annotated[Path, typer.Argument(help="PUBLIC or made-up counts, one row a cell.")],
    by: options.By = None,
    across: options.Across = None,
    tables: options.Tables = None,
    count: Annotated[str, typer.Option(help="Count column.")] = "count",
    epsilon: Annotated[
        str | None, typer.Option(help="Privacy loss in all; several such as 0.5,1,2 in one run.")
    ] = None,
    rho: Annotated[
        str | None, typer.Option(help="The same as zCDP, of tables that cross: 0.05,1/2.")
    ] = None,
    repetitions: Annotated[
        int, typer.Option(min=3, help="Simulated releases an option.")
    ] = advice_function.REPETITIONS,
    seed: Seed = 0,
    csv: Annotated[
        Path | None, typer.Option(help="Write every figure here, .csv or .parquet.")
    ] = None,
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Rank what plans could do by all their tables, on a stand-in. Never on confidential counts."""
    with progress() as tell:
        advice = advice_function.risk_advise(
            table,
            by=by,
            across=across,
            tables=tables,
            epsilon=epsilon,
            rho=rho,
            count=count,
            repetitions=repetitions,
            seed=seed,
            csv=csv,
            out=page,
            overwrite=overwrite,
            tell=tell,
        )
    if json:
        refused = advice.refused if isinstance(advice, RiskAdvice) else []
        print_json({"warning": WARNING, "options": advice_data(advice), "refused": refused})
        return
    out.print(f"{WARNING}\n", style="bold")
    print_advice(advice)
    if page is not None:
        out.print(f"Written: {page.resolve()}", soft_wrap=True)
