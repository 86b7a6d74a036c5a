"""countwise compare, convert and records: releases beside each other, and as others read them."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from countwise.cli import options
from countwise.cli.console import err, out, print_json, print_table, progress
from countwise.front_door import exchange_functions
from countwise.front_door.exchange_functions import DATAFLOW
from countwise.inference.changes import Changes
from countwise.tables.crosstab import TOTAL

EXAMPLES = {
    "records": "Example: countwise records release/ --out people.parquet",
    "compare": "Example: countwise compare last-year/ this-year/ --out changes.csv",
    "convert": "Example: countwise convert release/ --to xlsx --out release.xlsx",
}
PRINTED = 20
"""Changes that are printed: a screen."""

Earlier = Annotated[Path, typer.Argument(help="The folder of the earlier release.")]
Later = Annotated[Path, typer.Argument(help="The folder of the later one, of the same cells.")]
Level = Annotated[float, typer.Option(help="Probability of the ranges, and 1 minus that of noise.")]
File = Annotated[Path | None, typer.Option("--out", help="CSV or Parquet file, a row a count.")]


def compare(
    earlier: Earlier,
    later: Later,
    level: Level = 0.95,
    file: File = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Whether each count changed between two releases by more than the noise of both."""
    with progress() as tell:
        changes = exchange_functions.compare(
            earlier, later, probability=level, out=file, overwrite=overwrite, tell=tell
        )
    if json:
        print_json(
            {
                "probability": level,
                "counts": len(changes.table),
                "more_than_noise": changes.found,
                "expected_by_noise": changes.expected_by_noise,
                "tables": _by_table(changes).to_dicts(),
            }
        )
        return
    _print(changes)
    if file is not None:
        err.print(f"Written: {file}")


def _by_table(changes: Changes) -> pl.DataFrame:
    """How many counts of each table changed by more than noise."""
    return changes.table.group_by(pl.col("level").cast(pl.String), maintain_order=True).agg(
        counts=pl.len(), more_than_noise=pl.col("more_than_noise").sum()
    )


def _print(changes: Changes) -> None:
    found = changes.table.filter("more_than_noise").sort("by_noise", maintain_order=True)
    names = changes.table.columns[: changes.table.columns.index("level")]
    rows = []
    for row in found.head(PRINTED).iter_rows(named=True):
        labels = ", ".join(f"{name}={row[name]}" for name in names if row[name] is not None)
        change = f"{row['lower']:+,.1f} to {row['upper']:+,.1f}"
        numbers = f"{row['before']:,}", f"{row['after']:,}", f"{row['change']:+,.1f}"
        rows.append((labels or "total", *numbers, change, f"{row['by_noise']:.2g}"))
    percent = f"{100 * changes.probability:g}%"
    if rows:
        print_table(("count", "before", "after", "change", f"{percent} range", "by noise"), rows)
        if len(found) > len(rows):
            out.print(f"… and {len(found) - len(rows):,} more; see --out.")
        out.print()
    for row in _by_table(changes).iter_rows(named=True):
        out.print(f"{row['level']}: {row['more_than_noise']:,} of {row['counts']:,}")
    out.print(
        f"\n{changes.found:,} of {len(changes.table):,} counts changed by more than noise; if "
        f"nothing had changed, noise alone would give about {changes.expected_by_noise:,.0f}.\n"
        "by noise: the probability that noise alone makes a change as large. No prior; the "
        "difference of two estimates is taken as normal."
    )


def convert(
    folder: Annotated[Path, typer.Argument(help="Release folder.")],
    file: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    to: Annotated[
        str | None,
        typer.Option(
            help="wide (CSV, one column a category of the last level), sdmx (SDMX-CSV 2.0) or "
            "xlsx (Excel, the certificate as a sheet; the default for a name in .xlsx)."
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            help="Of tables that cross, the one to be written wide, such as county*sex (default: "
            "the only one that is not a total of another)."
        ),
    ] = None,
    total_code: Annotated[str, typer.Option(help="Label of totals in a wide table.")] = TOTAL,
    dataflow: Annotated[
        str, typer.Option(help="Identity of the SDMX dataflow, AGENCY:FLOW(1.0).")
    ] = DATAFLOW,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write the counts of a release as a cross-table, as SDMX-CSV or as an Excel workbook."""
    with progress() as tell:
        made = exchange_functions.convert(
            folder,
            file,
            to=to,
            table=table,
            total_code=total_code,
            dataflow=dataflow,
            overwrite=overwrite,
            tell=tell,
        )
    if json:
        print_json(made.to_dict())
        return
    what = f"{made.nodes:,} counts" if table is None else f"Table {table}"
    out.print(f"{what} of {folder} written to {file} ({made.format}).")


def records(
    folder: Annotated[Path, typer.Argument(help="Release folder.")],
    file: Annotated[
        Path, typer.Option("--out", "-o", help="File to write, .csv or .parquet, a row a person.")
    ],
    table: Annotated[
        str | None,
        typer.Option(
            help="The table, or of a tree the level, that becomes rows (default: the one that all "
            "others are totals of)."
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            min=0,
            help="Write so many joint draws of what the true counts can be, numbered in a column "
            "draw, in place of the released counts.",
        ),
    ] = 0,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes draws repeatable.")] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write one row a person of the released counts, for tools that read microdata.

    No row is a real person: rows are the released counts in another form, and say no more.
    """
    with progress() as tell:
        made = exchange_functions.records(
            folder,
            file,
            table=table,
            draws=draws,
            seed=seed,
            overwrite=overwrite,
            tell=tell,
        )
    if json:
        print_json(made.to_dict())
        return
    if draws:
        out.print(f"{made.rows:,} rows of {draws:,} draws written to {file}.", soft_wrap=True)
        out.print(
            f"Prior: {made.prior}. Work out a result for each draw; how far the results differ is "
            "what the noise leaves open. No row is a real person.",
            soft_wrap=True,
        )
        return
    out.print(f"{made.rows:,} rows written to {file}. {made.what}", soft_wrap=True)
    out.print(
        "Their margins are the released counts, errors of the noise included: standard errors for "
        "a sample do not describe them. For what the true counts can be, countwise infer.",
        soft_wrap=True,
    )
