"""countwise compare: whether counts changed between two releases by more than noise."""

from pathlib import Path
from typing import Annotated

import polars as pl
import typer

from countwise.cli import options
from countwise.cli.console import err, out, print_json, print_table, progress
from countwise.cli.output_files import output_files, write_frame
from countwise.inference.changes import Changes
from countwise.inference.changes import compare as compared
from countwise.release.crossed_release import read_release

EXAMPLE = "Example: countwise compare last-year/ this-year/ --out changes.csv"
PRINTED = 20

Earlier = Annotated[Path, typer.Argument(help="The folder of the earlier release.")]
Later = Annotated[Path, typer.Argument(help="The folder of the later one, of the same cells.")]
Level = Annotated[float, typer.Option(help="Probability of the ranges, and 1 minus that of noise.")]
File = Annotated[Path | None, typer.Option("--out", help="CSV or Parquet file, a row a count.")]


def compare(
    earlier: Earlier,
    later: Later,
    level: Level = 0.95,
    file: File = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Whether each count changed between two releases by more than the noise of both."""
    outputs = output_files({"--out": file}, overwrite=overwrite)
    with progress(3) as tell:
        tell("reading")
        releases = read_release(earlier), read_release(later)
        tell("comparing")
        changes = compared(*releases, probability=level)
        if file is not None:
            tell("writing the table")
            write_frame(changes.table, file, overwrite=overwrite)
    if json:
        print_json(
            {
                "probability": level,
                "counts": len(changes.table),
                "more_than_noise": changes.found,
                "expected_by_noise": changes.expected_by_noise,
                "tables": _by_table(changes).to_dicts(),
            }
        )
        return
    _print(changes)
    for path in outputs:
        err.print(f"Written: {path}")


def _by_table(changes: Changes) -> pl.DataFrame:
    """How many counts of each table changed by more than noise."""
    return changes.table.group_by(pl.col("level").cast(pl.String), maintain_order=True).agg(
        counts=pl.len(), more_than_noise=pl.col("more_than_noise").sum()
    )


def _print(changes: Changes) -> None:
    found = changes.table.filter("more_than_noise").sort("by_noise", maintain_order=True)
    names = changes.table.columns[: changes.table.columns.index("level")]
    rows = []
    for row in found.head(PRINTED).iter_rows(named=True):
        labels = ", ".join(f"{name}={row[name]}" for name in names if row[name] is not None)
        change = f"{row['lower']:+,.1f} to {row['upper']:+,.1f}"
        numbers = f"{row['before']:,}", f"{row['after']:,}", f"{row['change']:+,.1f}"
        rows.append((labels or "total", *numbers, change, f"{row['by_noise']:.2g}"))
    percent = f"{100 * changes.probability:g}%"
    if rows:
        print_table(("count", "before", "after", "change", f"{percent} range", "by noise"), rows)
        if len(found) > len(rows):
            out.print(f"… and {len(found) - len(rows):,} more; see --out.")
        out.print()
    for row in _by_table(changes).iter_rows(named=True):
        out.print(f"{row['level']}: {row['more_than_noise']:,} of {row['counts']:,}")
    out.print(
        f"\n{changes.found:,} of {len(changes.table):,} counts changed by more than noise; if "
        f"nothing had changed, noise alone would give about {changes.expected_by_noise:,.0f}.\n"
        "by noise: the probability that noise alone makes a change as large. No prior; the "
        "difference of two estimates is taken as normal."
    )
