"""countwise risk: expected losses, counterexamples, mechanisms and advice."""

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from countwise.choices import one_of
from countwise.cli import claim_commands, options
from countwise.cli.advice_tables import (
    option_data,
    print_levels,
    print_options,
    write_levels,
    write_options,
)
from countwise.cli.claim_commands import Seed, plain
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.output_files import PAGES, output_files
from countwise.errors import InputError
from countwise.noise.laws import Geometric, IntegerLaw, Laplace, RoundedLaplace
from countwise.noise.numbers import exact, written
from countwise.release.folder import refuse_existing, whole
from countwise.release.plan import Plan
from countwise.reports.risk_page import advice_page, mechanisms_page
from countwise.risk import number_lists
from countwise.risk.advice import PURE, RANKED, WARNING, Option, advise
from countwise.risk.closed import CLOSED
from countwise.risk.loss import DRAWS, METHODS, expected_losses
from countwise.risk.mechanisms import DELTA, MECHANISMS, SALARIES, compare
from countwise.risk.monte_carlo import NUMBERS_A_BATCH
from countwise.risk.table_advice import advise_tables
from countwise.tables.reading import read_public_cells, read_public_counts

app = typer.Typer(help="Expected loss of estimators and mechanisms, on public or made-up counts.")
LEAST = Fraction(1, 1000)  # below, the Gaussian would be wider than its table
KINDS: dict[str, type[Laplace] | type[IntegerLaw]] = {
    "laplace": Laplace,
    "geometric": Geometric,
    "laplace-rounded": RoundedLaplace,
}

Page = Annotated[Path | None, typer.Option("--out", help="Write a page with the figures here.")]


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
    bins = number_lists.histogram(histogram)
    law = KINDS[one_of(noise, KINDS, what="noise")](scale=1 / number_lists.epsilon(exact(epsilon)))
    one_of(method, METHODS, what="method")
    with progress(draws * len(bins) // NUMBERS_A_BATCH + len(CLOSED)) as tell:
        found = expected_losses(
            bins, law, rng=np.random.default_rng(seed), method=method, draws=draws, tell=tell
        )
    if json:
        print_json(
            {
                "histogram": [written(h) for h in bins],
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
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, got {delta}.")
    losses = number_lists.epsilons(epsilons)
    if min(losses) < LEAST:
        raise InputError(
            f"epsilon must be {float(LEAST):g} or more here, got {float(min(losses)):g}."
        )
    given = SALARIES if histogram is None else number_lists.histogram(histogram)
    bins = [float(h) for h in given]
    if page is not None:
        refuse_existing(page, overwrite=overwrite)
    with progress(len(losses)) as tell:
        pairs = compare(
            losses, bins, draws=draws, rng=np.random.default_rng(seed), delta=delta, tell=tell
        )
    if page is not None:
        text = mechanisms_page(pairs, bins=len(bins), draws=draws, delta=delta)
        with whole(page, overwrite=overwrite) as partial:
            partial.write_text(text, encoding="utf-8")
    if json:
        print_json([plain(asdict(one)) | plain(asdict(whole_)) for one, whole_ in pairs])
        return
    shown = [pair for pair in pairs if len(losses) <= 12 or _round(pair[0].epsilon)]
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
        out.print(f"See the figures: open {page.resolve()}")


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
        str | None,
        typer.Option(help="The same as zCDP, of tables that cross: 0.05,1/2."),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="Simulated releases an option.")] = 50,
    seed: Seed = 0,
    csv: Annotated[
        Path | None, typer.Option(help="Write every figure here, .csv or .parquet.")
    ] = None,
    page: Page = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Rank what plans could do by all their tables, on a stand-in. Never on confidential counts."""
    losses, plans = _plans_at(epsilon, rho, {"by": by, "across": across, "tables": tables})
    output_files({"--csv": csv}, {"--out": (page, PAGES)}, overwrite=overwrite)
    if plans[0].across:
        if page is not None:
            raise InputError("--out draws the options of one tree. To fix, write --csv.")
        _advise_crossed(table, plans, count, repetitions, seed, csv, overwrite, json)
        return
    if rho is not None:
        raise InputError(
            "--rho is for tables that cross: the noise of one tree is ranked at one ε. To fix, "
            "give --epsilon."
        )
    if page is not None and len(plans) > 1:
        raise InputError("--out draws one loss. To fix, give one, or write --csv.")
    hierarchy, cells = read_public_counts(table, by=plans[0].by, count=count)
    ranked: list[tuple[str, list[Option]]] = []
    with progress(len(plans) * len(RANKED) * len(PURE)) as tell:
        for loss, plan in zip(losses, plans, strict=True):
            found, refused = advise(
                hierarchy,
                cells,
                plan,
                rng=np.random.default_rng(seed),
                repetitions=repetitions,
                tell=tell,
            )
            ranked.append((f"ε = {loss}", found))
    if page is not None:
        text = advice_page(found, hierarchy, epsilon=epsilon or "", repetitions=repetitions)
        with whole(page, overwrite=overwrite) as partial:
            partial.write_text(text, encoding="utf-8")
    if csv is not None:
        write_levels(ranked, hierarchy, csv, overwrite=overwrite)
    if json:
        options_ = [
            plain(asdict(o))
            | {"loss": price, "overall": o.overall, "cell_rmse": o.cell_rmse(len(cells))}
            for price, one in ranked
            for o in one
        ]
        print_json({"warning": WARNING, "options": options_, "refused": refused})
        return
    out.print(f"{WARNING}\n", style="bold")
    print_levels(ranked, hierarchy)
    for name, problem in refused:
        out.print(f"Not simulated: {name}: {problem}")
    if page is not None:
        out.print(f"See the ranking: open {page.resolve()}")


def _plans_at(
    epsilon: str | None, rho: str | None, words: dict[str, str | None]
) -> tuple[list[str], list[Plan]]:
    """The same plan at each of several losses, separated by commas."""
    if epsilon is not None and rho is not None:
        raise InputError("--epsilon and --rho are two units of one loss. To fix, give one.")
    unit = "epsilon" if rho is None else "rho"
    given = epsilon if rho is None else rho
    losses = (given or "",) if "=" in (given or "") else options.names(given)
    plans = [options.make_plan(None, {**words, unit: each}) for each in losses or (None,)]
    return list(losses), plans


def _advise_crossed(
    table: Path,
    plans: list[Plan],
    count: str,
    repetitions: int,
    seed: int,
    csv: Path | None,
    overwrite: bool,
    json: bool,
) -> None:
    """The same for tables that cross, ranked by every published table."""
    space, cells = read_public_cells(table, names=plans[0].variables, count=count)
    with progress(len(plans) * 5) as tell:
        found = advise_tables(
            space,
            cells,
            plans,
            rng=np.random.default_rng(seed),
            repetitions=repetitions,
            tell=tell,
        )
    if csv is not None:
        write_options(found, csv, overwrite=overwrite)
    if json:
        print_json({"warning": WARNING, "options": option_data(found)})
        return
    out.print(f"{WARNING}\n", style="bold")
    print_options(found)
