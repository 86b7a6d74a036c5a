"""countwise release: a confidential table becomes a folder anyone may have."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.cli import options
from countwise.cli.charging import (
    Dataset,
    LedgerUrl,
    charged,
    dataset_of,
    payment,
    say_charged,
)
from countwise.cli.console import err, out, print_json, print_table
from countwise.cli.large_tables import large_source, publish_it
from countwise.cli.table_margins import print_tables
from countwise.cli.tabulate_command import plan_domain, plan_tabulation
from countwise.errors import PlanError, TableError
from countwise.noise.numbers import written
from countwise.release.budget import counts_in_words
from countwise.release.count_sources import CountSource, HeldSource
from countwise.release.crossed_release import CrossedRelease
from countwise.release.feasible import refuse_infeasible
from countwise.release.folder import refuse_existing
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.release.promise import make_promise
from countwise.release.publication import CSV, MOST_CSV, Publication
from countwise.tables.confidential import Confidential
from countwise.tables.cut import PIECE
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.engines import DEFAULT
from countwise.tables.files import Rows, column_names, load
from countwise.tables.layouts import Layout
from countwise.tables.reading import NO_DOMAIN, read_counts
from countwise.tables.tabulate import counted_rows, tabulate, tabulate_across
from countwise.tables.workload import Workload

EXAMPLE = (
    "Example: countwise release cells.csv --by region,county --count n --epsilon 1 "
    "--cells-are-public --out release/"
)


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
    by: options.By = None,
    across: options.Across = None,
    tables: options.Tables = None,
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
    layout: options.LayoutName = "long",
    total_code: options.TotalCode = None,
    no_totals: options.NoTotals = False,
    sum_duplicates: options.SumDuplicates = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    thousands: options.Thousands = None,
    skip: options.Skip = 0,
    sheet: options.Sheet = None,
    person: options.Person = None,
    outside: options.Outside = None,
    engine: options.Engine = DEFAULT,
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
    title: options.Title = None,
    producer: options.Producer = None,
    contact: options.Contact = None,
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
    ledger: LedgerUrl = None,
    dataset: Dataset = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Release counts that protect people, are whole, non-negative, and add up at every level.

    Large tables are released in pieces; run the same command again to finish a stopped run.
    """
    plan = options.with_zeros_of(domain, options.make_plan(plan_file, locals()))
    reading = options.make_reading(locals())
    refuse_existing(folder, overwrite=overwrite)
    refuse_both(table, records, person=plan.person, cells_are_public=cells_are_public)
    if table is not None:
        plan = with_rows(plan, table, rows, plan_file)
    dataset = dataset_of(table, ledger, dataset)
    loss = loss_of(plan, bounded=table is not None and counted_rows(table) is not None)
    paid = payment(ledger, loss, dataset=dataset)
    if table is not None:
        if domain is None and not cells_are_public:
            raise TableError(NO_DOMAIN)
        loader = options.make_layout(
            layout, total_code, domain=domain, by=plan.columns, no_totals=no_totals, reading=reading
        )
        refuse_unreadable(table, count, domain, plan, loader)
    source = large_source(
        plan,
        table,
        records,
        count=count,
        domain=domain,
        engine=engine,
        piece=piece,
        no_totals=no_totals,
        reading=reading,
        plain=(layout, total_code, reading, sum_duplicates) == ("long", None, PLAIN, False)
        and (domain is not None or cells_are_public),
    )
    held: CountSource | HeldSource | None = source
    if held is None and table is None:
        counted = counting(plan, domain, engine=engine, no_totals=no_totals, reading=reading)
        held = HeldSource(read=lambda: counted(str(records)), stage="counting records")
    elif held is None:

        def read() -> Confidential | Confidential[Workload]:
            return read_counts(
                table,
                by=plan.by,
                across=plan.across or None,
                count=count,
                domain=domain,
                cells_are_public=cells_are_public,
                loader=loader,
                sum_duplicates=sum_duplicates,
            )

        held = HeldSource(read=read)
    made = publish_it(
        held,
        plan,
        folder,
        engine=engine,
        overwrite=overwrite,
        fresh=fresh,
        csv=csv,
        payment=paid,
    )
    facts = charged(ledger, dataset, paid)
    print_release(made, folder, facts, json=json)
    warn_about_rows(plan, records)


