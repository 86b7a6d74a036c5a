"""countwise verify schema and verify synthetic: what a claim needs before it can be asked."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json
from countwise.cli.verify.verify_options import Table
from countwise.front_door.verify import schema_functions

DRAFT_EXAMPLE = (
    'Example: countwise verify schema data.csv --person id --integer "age: 18 to 70" '
    '--category "sex: Female, Male" --out schema.toml'
)
TWIN_EXAMPLE = "Example: countwise verify synthetic schema.toml --out synthetic.csv"
Stated = list[str] | None


def schema(
    data: Annotated[str, typer.Argument(help="Confidential rows; only names are read.")],
    person: Annotated[str | None, typer.Option(help="Column that says whose a row is.")] = None,
    one_row_each: Annotated[
        bool, typer.Option("--one-row-each", help="Every row is another person.")
    ] = False,
    number: Annotated[Stated, typer.Option(help="A number: 'hours: 0 to 80'. Repeat.")] = None,
    integer: Annotated[Stated, typer.Option(help="Whole: 'age: 18 to 70'. Repeat.")] = None,
    category: Annotated[
        Stated, typer.Option(help="'sex: Female, Male', the reference first. Repeat.")
    ] = None,
    binary: Annotated[Stated, typer.Option(help="A column of 0 and 1. Repeat.")] = None,
    count: Annotated[int | None, typer.Option(help="Persons, if that is public.")] = None,
    rows: Annotated[int | None, typer.Option(help="The most rows of a person.")] = None,
    title: Annotated[str, typer.Option(help="What the data are.")] = "",
    names_are_public: Annotated[
        bool,
        typer.Option(
            "--names-are-public",
            help="List the columns that are not stated: the first line is a header, no record.",
        ),
    ] = False,
    table: Table = None,
    file: Annotated[Path | None, typer.Option("--out", help="Schema file to write.")] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Draft a public schema from column names and what you state, never from values."""
    draft = schema_functions.verify_schema(
        data,
        person=person,
        one_row_each=one_row_each,
        number=number or (),
        integer=integer or (),
        category=category or (),
        binary=binary or (),
        count=count,
        rows=rows,
        title=title,
        names_are_public=names_are_public,
        table=table,
        out=file,
        overwrite=overwrite,
    )
    if json:
        print_json({"schema": draft.text, "questions": list(draft.questions)})
        return
    if file is None:
        out.print(draft.text)
    else:
        out.print(f"Written: {file}")
    if draft.questions:
        out.print("\nStill to be answered from public sources, not from the data:")
        for question in draft.questions:
            out.print(f"- {question}")


def synthetic(
    schema: Annotated[Path, typer.Argument(help="Public schema, TOML.")],
    file: Annotated[Path, typer.Option("--out", help="CSV or Parquet file to write.")],
    persons: Annotated[
        int | None, typer.Option(min=1, help="Made-up persons (default: the schema's count).")
    ] = None,
    release: Annotated[
        Path | None, typer.Option(help="Release folder whose counts shared columns follow.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the rows repeatable.")] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Make up rows that fit a schema, to rehearse claims on; no confidential row is read."""
    rows = schema_functions.verify_synthetic(
        schema, out=file, persons=persons, release=release, seed=seed, overwrite=overwrite
    )
    if json:
        print_json({"file": str(file), "rows": len(rows), "columns": rows.columns})
        return
    out.print(f"{len(rows):,} made-up rows written to {file}. Rehearse on them: --rehearse {file}")
