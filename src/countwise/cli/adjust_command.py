"""countwise adjust: counts that were noised elsewhere made to add up."""

from pathlib import Path
from typing import Annotated, Any

import typer

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.adjust.histogram import SIGNED
from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.front_door import adjust_function

EXAMPLE = (
    "Example: countwise adjust noisy.csv --by region,county --noisy n --epsilon 1 --out counts.csv"
)


@options.taking(options.LEVELS, before="noisy")
@options.taking(options.LOSS, before="method")
@options.taking(options.ADJUSTING, before="plan_file")
def adjust(
    table: Annotated[
        Path,
        typer.Argument(
            help="Noisy counts, one row a node, level columns empty below the node; or a release "
            "folder of tables that cross."
        ),
    ],
    file: Annotated[Path, typer.Option("--out", help="CSV or Parquet file to write.")],
    noisy: Annotated[
        list[str] | None,
        typer.Option(
            help="Noisy column, or column@loss if its loss differs from the given one. Repeat for "
            "several noisy values of the same counts."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help=f"Adjustment: {', '.join(ADJUSTMENTS)}, or {SIGNED} (keeps signs)."),
    ] = None,
    plan_file: options.PlanFile = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
    **words: Any,
) -> None:
    """Make noisy counts whole, non-negative and additive; the flags declare their noise."""
    with progress() as tell:
        made = adjust_function.adjust(
            table,
            file,
            plan=plan_file,
            noisy=noisy or (),
            method=method,
            overwrite=overwrite,
            tell=tell,
            **words,
        )
    data = made.to_dict()
    if json:
        print_json({"file": str(file)} | data)
        return
    out.print(f"Adjusted counts of {made.nodes:,} nodes written to {file}.")
    if made.reason:
        out.print(f"Adjustment: {made.method}; {made.reason}.")
    if made.tie_key is not None and made.method == "mode":
        out.print(f"Ties were broken in the random order of key {data['tie_key']}.")
