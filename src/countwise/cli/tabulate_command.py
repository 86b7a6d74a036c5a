"""countwise tabulate: records of people become a confidential table of cells."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.front_door import tabulate_function
from countwise.tables.engines import DEFAULT
from countwise.tables.hierarchy import ROOT

EXAMPLE = (
    "Example: countwise tabulate people.parquet --by state,county,race --domain domain.toml "
    "--person id --rows 1 --out cells.parquet"
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
    with progress() as tell:
        made = tabulate_function.tabulate(
            records,
            file,
            by=by,
            across=across,
            domain=domain,
            person=person,
            rows=rows,
            outside=outside,
            no_totals=no_totals,
            separator=separator,
            encoding=encoding,
            skip=skip,
            sheet=sheet,
            engine=engine,
            ledger=ledger,
            dataset=dataset,
            overwrite=overwrite,
            tell=tell,
        )
    if json:
        print_json(made.to_dict())
        return
    print_table(("level", "counts"), [(name, f"{size:,}") for name, size in made.space.describe()])
    out.print(f"\nTrue counts written to {file}: as CONFIDENTIAL as the records; never publish it.")
    if made.dataset is not None:
        out.print(
            f"Noted in the ledger for data set {made.dataset}: nothing was spent, because no noise "
            "was drawn. The release of this file charges it."
        )
    words = f' --across "{across}"' if across else ""
    words += f" --rows {made.rows}" if made.rows is not None else ""
    words += f" --ledger {ledger}" if made.dataset is not None else ""
    outer = by if across else ",".join(name for name, _ in made.space.describe() if name != ROOT)
    out.print(
        f"Next: countwise release {file} --by {outer} --cells-are-public{words} --epsilon …",
        soft_wrap=True,
    )
