"""countwise release: a confidential table becomes a folder anyone may have."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.console import err, out, print_charge, print_json, print_table, progress
from countwise.cli.table_margins import print_tables
from countwise.front_door.release_function import release as make_release
from countwise.noise.numbers import written
from countwise.release.budget import counts_in_words
from countwise.release.crossed_release import CrossedRelease
from countwise.release.plan import Plan
from countwise.release.promise import make_promise
from countwise.release.publication import CSV, MOST_CSV, Publication
from countwise.tables.cut import PIECE
from countwise.tables.engines import DEFAULT

EXAMPLE = (
    "Example: countwise release cells.csv --by region,county --count n --epsilon 1 "
    "--cells-are-public --out release/"
)


@options.taking(options.CROSSING, before="count")
@options.taking(options.FILE, options.RECORDS, before="engine")
@options.taking(options.DRAWING, options.ADJUSTING, options.IMPRINT, before="plan_file")
def release(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    table: Annotated[
        Path | None, typer.Argument(help="Confidential table, CSV or Parquet, one row a cell.")
    ] = None,
    records: Annotated[
        str | None,
        typer.Option(
            help="Confidential records in place of a table of cells: Parquet, CSV, or a table of "
            "--engine. They are counted into the cells of --domain."
        ),
    ] = None,
    count: Annotated[str, typer.Option(help="Count column.")] = "count",
    domain: Annotated[
        Path | None,
        typer.Option(
            help="Public list of cells, or a TOML file of levels; cells without a row are zeros."
        ),
    ] = None,
    cells_are_public: Annotated[
        bool, typer.Option("--cells-are-public", help="The rows of the table are the public list.")
    ] = False,
    sum_duplicates: options.SumDuplicates = False,
    engine: options.Engine = DEFAULT,
    plan_file: options.PlanFile = None,
    csv: Annotated[
        bool | None,
        typer.Option(
            "--csv/--no-csv",
            help=f"Write counts.csv too (default: up to {MOST_CSV:,} counts).",
        ),
    ] = None,
    piece: Annotated[
        int, typer.Option(min=1, help="Cells held in memory at a time, about, of large tables.")
    ] = PIECE,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Throw away what a stopped run of this output has kept."),
    ] = False,
    ledger: options.LedgerUrl = None,
    dataset: options.Dataset = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    **words: Any,
) -> None:
    """Release counts that protect people, are whole, non-negative, and add up at every level.

    Large tables are released in pieces; run the same command again to finish a stopped run.
    """
    with progress() as tell:
        made = make_release(
            table,
            plan_file,
            out=folder,
            records=records,
            count=count,
            domain=domain,
            cells_are_public=cells_are_public,
            sum_duplicates=sum_duplicates,
            engine=engine,
            csv=csv,
            piece=piece,
            fresh=fresh,
            ledger=ledger,
            dataset=dataset,
            overwrite=overwrite,
            tell=tell,
            **words,
        )
    _print(made, folder, json=json)
    if records is not None:
        _warn_about_rows(made.plan)


def _print(made: Publication, folder: Path, *, json: bool) -> None:
    """What was released, and what was charged for it."""
    if made.resumed:
        err.print("Went on from a stopped run: noise it had drawn was kept, none was drawn twice.")
    if json:
        facts: dict[str, Any] = {"folder": str(folder), "resumed": made.resumed}
        facts |= {} if made.charge is None else {"charged": made.charge.to_dict()}
        print_json(made.manifest() | facts)
    else:
        print_summary(made, folder)
    print_charge(made.charge, json=json)
    if not json and CSV not in made.checksums:
        out.print("counts.csv was left out; counts.parquet has every count.")


def _warn_about_rows(plan: Plan) -> None:
    """What is taken on trust when nobody says whose a record is."""
    if not plan.person:
        many = "one row" if plan.rows == 1 else f"{plan.rows} rows"
        err.print(
            f"WARNING: that nobody has more than {many} in the records was taken on trust. Whoever "
            "has more is protected less. To have it enforced, name the column of persons: "
            "--person.",
            style="bold",
        )


def print_summary(made: Publication, folder: Path) -> None:
    """What was released, level by level or table by table, and where it is."""
    if isinstance(made, CrossedRelease):
        print_tables(made.accuracy, made.budget)
    else:
        print_table(
            ("level", "counts", made.budget.symbol, "noise within, 95%"),
            [
                (each.level, counts_in_words(each), written(each.loss), within)
                for each, within in zip(made.budget.levels, made.noise_within, strict=True)
            ],
        )
    promise = make_promise(made.plan.neighbours, made.budget)
    out.print(f"\n{promise.spent_as} {made.budget.in_words()}: {made.budget.sum_in_words()}")
    if made.budget.warning():
        out.print(made.budget.warning(), style="bold")
    if made.reason:
        out.print(f"Adjustment: {made.method}; {made.reason}.")
    if made.budget.exact is not None:
        out.print(promise.sentences())
    out.print(f"Released to {folder}; read {folder / 'certificate.html'} first.")
    if (folder / "release.html").is_file():
        out.print(f"See the counts: {(folder / 'release.html').resolve()}", soft_wrap=True)
