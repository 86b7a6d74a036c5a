"""countwise records: the released cells as one row a person, for tools that read microdata."""

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, progress, stages
from countwise.cli.output_files import output_files
from countwise.inference.imputations import write_imputations
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
    output_files({"--out": file}, overwrite=overwrite)
    if draws:
        _write_draws(folder, file, table, draws, seed, overwrite, json)
        return
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


def _write_draws(
    folder: Path,
    file: Path,
    table: str | None,
    draws: int,
    seed: int | None,
    overwrite: bool,
    json: bool,
) -> None:
    """Rows of joint draws, for multiple imputation."""
    rng = np.random.default_rng(seed)
    with stages() as report, whole(file, overwrite=overwrite) as partial:
        made = write_imputations(folder, partial, draws, table=table, rng=rng, report=report)
    if json:
        print_json({"file": str(file), "rows": made.rows, "draws": draws, "prior": made.prior})
        return
    out.print(f"{made.rows:,} rows of {draws:,} draws written to {file}.", soft_wrap=True)
    out.print(
        f"Prior: {made.prior}. Work out a result for each draw; how far the results differ is what "
        "the noise leaves open. No row is a real person.",
        soft_wrap=True,
    )
