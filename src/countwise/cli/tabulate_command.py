"""countwise tabulate: records of people become a confidential table of cells."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.charging import bind, refuse_half
from countwise.cli.console import out, print_json, print_table, progress
from countwise.errors import TableError
from countwise.ledger.prices import ANY, Loss
from countwise.release.folder import refuse_existing, whole
from countwise.release.plan import Plan
from countwise.tables.crossed_cells import CrossedDomain, read_crossed_domain, variables_of
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.domainfile import read_domain_file
from countwise.tables.engines import DEFAULT
from countwise.tables.layouts import Layout
from countwise.tables.notation import Names
from countwise.tables.tabulate import Tabulation, write_confidential_cells

EXAMPLE = (
    "Example: countwise tabulate people.parquet --by state,county,race --domain domain.toml "
    "--person id --rows 1 --out cells.parquet"
)
NO_DOMAIN = (
    "records need a public list of cells: which cells there are must not depend on who is in "
    "them. To fix, declare the levels in a file and give it with --domain domain.toml."
)


def tabulate(
    records: Annotated[
        str, typer.Argument(help="Records, one row each: a file, or a table of --engine.")
    ],
    file: Annotated[
        Path,
        typer.Option("--out", "-o", help="Parquet or CSV file of TRUE counts; keep it secret."),
    ],
    by: options.By = None,
    across: options.Across = None,
    domain: Annotated[
        Path | None, typer.Option(help="Public domain: a TOML file of levels, or a list of cells.")
    ] = None,
    person: options.Person = None,
    rows: options.Rows = None,
    outside: options.Outside = None,
    no_totals: options.NoTotals = False,
    separator: options.Separator = None,
    encoding: options.Encoding = None,
    skip: options.Skip = 0,
    sheet: options.Sheet = None,
    engine: options.Engine = DEFAULT,
    ledger: Annotated[
        str | None,
        typer.Option(
            help="Ledger in which the counting is noted: nothing is spent, and the release of the "
            "file must charge --dataset."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set of the ledger that the records are.")
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Count records into the cells of a public domain. The result is confidential: no noise."""
    if rows is not None and person is None:
        raise TableError("--rows needs --person, the column that says whose a row is.")
    refuse_half(ledger, dataset)
    refuse_existing(file, overwrite=overwrite)
    if file.suffix.lower() not in (".parquet", ".csv"):
        raise TableError(f"{file}: the output must end in .parquet or .csv.")
    if dataset is not None and file.suffix.lower() != ".parquet":
        raise TableError(
            f"{file}: a CSV file can not carry --dataset. To fix, name a .parquet file."
        )
    with progress(3) as tell:
        tell("reading the domain")
        crossing = None
        if across:
            names = variables_of(options.names(by), across)
            crossing = _crossing(domain, names, no_totals=no_totals)
        tabulation = make_tabulation(
            domain,
            options.names(by),
            person=person,
            rows=rows or 1,
            outside=outside or "refuse",
            no_totals=no_totals,
            reading=Reading(separator=separator, encoding=encoding, skip=skip, sheet=sheet),
            crossing=crossing,
        )
        tell("counting records")
        with whole(file, overwrite=overwrite) as partial:
            bound = bind(ledger, _loss(tabulation), dataset=dataset)
            space = write_confidential_cells(
                partial, records, tabulation, crossing=crossing, engine=engine, dataset=bound
            )
            tell("writing cells")
    if json:
        levels = [{"level": level, "nodes": nodes} for level, nodes in space.describe()]
        kept = rows or 1 if person else None
        facts = {"file": str(file), "confidential": True, "levels": levels, "rows": kept}
        print_json(facts | ({} if bound is None else {"dataset": bound}))
        return
    print_table(("level", "counts"), [(name, f"{size:,}") for name, size in space.describe()])
    out.print(f"\nTrue counts written to {file}: as CONFIDENTIAL as the records; never publish it.")
    if bound is not None:
        out.print(
            f"Noted in the ledger for data set {bound}: nothing was spent, because no noise was "
            "drawn. The release of this file charges it."
        )
    words = f' --across "{across}"' if across else ""
    words += f" --rows {rows or 1}" if person else ""
    words += f" --ledger {ledger}" if bound is not None else ""
    outer = by if across else ",".join(space.by)
    out.print(
        f"Next: countwise release {file} --by {outer} --cells-are-public{words} --epsilon …",
        soft_wrap=True,
    )


def _loss(tabulation: Tabulation) -> Loss:
    """What a ledger is told of cells that are counted: whose rows, and no loss."""
    return Loss(
        what="tabulation",
        neighbours=ANY,
        rows=tabulation.rows,
        bounded=tabulation.person is not None,
    )


def make_tabulation(
    domain: Path | None,
    by: tuple[str, ...],
    *,
    person: str | None,
    rows: int,
    outside: str,
    no_totals: bool = False,
    reading: Reading = PLAIN,
    crossing: CrossedDomain | None = None,
) -> Tabulation:
    """How records are counted, from options: into cells of a tree, or of variables that cross."""
    if domain is None:
        raise TableError(NO_DOMAIN)
    cells = (
        read_domain_file(domain, by=by, no_totals=no_totals)
        if crossing is None
        else crossing.domain
    )
    return Tabulation(
        domain=cells, person=person or None, rows=rows, outside=outside, reading=reading
    )


def plan_domain(plan: Plan, domain: Path | None, *, no_totals: bool = False) -> CrossedDomain:
    """The cells that the records of a plan with several variables are counted into."""
    return _crossing(domain, plan.variables, no_totals=no_totals)


def _crossing(domain: Path | None, names: Names, *, no_totals: bool) -> CrossedDomain:
    if domain is None:
        raise TableError(NO_DOMAIN)
    return read_crossed_domain(domain, names, layout=Layout(no_totals=no_totals))


def plan_tabulation(
    plan: Plan,
    domain: Path | None,
    *,
    crossing: CrossedDomain | None = None,
    no_totals: bool = False,
    reading: Reading = PLAIN,
) -> Tabulation:
    """How the records of a plan are counted."""
    return make_tabulation(
        domain,
        plan.by,
        person=plan.person,
        rows=plan.rows,
        outside=plan.outside,
        no_totals=no_totals,
        reading=reading,
        crossing=crossing,
    )