def counting(
    plan: Plan, domain: Path | None, *, engine: str, no_totals: bool, reading: Reading
) -> Callable[[str], Confidential | Confidential[Workload]]:
    """What counts records into the cells of a plan, whose domain is read before it is paid."""
    if not plan.across:
        tabulation = plan_tabulation(plan, domain, no_totals=no_totals, reading=reading)
        return lambda records: tabulate(records, tabulation, engine=engine)
    crossing = plan_domain(plan, domain, no_totals=no_totals)
    refuse_infeasible(plan, crossing.workload)
    crossed = plan_tabulation(plan, domain, crossing=crossing, reading=reading)
    return lambda records: tabulate_across(records, crossed, crossing, engine=engine)


def refuse_both(
    table: Path | None, records: str | None, *, person: str, cells_are_public: bool
) -> None:
    """A release starts from a table or from records, and each has options of its own."""
    if (table is None) == (records is None):
        raise PlanError("give either a table of cells or --records, and not both.")
    if table is not None and person:
        raise PlanError(
            "--person bounds the rows of records, and a table of cells has none. To fix, give the "
            "records with --records, or leave --person out."
        )
    if records is not None and cells_are_public:
        raise PlanError("the cells of records come from --domain; leave --cells-are-public out.")


def with_rows(plan: Plan, table: Path, rows: int | None, plan_file: Path | None) -> Plan:
    """The plan with the rows a person that the table was counted with, where it says so."""
    counted = counted_rows(table)
    if counted is None or counted <= plan.rows:
        return plan
    if rows is None and plan_file is None:
        return replace(plan, rows=counted)
    raise PlanError(
        f"{table} was counted with up to {counted} rows a person, and the plan promises protection "
        f"for {plan.rows}. To fix, use --rows {counted}."
    )


def refuse_unreadable(
    table: Path, count: str, domain: Path | None, plan: Plan, layout: Layout
) -> None:
    """What can be seen to be wrong without reading a row, before anything is charged."""
    nothing, reading = Rows(first=0, count=0), layout.reading
    if layout.kind == "long" and layout.domain is None:  # else levels may come from codes
        load(table, plan.columns, [count], rows=nothing, reading=reading)
    else:
        column_names(table, reading)
    how = options.how_read(table, layout, plan.columns)
    if how:
        err.print(f"{table}: read with {how}.", markup=False)
    if domain is not None and domain.suffix.lower() != ".toml":
        load(domain, plan.columns, [], rows=nothing)


def warn_about_rows(plan: Plan, records: str | None) -> None:
    """What is taken on trust when nobody says whose a record is."""
    if records is not None and not plan.person:
        many = "one row" if plan.rows == 1 else f"{plan.rows} rows"
        err.print(
            f"WARNING: that nobody has more than {many} in the records was taken on trust. Whoever "
            "has more is protected less. To have it enforced, name the column of persons: "
            "--person.",
            style="bold",
        )


def print_release(made: Publication, folder: Path, facts: dict[str, Any], *, json: bool) -> None:
    """What was released, and what was charged for it."""
    if made.resumed:
        err.print("Went on from a stopped run: noise it had drawn was kept, none was drawn twice.")
    if json:
        print_json(made.manifest() | {"folder": str(folder), "resumed": made.resumed} | facts)
    else:
        print_summary(made, folder)
    say_charged(facts, json=json)
    if not json and CSV not in made.checksums:
        out.print("counts.csv was left out; counts.parquet has every count.")


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
