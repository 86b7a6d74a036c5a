"""countwise release: a confidential table becomes a folder anyone may have."""

from pathlib import Path
from typing import Annotated

import typer

from countwise.cli import options
from countwise.cli.console import out, print_json, print_table, progress
from countwise.privacy.epsilon import written
from countwise.release.document import Release
from countwise.release.folder import refuse_existing
from countwise.release.run import release as make_release
from countwise.tables.reading import read_counts

EXAMPLE = (
    "Example: countwise release cells.csv --by region,county --count n --epsilon 1 "
    "--cells-are-public --out release/"
)
STAGES = 7


def release(
    table: Annotated[
        Path, typer.Argument(help="Confidential table, CSV or Parquet, one row a cell.")
    ],
    folder: Annotated[Path, typer.Option("--out", help="Folder to write; must not exist.")],
    by: options.By = None,
    count: Annotated[str, typer.Option(help="Count column.")] = "count",
    domain: Annotated[
        Path | None, typer.Option(help="Public list of cells; those without a row are zeros.")
    ] = None,
    cells_are_public: Annotated[
        bool, typer.Option("--cells-are-public", help="The rows of the table are the public list.")
    ] = False,
    epsilon: options.Epsilon = None,
    split: options.Split = None,
    neighbours: options.Neighbours = None,
    rows: options.Rows = None,
    mechanism: options.Mechanism = None,
    noise: options.Noise = None,
    adjust: options.Adjust = None,
    total: options.Total = None,
    ties: options.Ties = None,
    plan_file: options.PlanFile = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Release counts that protect people, are whole, non-negative, and add up at every level."""
    plan = options.make_plan(
        plan_file,
        {
            "by": options.names(by),
            "epsilon": options.by_level(epsilon, what="epsilon"),
            "split": options.by_level(split, what="split"),
            "neighbours": neighbours,
            "rows": rows,
            "mechanism": mechanism,
            "noise": noise,
            "adjust": adjust,
            "total": total,
            "ties": ties,
        },
    )
    refuse_existing(folder, overwrite=overwrite)
    with progress(STAGES) as tell:
        tell("reading")
        confidential = read_counts(
            table, by=plan.by, count=count, domain=domain, cells_are_public=cells_are_public
        )
        made = make_release(confidential, plan, tell=tell)
        made.save(folder, overwrite=overwrite, tell=tell)
    if json:
        print_json(made.manifest() | {"folder": str(folder)})
    else:
        print_summary(made, folder)


def print_summary(made: Release, folder: Path) -> None:
    """What was released, level by level, and where it is."""
    levels = made.budget.levels
    print_table(
        ("level", "counts", "ε", "noise within, 95%"),
        [
            (each.level, f"{each.nodes:,}", written(each.epsilon), f"±{each.law.margin(0.95):,}")
            for each in levels
        ],
    )
    out.print(f"\nPrivacy loss: {made.budget.sum_in_words()}")
    out.print(f"Released to {folder}; read {folder / 'certificate.html'} first.")
