"""countwise release: a confidential table becomes a folder anyone may have."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.charging import charged
from countwise.cli.console import out, print_json, print_table, progress
from countwise.cli.tabulate import make_tabulation
from countwise.errors import PlanError
from countwise.privacy.epsilon import written
from countwise.release.document import Release
from countwise.release.folder import refuse_existing
from countwise.release.plan import Plan
from countwise.release.run import release as make_release
from countwise.tables.engines import DEFAULT
from countwise.tables.reading import read_counts
from countwise.tables.tabulate import Tabulation, tabulate

EXAMPLE = (
    "Example: countwise release cells.csv --by region,county --count n --epsilon 1 "
    "--cells-are-public --out release/"
)
STAGES = 7


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
    plan_file: options.PlanFile = None,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Charge the loss to this ledger first (sqlite:///file, postgresql://…); exit "
            "code 3 if its budget does not allow it."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the ledger whose budget is charged.")
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Release counts that protect people, are whole, non-negative, and add up at every level."""
    plan = options.make_plan(plan_file, locals())
    refuse_existing(folder, overwrite=overwrite)
    refuse_both(table, records, person=plan.person, cells_are_public=cells_are_public)
    with charged(ledger, plan, dataset=dataset) as drawing, progress(STAGES) as tell:
        if table is None:
            tell("counting records")
            confidential = tabulate(str(records), plan_tabulation(plan, domain), engine=engine)
        else:
            tell("reading")
            confidential = read_counts(
                table,
                by=plan.by,
                count=count,
                domain=domain,
                cells_are_public=cells_are_public,
                loader=options.make_layout(layout, total_code, domain=domain, by=plan.by),
            )
        drawing()
        made = make_release(confidential, plan, tell=tell)
        made.save(folder, overwrite=overwrite, tell=tell)
    if json:
        print_json(made.manifest() | {"folder": str(folder)})
    else:
        print_summary(made, folder)


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


def plan_tabulation(plan: Plan, domain: Path | None) -> Tabulation:
    """How the records of a plan are counted."""
    return make_tabulation(
        domain, plan.by, person=plan.person, rows=plan.rows, outside=plan.outside
    )


def print_summary(made: Release, folder: Path) -> None:
    """What was released, level by level, and where it is."""
    levels = made.budget.levels
    print_table(
        ("level", "counts", made.budget.symbol, "noise within, 95%"),
        [
            (each.level, f"{each.nodes:,}", written(each.loss), f"±{each.law.margin(0.95):,}")
            for each in levels
        ],
    )
    out.print(f"\nPrivacy loss {made.budget.in_words()}: {made.budget.sum_in_words()}")
    out.print(f"Released to {folder}; read {folder / 'certificate.html'} first.")
