"""Rows of made-up persons that fit a public schema, to rehearse on before a claim is asked.

Every column is drawn by itself, evenly over its bounds or levels. With a release, the columns that
it counts are drawn together, in proportion to its released counts: so much of the truth as is
public already. Nothing here reads confidential rows.
"""

import numpy as np
import polars as pl

from countwise.errors import SchemaError
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.verification.schema import Schema, SchemaColumn

PLACES = 2  # of numbers that are not whole
LARGEST = 50_000_000  # rows, which are held in memory


def synthetic_rows(
    schema: Schema,
    *,
    persons: int,
    rng: np.random.Generator,
    release: Release | CrossedRelease | None = None,
) -> pl.DataFrame:
    """Rows of so many made-up persons, each with one row to as many as the schema says."""
    each = rng.integers(1, (schema.rows_a_person or 1) + 1, persons)
    rows = int(each.sum())
    if not 1 <= rows <= LARGEST:
        raise SchemaError(f"synthetic rows must be from 1 to {LARGEST:,}, got {rows:,}.")
    columns: dict[str, pl.Series] = {}
    if schema.person_id is not None:
        ids = np.repeat(np.arange(1, persons + 1), each)
        columns[schema.person_id] = pl.Series(schema.person_id, ids)
    drawn = {} if release is None else _released(schema, release, rows, rng)
    for name, column in schema.columns.items():
        columns[name] = drawn[name] if name in drawn else evenly(column, rows, rng)
    return pl.DataFrame(columns)


def evenly(column: SchemaColumn, rows: int, rng: np.random.Generator) -> pl.Series:
    """Values of a column, each as likely as the others."""
    if column.kind == "category":
        labels = pl.Series(column.name, column.labels)
        return labels[rng.integers(0, len(column.labels), rows)]
    if column.kind == "number":
        values = rng.uniform(column.low, column.high, rows).round(PLACES)
        return pl.Series(column.name, np.clip(values, column.low, column.high))
    return pl.Series(column.name, rng.integers(int(column.low), int(column.high) + 1, rows))


def _released(
    schema: Schema, release: Release | CrossedRelease, rows: int, rng: np.random.Generator
) -> dict[str, pl.Series]:
    """The columns of a schema that a release counts, drawn in proportion to its counts."""
    table = _finest(schema, release)
    shared = [name for name in table.columns if name in schema.columns]
    if not shared:
        raise SchemaError(
            "the release counts none of the schema's columns. To fix, give one that does, or "
            "leave --release out."
        )
    fitting = pl.all_horizontal(_fits(schema.columns[name], table[name]) for name in shared)
    known = table.filter(fitting)
    if known["count"].sum() == 0:
        raise SchemaError(
            f"the labels of {', '.join(shared)} in the release are none of the schema's. To fix, "
            "spell them alike."
        )
    chances = known["count"].to_numpy() / known["count"].sum()
    chosen = known[rng.choice(len(known), rows, p=chances)]
    return {
        name: chosen[name]
        if schema.columns[name].kind == "category"
        else chosen[name].cast(pl.Float64).cast(pl.Int64, strict=False)
        for name in shared
    }


def _finest(schema: Schema, release: Release | CrossedRelease) -> pl.DataFrame:
    """The cells of a tree, or of the published table that has most of the schema's columns."""
    table = release.table()
    text = table.with_columns(pl.col(pl.Enum).cast(pl.String))
    if isinstance(release, Release):
        return text.filter(pl.col("level") == release.hierarchy.by[-1])
    workload = release.workload

    def shared(name: str) -> int:
        return len(set(name.split("*")) & set(schema.columns))

    best = max(map(workload.name, release.finest), key=shared)
    found = text.filter(pl.col("level") == best)
    return found.select(name for name in found.columns if found[name].null_count() < len(found))


def _fits(column: SchemaColumn, labels: pl.Series) -> pl.Series:
    """Where a label of the release is a value that the schema allows."""
    if column.kind == "category":
        return labels.is_in(list(column.labels))
    values = labels.cast(pl.Float64, strict=False)
    whole = values == values.round()
    return (values.is_between(column.low, column.high) & whole).fill_null(value=False)
