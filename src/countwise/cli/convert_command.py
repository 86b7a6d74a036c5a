"""countwise convert: a release in the formats that agencies exchange."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.choices import one_of
from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.errors import InputError
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release
from countwise.release.folder import refuse_existing, whole
from countwise.release.workbook import write_workbook
from countwise.tables.crosstab import TOTAL, crosstab
from countwise.tables.notation import margin_of
from countwise.tables.sdmx import sdmx
from countwise.tables.workload import Margin

EXAMPLE = "Example: countwise convert release/ --to xlsx --out release.xlsx"
FORMATS = ("wide", "sdmx", "xlsx")
ENDINGS = {".xlsx": "xlsx"}


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
    ] = "COUNTWISE:COUNTS(1.0)",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write the counts of a release as a cross-table, as SDMX-CSV or as an Excel workbook."""
    chosen = to or ENDINGS.get(file.suffix.lower(), "")
    if not chosen:
        raise InputError(
            f"{file}: the ending does not say the format. To fix, end the name in "
            f"{', '.join(ENDINGS)} (xlsx), or add --to with one of {', '.join(FORMATS)}: wide and "
            "sdmx are both .csv."
        )
    one_of(chosen, FORMATS, what="--to")
    refuse_existing(file, overwrite=overwrite)
    with progress(2) as tell:
        tell("reading")
        release = read_release(folder)
        tell("writing")
        with whole(file, overwrite=overwrite) as partial:
            write(release, partial, chosen, table=table, total_code=total_code, dataflow=dataflow)
    if json:
        print_json({"file": str(file), "format": chosen, "nodes": release.size})
        return
    what = f"{release.size:,} counts" if table is None else f"Table {table}"
    out.print(f"{what} of {folder} written to {file} ({chosen}).")


def write(
    release: Release | CrossedRelease,
    file: Path,
    to: str,
    *,
    table: str | None,
    total_code: str,
    dataflow: str,
) -> None:
    """The counts of a release in one of the formats."""
    crossed = isinstance(release, CrossedRelease)
    if table is not None and (to != "wide" or not crossed):
        raise InputError("--table names one of several tables that cross, to be written wide.")
    if to == "xlsx":
        write_workbook(release, file)
    elif to == "sdmx":
        cells = release.workload if isinstance(release, CrossedRelease) else release.hierarchy
        sdmx(cells, release.table(), dataflow=dataflow).write_csv(file)
    elif isinstance(release, CrossedRelease):
        release.drawn(_chosen(release, table), total=total_code).write_csv(file)
    else:
        crosstab(release.hierarchy, release.counts[-1], total=total_code).write_csv(file)


def _chosen(release: CrossedRelease, table: str | None) -> Margin:
    """The table that was asked for, or the only one there can be."""
    workload = release.workload
    if table is not None:
        return workload.find(workload.name(margin_of(table, workload.names)))
    if len(release.finest) == 1:
        return release.finest[0]
    names = ", ".join(map(workload.name, release.finest))
    raise InputError(f"a wide table is one table. To fix, name it with --table: {names}.")
