"""countwise verify: does a finding hold in confidential data, without showing the data?"""

from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import typer
from typer.core import TyperGroup

from countwise.cli import options, verify_answer, verify_plan
from countwise.cli.charging import Dataset, LedgerUrl, charged, payment, say_charged
from countwise.cli.console import out, print_json, progress
from countwise.cli.verify_answer import give
from countwise.cli.verify_options import (
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
    numbers,
)
from countwise.errors import InputError
from countwise.examples.workers import write_example
from countwise.release.folder import refuse_existing, whole
from countwise.verification.answer import answer
from countwise.verification.question import Question
from countwise.verification.records import check_columns, read_records
from countwise.verification.request import make_request
from countwise.verification.request_loss import loss_of
from countwise.verification.schema import read_schema
from countwise.verification.verify import STAGES
from countwise.verification.verify import verify as noisy_counts

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
    partitions: Annotated[int, typer.Option(help="M, the number of partitions.")] = 50,
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
    if (file is None) is (rehearsal is None):
        raise InputError("give the data, or synthetic data with --rehearse, and not both.")
    if rehearsal is not None and (ledger or dataset):
        raise InputError("a rehearsal spends nothing. To fix, leave --ledger and --dataset out.")
    for each in (out_file, page):
        if each is not None:
            refuse_existing(each, overwrite=overwrite)
    request = make_request(
        read_schema(schema),
        Question(
            model=model,
            claim=claim,
            epsilon=epsilon,
            partitions=partitions,
            family=family,
            mechanism=mechanism,
            alpha=numbers(alpha, what="alpha"),
        ),
        border=border,
        skewness=skewness,
    )
    if file is not None:
        check_columns(file, request.schema, columns=request.columns, table=table)
    loss = loss_of(request, dataset=dataset or "", version="")
    paid = payment(ledger, loss, dataset=dataset)
    paid.pay(uuid4().hex)
    with progress(len(STAGES) + 1) as tell:
        tell("reading")
        records = read_records(
            file or rehearsal or "",
            request.schema,
            columns=request.columns,
            table=table,
            synthetic=file is None,
        )
        noisy = noisy_counts(records, request, tell=tell)
    give(answer(noisy, request, rehearsal=file is None), out_file, page, overwrite, json)
    say_charged(charged(ledger, dataset, paid), json=json)


@app.command(epilog="Example: countwise verify example --out verify-example")
def example(
    folder: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    json: options.Json = False,
) -> None:
    """Write a small made-up data set, its schema and its synthetic twin, to try things on."""
    with whole(folder, overwrite=False) as partial:
        names = write_example(partial)
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
