"""countwise verify: does a finding hold in confidential data, without showing the data?"""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from countwise.cli import options
from countwise.cli.console import out, print_charge, print_json, progress
from countwise.cli.options import Dataset, LedgerUrl
from countwise.cli.verify import schema_commands, verify_answer, verify_plan
from countwise.cli.verify.verify_answer import print_answer
from countwise.cli.verify.verify_options import (
    EXAMPLE,
    Alpha,
    Border,
    Claim,
    Family,
    Mechanism,
    Model,
    Page,
    Schema,
    Skewness,
    Table,
)
from countwise.front_door.verify import verify_functions
from countwise.front_door.verify.verify_functions import PARTITIONS

DATA = "data"


class DataFirst(TyperGroup):
    """A group whose first argument may be data instead of one of its commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Anything but a command or a plea for help is about data."""
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = [DATA, *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    cls=DataFirst,
    no_args_is_help=True,
    help="Ask whether a finding holds in confidential data. The answer is a verdict with a "
    "stated privacy loss. countwise verify DATA … is short for countwise verify data DATA …",
    epilog=EXAMPLE,
)
app.command("recompute", epilog=verify_answer.EXAMPLE)(verify_answer.recompute_answer)
app.command("plan", epilog=verify_plan.EXAMPLE)(verify_plan.plan)
app.command("schema", epilog=schema_commands.DRAFT_EXAMPLE)(schema_commands.schema)
app.command("synthetic", epilog=schema_commands.TWIN_EXAMPLE)(schema_commands.synthetic)


@app.command(DATA, epilog=EXAMPLE)
def data(
    schema: Schema,
    model: Model,
    claim: Claim,
    epsilon: Annotated[str, typer.Option(help="Privacy loss of the answer: 1, 0.5, 1/3.")],
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="Confidential rows: CSV, Parquet, or a database (DuckDB, SQLite, or "
            "postgres://user@host/database) with --table.",
        ),
    ] = None,
    partitions: Annotated[int, typer.Option(help="M, the number of partitions.")] = PARTITIONS,
    family: Family = "ols",
    mechanism: Mechanism = "lattice",
    alpha: Alpha = "1",
    border: Border = None,
    skewness: Skewness = None,
    table: Table = None,
    rehearsal: Annotated[
        str | None,
        typer.Option("--rehearse", help="Synthetic rows to use instead of data; spends nothing."),
    ] = None,
    out_file: Annotated[
        Path | None, typer.Option("--out", help="Write the answer here as JSON.")
    ] = None,
    page: Page = None,
    ledger: LedgerUrl = None,
    dataset: Dataset = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Fit the model in M partitions, count where the claim holds, and answer with noise."""
    with progress() as tell:
        found = verify_functions.verify(
            file,
            schema=schema,
            model=model,
            claim=claim,
            epsilon=epsilon,
            partitions=partitions,
            family=family,
            mechanism=mechanism,
            alpha=alpha,
            border=border,
            skewness=skewness,
            table=table,
            rehearse=rehearsal,
            out=out_file,
            page=page,
            ledger=ledger,
            dataset=dataset,
            overwrite=overwrite,
            tell=tell,
        )
    print_answer(found, out_file, page, json=json)
    print_charge(found.charge, json=json)


@app.command(epilog="Example: countwise verify example --out verify-example")
def example(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    json: options.Json = False,
) -> None:
    """Write a small made-up data set, its schema and its synthetic twin, to try things on."""
    names = verify_functions.verify_example(folder)
    if json:
        print_json({name: str(folder / name) for name in names})
        return
    out.print(f"Written to {folder}: {', '.join(names)}. Try:\n")
    out.print(
        f"countwise verify {folder}/workers.csv --schema {folder}/workers.toml "
        '--model "hours ~ education_years + age + C(sex)" --claim "education_years > 0.5" '
        "--epsilon 1",
        markup=False,
        soft_wrap=True,
    )
