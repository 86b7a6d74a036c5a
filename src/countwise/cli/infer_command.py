"""countwise infer: what the true counts behind a release can be."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from countwise.choices import one_of
from countwise.cli import options
from countwise.cli.console import err, out, print_json, print_table, progress
from countwise.cli.draw_files import DRAWS, write_draws
from countwise.cli.large_tables import infer_large
from countwise.cli.output_files import PAGES, output_files, write_frame
from countwise.cli.sum_answers import (
    holds_crossed_tables,
    infer_crossed,
    plain_sums,
    print_sums,
)
from countwise.errors import InputError
from countwise.inference.paper_tables import infer_counts
from countwise.inference.posterior import Posterior
from countwise.inference.routes import METHODS, SOURCES
from countwise.inference.routes import infer as infer_release
from countwise.inference.tree_sums import tree_sums
from countwise.pages.charts import chance
from countwise.pages.imprint import Imprint, today
from countwise.progress import Tell
from countwise.release.document import read_release
from countwise.release.folder import whole
from countwise.release.large_release import read_large_release
from countwise.release.pipeline import MOST_WHOLE
from countwise.reports.posterior_page import posterior_page
from countwise.sumproduct.summaries import check_interval
from countwise.tables.cut import PIECE

EXAMPLE = (
    "Examples: countwise infer release/ --out posterior.csv --page posterior.html · "
    "countwise infer crossed/ --sum 'county=Wake|Durham, age=65*' · "
    "countwise infer --counts 250,357 --epsilon 1 --total-epsilon 1 --ties last --top 10"
)
PRINTED = 20


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
    tables = {"--out": file, "--joint-mode": joint_mode}
    outputs = output_files(
        tables,
        {"--page": (page, PAGES), "--draws-out": (draws_out, DRAWS)},
        data_set=bool(engine),
        overwrite=overwrite,
    )
    check_interval(level, interval)
    one_of(method, METHODS, what="--method")
    one_of(source, SOURCES, what="--from")
    if sums and counts is not None:
        raise InputError("--sum finds nodes by their labels, and --counts have none.")
    if folder is not None and counts is not None:
        raise InputError("give a release folder or --counts, not both.")
    if folder is not None:
        others: dict[str, object] = {
            "--from counts": source == "counts",
            "--method gibbs": method == "gibbs",
            "--prior published": prior == "published",
            "--top": top,
            "--draws-out": draws_out,
            "--joint-mode": joint_mode,
            "--page": page,
        }
        if holds_crossed_tables(folder):
            others |= {
                "--draws-out": None,
                "--prior published": None,
                "--interval central": interval == "central",
                "--engine": engine,
            }
            given = [name for name, value in others.items() if value]
            infer_crossed(
                folder,
                file,
                given,
                sums or [],
                statement or [],
                level,
                overwrite,
                json,
                prior=prior,
                draws=(draws, draws_out),
                seed=seed,
            )
            return
        large = read_large_release(folder, most=piece)
        if large is not None and (large.sizes[-1] > MOST_WHOLE or file is not None):
            others |= {"--statement": statement, "--sum": sums}
            given = [name for name, value in others.items() if value]
            infer_large(large, file, given, prior, level, interval, engine, overwrite, json)
            return
    rng = np.random.default_rng(seed)
    asked: dict[str, Any] = {"prior": prior, "method": method, "rng": rng}
    with progress(8) as tell:
        summed, imprint = [], Imprint(date=today())
        if counts is None:
            tell("reading")
            release = read_release(_given(folder))
            posterior = infer_release(release, source=source, tell=tell, **asked)
            imprint = release.imprint
            summed = tree_sums(release, posterior, sums or [], rng=rng)
        else:
            posterior = infer_counts(
                options.whole_numbers(counts, what="--counts"),
                total=total,
                epsilon=_epsilons(epsilon),
                total_epsilon=total_epsilon or str(epsilon),
                adjust=adjust,
                ties="last" if ties == "last" else options.whole_numbers(ties, what="--ties"),
                mechanism=mechanism,
                from_total=from_total,
                tell=tell,
                **asked,
            )
        tell("judging")
        answers = {said: posterior.probability(said, rng=rng) for said in statement or []}
        best = posterior.top(top, rng=rng) if top else []
        if joint_mode is not None:
            write_frame(posterior.joint_mode_table(tell=tell), joint_mode, overwrite=overwrite)
        if page is not None:
            tell("writing the page")
            text = posterior_page(
                posterior, probability=level, interval=interval, answers=answers, imprint=imprint
            )
            with whole(page, overwrite=overwrite) as partial:
                partial.write_text(text, encoding="utf-8")
        _write(posterior, file, draws_out, draws, rng, level, interval, overwrite, tell)
    if json:
        plain = _plain(posterior, level, interval, answers, best, top)
        print_json(plain | ({"sums": plain_sums(summed, level)} if summed else {}))
        return
    print_sums(summed, level)
    _print(posterior, level, interval, answers, best)
    for path in outputs:
        err.print(f"Written: {path}")


def _given(folder: Path | None) -> Path:
    if folder is None:
        raise InputError("give a release folder, or the counts of a table with --counts.")
    return folder


def _epsilons(text: str | None) -> Any:
    if text is None:
        raise InputError("no epsilon given. To fix, add --epsilon 1 (the loss of the components).")
    parts = options.names(text)
    return parts[0] if len(parts) == 1 else parts


def _write(
    posterior: Posterior,
    file: Path | None,
    draws_out: Path | None,
    draws: int,
    rng: np.random.Generator,
    level: float,
    interval: str,
    overwrite: bool,
    tell: Tell,
) -> None:
    if file is not None:
        tell("writing the table")
        table = posterior.table(probability=level, interval=interval)
        write_frame(table, file, overwrite=overwrite)
    if draws_out is not None:
        tell("drawing")
        made = posterior.draws(draws, rng=rng)
        write_draws(made, posterior.joint_prior, draws_out, overwrite=overwrite)


def _plain(
    posterior: Posterior, level: float, interval: str, answers: Any, best: Any, top: int
) -> dict[str, Any]:
    result: dict[str, Any] = {
        "route": posterior.route,
        "prior": posterior.prior,
        "interval": {"kind": interval, "probability": level},
        "nodes": list(posterior.records(probability=level, interval=interval)),
    }
    if posterior.diagnostics:
        result["diagnostics"] = posterior.diagnostics
    if answers:
        result["statements"] = [
            {
                "statement": said,
                "probability": float(p),
                "error": p.error,
                "exact": p.exact,
                "prior": p.prior,
            }
            for said, p in answers.items()
        ]
    if top:
        result["combinations_prior"] = posterior.joint_prior
        result["combinations"] = [asdict(each) | {"total": each.total} for each in best]
    return result


def _print(posterior: Posterior, level: float, interval: str, answers: Any, best: Any) -> None:
    percent = f"{100 * level:g}%"
    rows: list[tuple[str, ...]] = []
    for record in posterior.records(probability=level, interval=interval):
        if len(rows) == PRINTED:
            break
        rows.append(
            (
                str(record["path"]),
                f"{record['released']:,}",
                f"{record['mean']:,.2f}",
                f"{record['mode']:,}",
                f"{record['sd']:,.2f}",
                f"{record['lower']:,} to {record['upper']:,}",
            )
        )
    print_table(("node", "released", "mean", "mode", "sd", f"{percent} range"), rows)
    if posterior.hierarchy.nodes > len(rows):
        out.print(f"… and {posterior.hierarchy.nodes - len(rows):,} more; see --out and --page.")
    if best:
        other = posterior.joint_prior
        said = "" if other == posterior.prior else f", prior: {other}"
        out.print(f"\nMost probable combinations{said}")
        for each in best:
            error = f" ± {each.error:.2g} (from draws)" if each.error else ""
            counts = "  ".join(f"{n:,}" for n in each.counts)
            out.print(f"  {counts}   {chance(each.probability)}{error}")
    for said, p in answers.items():
        error = "" if p.exact else f" ± {p.error:.2g} (from draws)"
        other = "" if p.prior == posterior.prior else f"  [prior: {p.prior}]"
        out.print(f"\nP({said}) = {chance(float(p))}{error}{other}", markup=False)
    out.print(f"\nFrom {posterior.route}. Prior: {posterior.prior}.")
    if posterior.diagnostics:
        out.print(posterior.diagnostics)
