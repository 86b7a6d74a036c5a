"""Rows of people for multiple imputation: joint draws of the true counts, a row a person a draw.

A result is worked out for every draw. Its mean over the draws is the estimate; their variance times
1 + 1/draws is that of the estimate, since the draws are of all people and no sample (Rubin 1987,
with a variance within draws of 0).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from countwise.errors import InputError
from countwise.inference.crossed_draws import CrossedDraws
from countwise.inference.draws import Draws
from countwise.inference.routes import infer
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.person_rows import people_of
from countwise.tables.notation import margin_of

DRAW = "draw"
WHAT = (
    "Rows are joint draws of what the true counts can be, a row a person a draw. No row is a real "
    "person. How far the results of draws differ is what the noise leaves open."
)


@dataclass(frozen=True, kw_only=True)
class Imputed:
    """How many rows there are, and the prior behind them."""

    rows: int
    prior: str


def imputations(
    release: Release | CrossedRelease,
    draws: int,
    *,
    table: str | None = None,
    rng: np.random.Generator,
    report: Tell = silent,
) -> tuple[Iterator[pl.DataFrame], str]:
    """Frames of rows, `draw` and the labels of a table, by default of the cells; and the prior."""
    if isinstance(release, CrossedRelease):
        crossed = infer(release).draws(draws, rng=rng, report=report)
        return _rows(_crossed_counts(crossed, table)), crossed.prior
    posterior = infer(release, rng=rng)
    return _rows(_tree_counts(posterior.draws(draws, rng=rng), table)), posterior.joint_prior


def write_imputations(
    release: Release | CrossedRelease,
    file: Path,
    draws: int,
    *,
    table: str | None = None,
    rng: np.random.Generator,
    report: Tell = silent,
) -> Imputed:
    """Write the rows to a CSV or Parquet file."""
    frames, prior = imputations(release, draws, table=table, rng=rng, report=report)
    first = next(frames)
    labels = [(name, pa.string()) for name in first.columns if name != DRAW]
    said = {"countwise records": f"{WHAT} Prior: {prior}."}
    form = pa.schema([(DRAW, pa.int32()), *labels], metadata=said)
    rows = 0
    csv = file.suffix.lower() == ".csv"
    with pa_csv.CSVWriter(file, form) if csv else pq.ParquetWriter(file, form) as writer:
        for frame in chain([first], frames):
            writer.write_table(frame.to_arrow().cast(form))
            rows += len(frame)
    return Imputed(rows=rows, prior=prior)


def _rows(counts: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Each draw's labels as often as its counts say; first a frame without rows."""
    for number, cells in enumerate(counts, start=1):
        numbered = pl.lit(number, dtype=pl.Int32).alias(DRAW)
        if number == 1:
            yield cells.drop("count").clear().select(numbered, pl.all())
        for people in people_of(cells):
            yield people.select(numbered, pl.all())


def _crossed_counts(draws: CrossedDraws, table: str | None) -> Iterator[pl.DataFrame]:
    workload = draws.workload
    margin = workload.finest if table is None else margin_of(table, workload.names)
    if not any(margin.levels):
        raise InputError("rows of the total would have no columns. To fix, name another table.")
    labels = pl.DataFrame([column for _, column in workload.labels(margin)])
    labels = labels.select(name for name in labels.columns if labels[name].null_count() == 0)
    for row in draws.chosen:
        counts = workload.sums(row.reshape(workload.shape).astype(np.int64), margin)
        yield labels.cast(pl.String).with_columns(count=counts.reshape(-1))


def _tree_counts(draws: Draws, table: str | None) -> Iterator[pl.DataFrame]:
    by = draws.hierarchy.by
    if table is not None and table not in by:
        raise InputError(f"there is no level {table!r}. To fix, name one of {', '.join(by)}.")
    level = len(by) if table is None else by.index(table) + 1
    labels = draws.hierarchy.frame(level).select(pl.col(by[:level]).cast(pl.String))
    for counts in draws.levels[level]:
        yield labels.with_columns(count=counts)
