"""countwise convert: a release in the formats that agencies exchange."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.errors import InputError
from countwise.noise.numbers import one_of
from countwise.release.document import Release, read_release
from countwise.release.folder import refuse_existing, whole
from countwise.release.workbook import write_workbook
from countwise.tables.crosstab import TOTAL, crosstab
from countwise.tables.sdmx import sdmx

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
            write(release, partial, to=chosen, total_code=total_code, dataflow=dataflow)
    if json:
        print_json({"file": str(file), "format": chosen, "nodes": release.hierarchy.nodes})
        return
    out.print(f"{release.hierarchy.nodes:,} counts of {folder} written to {file} ({chosen}).")


def write(release: Release, file: Path, *, to: str, total_code: str, dataflow: str) -> None:
    """The counts of a release in one of the formats."""
    if to == "xlsx":
        write_workbook(release, file)
    elif to == "sdmx":
        sdmx(release.hierarchy, release.table(), dataflow=dataflow).write_csv(file)
    else:
        crosstab(release.hierarchy, release.counts[-1], total=total_code).write_csv(file)
