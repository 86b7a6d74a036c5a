"""What the reference pages take for granted: the reader's own files, made small."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

import countwise as cw

REGIONS, COUNTIES, RACES = ("North", "South"), ("A", "B"), ("x", "yy", "zzz")
CELLS = "region,county,race,n\n" + "".join(
    f"{region},{county},{race},{len(region + county + race) % 7}\n"
    for region in REGIONS
    for county in COUNTIES
    for race in RACES
)


def cells(folder: Path) -> None:
    """cells.csv, and stand-in.csv without its innermost level."""
    (folder / "cells.csv").write_text(CELLS)
    frame = pl.read_csv(folder / "cells.csv").group_by("region", "county").agg(pl.sum("n"))
    frame.sort("region", "county").write_csv(folder / "stand-in.csv")


def release(folder: Path) -> None:
    """A release folder of the cells."""
    cells(folder)
    table = cw.read_counts(
        folder / "cells.csv", by=["region", "county", "race"], count="n", cells_are_public=True
    )
    cw.release(table, cw.Plan(epsilon=3)).save(folder / "release")


def records(folder: Path) -> None:
    """People and a public domain for them."""
    people = [
        {"id": i, "state": ("NC", "VA")[i % 2], "county": ("1", "2")[i % 3 % 2],
         "race": ("Asian", "Black", "White", "elsewhere")[i % 4]}
        for i in range(60)
    ]  # fmt: skip
    pl.DataFrame(people).write_parquet(folder / "people.parquet")
    (folder / "counties.csv").write_text("state,county\nNC,1\nNC,2\nVA,1\nVA,2\n")
    (folder / "domain.toml").write_text(
        'other = "elsewhere"\n[columns.race]\nlevels = ["Asian", "Black", "White"]\n'
        '[nested.geography]\ncolumns = ["state", "county"]\nfile = "counties.csv"\n'
    )


SETTINGS: dict[str, Callable[[Path], None]] = {
    "README.md": cells,
    "inference.md": release,
    "invariants.md": cells,
    "records.md": records,
    "risk.md": cells,
}
