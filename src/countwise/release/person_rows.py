"""One row a person of the released cells, for tools that read microdata.

As many rows as released people, with the labels of the variables. They are the released counts in
another form: nobody stands behind a row, and what the counts do not say the rows do not say either.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from countwise.choices import one_of
from countwise.errors import InputError, ReleaseError
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.manifest import is_tree, levels_of, read_manifest, refuse_changed
from countwise.tables.notation import Names, margin_of

BATCH = 1_000_000
"""People that are held in memory at a time."""
WHAT = (
    "One row a person of the released counts, which were made with noise. No row is a real person."
)


def records(release: Release | CrossedRelease, *, table: str | None = None) -> pl.DataFrame:
    """One row a person of the released cells, with their labels.

    `table` names the table that becomes rows, of a tree the level; without it, it is the one that
    all others are totals of. No row is a real person.
    """
    if isinstance(release, CrossedRelease):
        known = tuple(map(release.workload.name, release.workload.margins))
        tables = _Tables(names=release.workload.names, known=known)
    else:
        tables = _tree(release.hierarchy.by)
    chosen, by = tables.chosen(table)
    cells = release.table().filter(pl.col("level") == chosen).select(*by, "count")
    return pl.concat([cells.drop("count").clear(), *people_of(cells)])


def write_records(folder: Path, file: Path, *, table: str | None = None) -> int:
    """Write the same of a release folder to a CSV or Parquet file; how many people there are.

    The counts are read as they lie in the folder, batch by batch, so any size passes through.
    """
    manifest = read_manifest(folder)
    chosen, by = _published(manifest).chosen(table)
    refuse_changed(folder, manifest)
    form = pa.schema([(name, pa.string()) for name in by], metadata={"countwise records": WHAT})
    written = 0
    with _writer(file, form) as writer:
        for cells in _cells(folder / "counts.parquet", chosen, by):
            for people in people_of(cells):
                writer.write_table(people.to_arrow().cast(form))
                written += len(people)
    return written


@dataclass(frozen=True, kw_only=True)
class _Tables:
    """The variables of a release and the tables it publishes, by name."""

    names: Names
    known: tuple[str, ...]

    def chosen(self, table: str | None) -> tuple[str, tuple[str, ...]]:
        """The table that becomes rows, and its label columns."""
        margins = {margin_of(name, self.names): name for name in self.known}
        if table is None:
            finest = [
                name
                for each, name in margins.items()
                if not any(m != each and m.covers(each) for m in margins)
            ]
            if len(finest) > 1:
                raise InputError(
                    "no published table has all others as its totals, and a person is in one row. "
                    f"To fix, name the table that becomes rows with --table: {', '.join(finest)}."
                )
            table = finest[0]
        found = margins.get(margin_of(table, self.names), table)
        one_of(found, self.known, what="--table")
        depths = zip(self.names.values(), margin_of(found, self.names).levels, strict=True)
        by = tuple(level for levels, depth in depths for level in levels[:depth])
        if not by:
            raise InputError("rows of the total would have no columns. To fix, name another table.")
        return found, by


def _published(manifest: dict[str, Any]) -> _Tables:
    if is_tree(manifest):
        return _tree(levels_of(manifest))
    return _Tables(
        names={each["name"]: tuple(each["levels"]) for each in manifest["variables"]},
        known=tuple(each["margin"] for each in manifest["margins"]),
    )


def _tree(by: Sequence[str]) -> _Tables:
    return _Tables(names={by[-1]: tuple(by)}, known=tuple(by))


def _writer(file: Path, form: pa.Schema) -> pq.ParquetWriter | pa_csv.CSVWriter:
    if file.suffix.lower() == ".parquet":
        return pq.ParquetWriter(file, form, compression="zstd")
    return pa_csv.CSVWriter(file, form, write_options=pa_csv.WriteOptions(quoting_style="needed"))


def _cells(counts: Path, chosen: str, by: tuple[str, ...]) -> Iterator[pl.DataFrame]:
    """The labels and counts of one table of a release, as they lie in its files."""
    files = sorted(counts.glob("[0-9]*.parquet")) if counts.is_dir() else [counts]
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(columns=[*by, "level", "count"]):
            found = pl.DataFrame(batch).filter(pl.col("level").cast(pl.String) == chosen)
            if (found["count"] < 0).any():
                raise ReleaseError(f"{path} has a negative count; released counts never are.")
            yield found.select(pl.col(*by).cast(pl.String), "count")


def people_of(cells: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Every cell's labels as often as its count says, in batches."""
    ends = np.cumsum(cells["count"].to_numpy())
    labels = cells.drop("count")
    people = int(ends[-1]) if len(ends) else 0
    for first in range(0, people, BATCH):
        numbers = np.arange(first, min(first + BATCH, people))
        yield labels[np.searchsorted(ends, numbers, side="right")]
