"""countwise records: the released cells as one row a person, for tools that read microdata."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.cli.output_files import output_files
from countwise.release.folder import whole
from countwise.release.person_rows import WHAT, write_records

EXAMPLE = "Example: countwise records release/ --out people.parquet"


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
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write one row a person of the released counts, for tools that read microdata.

    No row is a real person: rows are the released counts in another form, and say no more.
    """
    output_files({"--out": file}, overwrite=overwrite)
    with progress(1) as tell, whole(file, overwrite=overwrite) as partial:
        tell("writing rows")
        people = write_records(folder, partial, table=table)
    if json:
        print_json({"file": str(file), "rows": people, "what": WHAT})
        return
    out.print(f"{people:,} rows written to {file}. {WHAT}", soft_wrap=True)
    out.print(
        "Their margins are the released counts, errors of the noise included: standard errors for "
        "a sample do not describe them. For what the true counts can be, countwise infer.",
        soft_wrap=True,
    )
