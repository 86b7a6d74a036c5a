"""countwise infer: what the true counts behind a release can be."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countwise.cli import options
from countwise.cli.console import err, out, print_json, print_table, progress
from countwise.front_door import infer_function
from countwise.front_door.inferred_answers import InferredAnswers, PosteriorFile
from countwise.inference.combinations import Combination
from countwise.inference.crossed_posterior import PRIOR, CrossedPosterior, SumPosterior
from countwise.inference.posterior import Posterior
from countwise.inference.statement_probabilities import Probability
from countwise.pages.charts import chance
from countwise.tables.cut import PIECE

EXAMPLE = (
    "Examples: countwise infer release/ --out posterior.csv --page posterior.html · "
    "countwise infer crossed/ --sum 'county=Wake|Durham, age=65*' · "
    "countwise infer --counts 250,357 --epsilon 1 --total-epsilon 1 --ties last --top 10"
)
PRINTED = 20
"""Counts that are printed: a screen."""


Counts = Annotated[str | None, typer.Option(help="Released components found in a paper: 250,357.")]
Epsilon = Annotated[
    str | None, typer.Option(help="With --counts: loss of the components, one or one each.")
]
TotalEpsilon = Annotated[
    str | None, typer.Option(help="With --counts: loss of the total (default as --epsilon).")
]
Adjust = Annotated[str, typer.Option(help="With --counts: mode, draw-1, draw-2 or clipped.")]
Ties = Annotated[
    str, typer.Option(help="With --counts: last, or the rank of each component: 1,0,2.")
]
Mechanism = Annotated[str, typer.Option(help="With --counts: geometric, laplace or gaussian.")]
FromTotal = Annotated[
    str, typer.Option(help="With --counts: independent, or summed (also from the parts).")
]
Method = Annotated[str, typer.Option(help="auto (exact unless it takes minutes), exact, or gibbs.")]
Source = Annotated[str, typer.Option("--from", help="sharpest, measurements, or counts alone.")]
Prior = Annotated[
    str,
    typer.Option(
        help="none, nested, published (the release's own, of adjust bayes), uniform, uniform:1000, "
        "poisson:3, negative-binomial:3,0.5, pmf:0.5,0.5, compositions, "
        "compositions:1000, shares:0.4,0.6; of tables that cross none, learned, or nested."
    ),
]
Statements = Annotated[
    list[str] | None,
    typer.Option(
        help="A statement to judge: 'A > B', 'A + B >= 100', 'rank(A) == 1'; of "
        "tables that cross 'sex=F > sex=M'. Repeat."
    ),
]
Sums = Annotated[
    list[str] | None,
    typer.Option("--sum", help="A sum by labels: 'county=Wake|Durham, age=65*'. Repeat."),
]
Top = Annotated[int, typer.Option(min=0, max=10_000, help="List the most probable combinations.")]
DrawsOut = Annotated[
    Path | None,
    typer.Option(
        help="Write joint draws: a row a cell and a column a draw (.parquet or .csv), or an array "
        "a level or table, and names (.npz)."
    ),
]
Out = Annotated[Path | None, typer.Option("--out", help="CSV or Parquet file with a row a node.")]
JointMode = Annotated[
    Path | None,
    typer.Option(help="Write the most probable combination of all counts: CSV or Parquet."),
]
Page = Annotated[Path | None, typer.Option(help="HTML page with pictures to write.")]
Seed = Annotated[
    int | None, typer.Option(min=0, help="Makes what is estimated from draws repeatable.")
]
Folder = Annotated[Path | None, typer.Argument(help="A release folder; or give --counts instead.")]


def infer(
    folder: Folder = None,
    counts: Counts = None,
    total: Annotated[int | None, typer.Option(help="Their released total.")] = None,
    epsilon: Epsilon = None,
    total_epsilon: TotalEpsilon = None,
    adjust: Adjust = "mode",
    ties: Ties = "last",
    mechanism: Mechanism = "geometric",
    from_total: FromTotal = "independent",
    method: Method = "auto",
    source: Source = "sharpest",
    prior: Prior = "none",
    level: Annotated[float, typer.Option(help="Probability of the intervals.")] = 0.95,
    interval: Annotated[str, typer.Option(help="highest or central.")] = "highest",
    statement: Statements = None,
    sums: Sums = None,
    top: Top = 0,
    draws: Annotated[int, typer.Option(min=1, help="Joint draws for --draws-out.")] = 1000,
    draws_out: DrawsOut = None,
    file: Out = None,
    joint_mode: JointMode = None,
    page: Page = None,
    seed: Seed = None,
    piece: Annotated[
        int, typer.Option(min=1, help="Cells held in memory at a time, about, of large releases.")
    ] = PIECE,
    engine: Annotated[
        str, typer.Option(help="spark or spark://host:7077: who does the work of large releases.")
    ] = "",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """What the true counts can be: best values, ranges, probabilities of statements.

    Of a large release every node's best value and range are written to --out, in pieces.
    """
    with progress() as tell:
        found = infer_function.infer(
            folder,
            counts=counts,
            total=total,
            epsilon=epsilon,
            total_epsilon=total_epsilon,
            adjust=adjust,
            ties=ties,
            mechanism=mechanism,
            from_total=from_total,
            prior=prior,
            source=source,
            method=method,
            probability=level,
            interval=interval,
            statement=statement or (),
            sums=sums or (),
            top=top,
            draws=draws,
            draws_out=draws_out,
            out=file,
            joint_mode=joint_mode,
            page=page,
            piece=piece,
            engine=engine,
            overwrite=overwrite,
            seed=seed,
            rng=np.random.default_rng(seed),
            tell=tell,
        )
    if isinstance(found, PosteriorFile):
        if json:
            print_json(found.to_dict())
        else:
            out.print(f"The posterior of {found.nodes:,} counts was written to {file}.")
        return
    answers = found if isinstance(found, InferredAnswers) else InferredAnswers(posterior=found)
    if json:
        print_json(_plain(answers, level, interval, top))
        return
    _print(answers, level, interval)
    for path in (file, joint_mode, page, draws_out):
        if path is not None:
            err.print(f"Written: {path}")


def _plain(answers: InferredAnswers, level: float, interval: str, top: int) -> dict[str, Any]:
    posterior = answers.posterior
    tables = isinstance(posterior, CrossedPosterior)
    result: dict[str, Any] = {
        "route": posterior.route,
        "prior": posterior.prior,
        "interval": {"kind": interval, "probability": level},
        "nodes": list(_records(posterior, level, interval)),
    }
    if posterior.diagnostics:
        result["diagnostics"] = posterior.diagnostics
    if answers.statements:
        result["statements"] = [
            {"statement": said, "probability": float(p), "prior": p.prior}
            | _error(p, tables=tables)
            for said, p in answers.statements.items()
        ]
    if top and isinstance(posterior, Posterior):
        result["combinations_prior"] = posterior.joint_prior
        result["combinations"] = [
            asdict(each) | {"total": each.total} for each in answers.combinations
        ]
    if answers.sums:
        result["sums"] = _plain_sums(answers.sums, level)
    return result


def _error(found: Probability, *, tables: bool) -> dict[str, Any]:
    """How a probability was found, and how far from it that can be."""
    if not tables:
        return {"error": found.error, "exact": found.exact}
    return {"law": "normal"} if found.exact else {"law": "draws", "error": found.error}


def _records(posterior: Posterior | CrossedPosterior, level: float, interval: str) -> Any:
    if isinstance(posterior, Posterior):
        return posterior.records(probability=level, interval=interval)
    return posterior.records(probability=level)


def _plain_sums(summed: Sequence[SumPosterior], level: float) -> list[dict[str, Any]]:
    """Sums as plain data."""
    found = []
    for each in summed:
        low, high = each.interval(level)
        record = {"sum": each.name, "mean": each.mean, "sd": each.sd, "lower": low, "upper": high}
        found.append(record | {"prior": each.prior, "named_twice": list(each.twice)})
    return found


def _print(answers: InferredAnswers, level: float, interval: str) -> None:
    posterior = answers.posterior
    tables = isinstance(posterior, CrossedPosterior)
    _print_sums(answers.sums, level, posterior.prior if tables else PRIOR)
    if isinstance(posterior, CrossedPosterior):
        for said, p in answers.statements.items():
            error = "" if p.exact else f" ± {p.error:.2g} (from draws)"
            out.print(f"P({said}) = {chance(float(p))}{error}", markup=False)
        if answers.statements and posterior.prior == PRIOR:
            out.print("Statements rest on no prior: on the normal law of least squares.\n")
        size = sum(each.size for each in posterior.released)
        _print_counts(posterior, level, interval, size)
    else:
        _print_counts(posterior, level, interval, posterior.hierarchy.nodes)
        _print_combinations(posterior, answers.combinations)
        _print_statements(posterior, answers.statements)
    out.print(f"\nFrom {posterior.route}. Prior: {posterior.prior}.")
    if posterior.diagnostics:
        out.print(posterior.diagnostics)


def _print_sums(summed: Sequence[SumPosterior], level: float, known: str) -> None:
    """A line a sum: estimate, standard error, range; `known` is a prior that is said elsewhere."""
    if not summed:
        return
    rows = []
    for each in summed:
        low, high = each.interval(level)
        rows.append((each.name, f"{each.mean:,.2f}", f"{each.sd:,.2f}", f"{low:,} to {high:,}"))
    print_table(("sum", "estimate", "error", f"{100 * level:g}% range"), rows)
    for each in summed:
        if each.twice:
            names = ", ".join(each.twice)
            out.print(f"{each.name}: {names} named more than once, counted once.")
        if each.prior not in (PRIOR, known):
            out.print(f"{each.name} rests on a prior: {each.prior}.")
    out.print()


def _print_counts(
    posterior: Posterior | CrossedPosterior, level: float, interval: str, size: int
) -> None:
    """The first counts, a line each."""
    tree = isinstance(posterior, Posterior)
    rows: list[tuple[str, ...]] = []
    for record in _records(posterior, level, interval):
        if len(rows) == PRINTED:
            break
        row = [str(record["path"]), f"{record['released']:,}", f"{record['mean']:,.2f}"]
        row += [f"{record['mode']:,}"] if tree else []
        row += [f"{record['sd']:,.2f}", f"{record['lower']:,} to {record['upper']:,}"]
        rows.append(tuple(row))
    names = ("node", "released", "mean", "mode", "sd")
    if not tree:
        names = ("count", "released", "estimate", "error")  # type: ignore[assignment]
    print_table((*names, f"{100 * level:g}% range"), rows)
    if size > len(rows):
        out.print(f"… and {size - len(rows):,} more; see --out{' and --page' if tree else ''}.")


def _print_combinations(posterior: Posterior, best: Sequence[Combination]) -> None:
    if not best:
        return
    other = posterior.joint_prior
    said = "" if other == posterior.prior else f", prior: {other}"
    out.print(f"\nMost probable combinations{said}")
    for each in best:
        error = f" ± {each.error:.2g} (from draws)" if each.error else ""
        counts = "  ".join(f"{n:,}" for n in each.counts)
        out.print(f"  {counts}   {chance(each.probability)}{error}")


def _print_statements(posterior: Posterior, statements: Mapping[str, Probability]) -> None:
    for said, p in statements.items():
        error = "" if p.exact else f" ± {p.error:.2g} (from draws)"
        other = "" if p.prior == posterior.prior else f"  [prior: {p.prior}]"
        out.print(f"\nP({said}) = {chance(float(p))}{error}{other}", markup=False)
