"""Rows of a release as Arrow tables, written to Parquet as they come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from countwise.arrays import IntArray
from countwise.tables.hierarchy import Hierarchy

LABEL = pa.dictionary(pa.int32(), pa.string())
GROUP = 500_000
"""Rows that are gathered before a group of them is written."""


def rows(hierarchy: Hierarchy, level: int, values: Mapping[str, IntArray]) -> pa.Table:
    """The nodes of a level: level columns (empty below the node's level), `level`, the values."""
    size = hierarchy.sizes[level]
    columns = [
        pa.DictionaryArray.from_arrays(codes.view(np.int32), pa.array(labels))
        for codes, labels in zip(hierarchy.path_codes(level), hierarchy.labels, strict=False)
    ]
    columns += [pa.nulls(size, LABEL)] * (len(hierarchy.by) - level)
    same = pa.DictionaryArray.from_arrays(np.zeros(size, np.int32), [hierarchy.levels[level]])
    arrays = map(pa.array, values.values())
    return pa.table([*columns, same, *arrays], schema=schema(hierarchy.by, tuple(values)))


def top_rows(
    hierarchy: Hierarchy, by: Sequence[str], level: int, values: Mapping[str, IntArray]
) -> pa.Table:
    """The same for a level of the top, which does not have the level columns below the cut."""
    table = rows(hierarchy, level, values)
    for i, column in enumerate(by[len(hierarchy.by) :], start=len(hierarchy.by)):
        table = table.add_column(i, column, pa.nulls(table.num_rows, LABEL))
    return table


def schema(by: Sequence[str], names: Sequence[str]) -> pa.Schema:
    """Columns of every table of a release."""
    labels = [(each, LABEL) for each in (*by, "level")]
    return pa.schema([*labels, *((name, pa.int64()) for name in names)])


def write_tables(path: Path, tables: Iterable[pa.Table]) -> None:
    """A Parquet file of tables with the same columns, one after another."""
    groups = _groups(tables)
    first = next(groups)
    form = first.schema
    kept = [column.name for column in form if not pa.types.is_dictionary(column.type)]
    with pq.ParquetWriter(path, form, compression="zstd", write_statistics=kept) as writer:
        for table in chain([first], groups):
            writer.write_table(table)


def _groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(each.num_rows for each in waiting) >= GROUP:
            yield pa.concat_tables(waiting).unify_dictionaries()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).unify_dictionaries()


def level_sums(files: Sequence[Path], name: str, sizes: Sequence[int]) -> list[int]:
    """The sum of a written column over each level; -1 where a value is negative or missing."""
    ends, at = np.cumsum(sizes), 0
    sums = [0] * len(sizes)
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(columns=[name]):
            values = batch.column(0).to_numpy()
            while len(values):
                level = int(np.searchsorted(ends, at, side="right"))
                part = values[: int(ends[level]) - at]
                bad = sums[level] < 0 or bool((part < 0).any())
                sums[level] = -1 if bad else sums[level] + int(part.sum())
                at, values = at + len(part), values[len(part) :]
    return sums if at == int(ends[-1]) else [-1] * len(sizes)
