"""Options that several commands share: each said once, and handed on as the words it stands for."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from countwise.adjust.adjustments import ADJUSTMENTS

Function = TypeVar("Function", bound=Callable[..., Any])

By = Annotated[
    str | None, typer.Option(help="Level columns from outer to inner, such as region,county,race.")
]
Across = Annotated[
    str | None,
    typer.Option(
        help="Variables that cross that of --by: a column (sex), or a name with its levels from "
        "coarse to fine (age: band > year), with commas between them."
    ),
]
Tables = Annotated[
    str | None,
    typer.Option(
        help="Tables to publish of variables that cross: county*age (with its totals), tract:race "
        "(without). Default: every level of --by with up to two others, and the cells. In plan "
        "--unit with targets: county*age: ±20; tract: ±50 (or +-20)."
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        help="Privacy loss in all (2, 0.5, 1/3), or of each level: total=1,region=0.5,county=0.5."
    ),
]
Rho = Annotated[
    str | None,
    typer.Option(help="Privacy loss of Gaussian noise (zCDP), in all or of each level."),
]
Split = Annotated[
    str | None,
    typer.Option(
        help="How a loss in all is divided: auto (default: for the most accurate counts at every "
        "level), even, relative (equal relative error), or weights: total=1,region=2,county=2."
    ),
]
Neighbours = Annotated[
    str | None,
    typer.Option(help="Who is hidden: add-remove (default) or replace-one."),
]
Rows = Annotated[int | None, typer.Option(help="The most rows one person can have (default 1).")]
Mechanism = Annotated[
    str | None,
    typer.Option(
        help="Noise: auto (default: joint where that is drawn quickly, else geometric; gaussian "
        "for --rho), geometric, laplace, joint (adds up by itself), or gaussian."
    ),
]
Noise = Annotated[str | None, typer.Option(help="Who draws the noise: exact (default) or opendp.")]
Adjust = Annotated[
    str | None, typer.Option(help=f"Adjustment: {', '.join(ADJUSTMENTS)} (default auto).")
]
Pool = Annotated[
    str | None, typer.Option(help="Level whose labels share what bayes learns, such as race.")
]
Total = Annotated[
    str | None,
    typer.Option(
        help="Grand total of mode and draw-1 from its own noisy count (independent) or also the "
        "sum of the noisy parts (summed)."
    ),
]
Ties = Annotated[str | None, typer.Option(help="Who wins a tie: random (published order) or last.")]
Person = Annotated[
    str | None,
    typer.Option(help="Column of the records that says whose a row is; keeps --rows."),
]
Outside = Annotated[
    str | None,
    typer.Option(
        help="Records that are in no cell of the domain: refuse (default), or count them into its "
        "declared other levels (other)."
    ),
]
Exact = Annotated[
    list[str] | None,
    typer.Option(
        help="Counts that are public and released without noise: a level (total, county), labels "
        "(county=Wake,race=Asian), or a CSV of nodes. Repeat."
    ),
]
Zeros = Annotated[
    list[str] | None,
    typer.Option(
        help="Counts that can only be zero: labels (sex=male,pregnant=yes), or a CSV of nodes. "
        "Repeat."
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Who counts the records, as a URL: duckdb://, duckdb://file.duckdb, "
        "postgres://user@host/database, spark, spark://host:7077. Spark also does the other work "
        "of large tables.",
        envvar="COUNTWISE_ENGINE",
        show_envvar=True,
    ),
]
LayoutName = Annotated[
    str,
    typer.Option(
        "--layout",
        help="Layout of the table: long (one row a cell), wide (one column a category of the last "
        "level) or sdmx (SDMX-CSV).",
    ),
]
TotalCode = Annotated[
    str | None,
    typer.Option(
        help="Label of total rows, which are checked and left out: Total, or county=All,race=_T."
    ),
]
NoTotals = Annotated[
    bool,
    typer.Option(
        "--no-totals", help="Labels such as Total or All are cells like the others, not totals."
    ),
]
SumDuplicates = Annotated[
    bool, typer.Option("--sum-duplicates", help="Add up rows of the table that are one cell.")
]
Separator = Annotated[
    str | None,
    typer.Option(help="What separates columns of a text file (default: as its header shows)."),
]
Encoding = Annotated[
    str | None,
    typer.Option(help="Encoding of a text file, such as latin-1 (default: UTF-8 or UTF-16)."),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="What stands between thousands of counts: comma, point, space, apostrophe."),
]
Skip = Annotated[int, typer.Option(min=0, help="Lines above the header, such as titles.")]
Sheet = Annotated[str | None, typer.Option(help="Sheet of a workbook: its name or number.")]
Title = Annotated[str | None, typer.Option(help="Name of the table, for every page.")]
Producer = Annotated[str | None, typer.Option(help="Who publishes it, for every page.")]
Contact = Annotated[str | None, typer.Option(help="Whom to ask, for every page.")]
PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="A plan file; flags given beside it win.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the output if it exists.")]

LedgerUrl = Annotated[
    str | None,
    typer.Option(
        "--ledger",
        help="Charge the loss to this ledger first (sqlite:///file, postgresql://…); exit code 3 "
        "if its budget does not allow it.",
    ),
]
Dataset = Annotated[
    str | None, typer.Option(help="Data set of the ledger whose budget is charged.")
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the simulation (not of any noise).")]

LEVELS: dict[str, Any] = {"by": By}
CROSSING: dict[str, Any] = LEVELS | {"across": Across, "tables": Tables}
LOSS: dict[str, Any] = {
    "epsilon": Epsilon,
    "rho": Rho,
    "split": Split,
    "neighbours": Neighbours,
    "rows": Rows,
    "mechanism": Mechanism,
}
DRAWING: dict[str, Any] = LOSS | {"noise": Noise, "adjust": Adjust}
ADJUSTING: dict[str, Any] = {
    "pool": Pool,
    "total": Total,
    "ties": Ties,
    "exact": Exact,
    "zeros": Zeros,
}
IMPRINT: dict[str, Any] = {"title": Title, "producer": Producer, "contact": Contact}
RECORDS: dict[str, Any] = {"person": Person, "outside": Outside}
FILE: dict[str, Any] = {
    "layout": LayoutName,
    "total_code": TotalCode,
    "no_totals": NoTotals,
    "separator": Separator,
    "encoding": Encoding,
    "thousands": Thousands,
    "skip": Skip,
    "sheet": Sheet,
}
DEFAULTS = {"layout": "long", "no_totals": False, "skip": 0}


def taking(*groups: dict[str, Any], before: str = "") -> Callable[[Function], Function]:
    """A command whose `**words` are the options of these groups, listed before one of its own."""

    def listed(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.name != "words"]
        shared = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=kind
            )
            for group in groups
            for name, kind in group.items()
        ]
        place = next((i for i, each in enumerate(own) if each.name == before), len(own))
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        parameters = [*own[:place], *shared, *own[place:]]
        vars(function)["__signature__"] = signature.replace(parameters=parameters)
        return function

    return listed
