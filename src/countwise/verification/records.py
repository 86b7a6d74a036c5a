"""Confidential rows, wrapped so that they are not shown by accident.

Reading never looks at values to decide anything: a CSV is text with commas and one header
line, and what does not fit the schema (a word in a number column, a number outside its bounds,
an unknown level) is a missing value. A row that is no row (too many or too few fields, bytes that
are not UTF-8) is left out. What no reader can undo is a quotation mark that is never closed: the
file must be written by something that quotes.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.errors import TableError
from countwise.kernels.keyed_hash import ByteArray
from countwise.verification.row_sources import PERSON, RowSource, opened, without_password
from countwise.verification.schema import Schema, SchemaColumn


class Records:
    """The rows of a data set: numbers and places of levels by column, NaN where missing.

    `ids` are the bytes that name each row's person and where they start; a row whose person is
    unknown has none. The rows leave through `reveal`, which only `verify` may call.
    """

    __slots__ = ("__columns", "__data", "__offsets", "schema", "synthetic")

    def __init__(
        self,
        schema: Schema,
        columns: Mapping[str, FloatArray],
        data: ByteArray,
        offsets: IntArray,
        *,
        synthetic: bool = False,
    ) -> None:
        self.schema, self.synthetic = schema, synthetic
        self.__columns = {name: frozen(column) for name, column in columns.items()}
        self.__data, self.__offsets = frozen(data), frozen(offsets)

    def reveal(self) -> tuple[Mapping[str, FloatArray], ByteArray, IntArray]:
        """Columns, the bytes of the person ids, and where each id starts."""
        return self.__columns, self.__data, self.__offsets

    def __repr__(self) -> str:
        return f"Records({', '.join(self.__columns)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential rows can not be pickled")

    __getstate__ = __reduce__


def read_records(
    place: str | Path,
    schema: Schema,
    *,
    columns: Iterable[str],
    table: str | None = None,
    synthetic: bool = False,
) -> Records:
    """The named columns of a CSV or Parquet file, or of a table in a database (a file or URL)."""
    chosen = [schema.columns[name] for name in sorted(set(columns))]
    with opened(str(place), table=table) as source:
        _refuse_missing(source, place, schema, columns)
        rows = source.fetch(chosen, schema.person_id)
    if not source.ordered:
        rows = rows.sort_by([(name, "ascending") for name in rows.column_names])
    return Records(
        schema,
        {each.name: _values(rows.column(each.name), each) for each in chosen},
        *_ids(rows, schema.person_id),
        synthetic=synthetic,
    )


def check_columns(
    place: str | Path, schema: Schema, *, columns: Iterable[str], table: str | None = None
) -> None:
    """Refuse what has not the named columns; no row is read."""
    with opened(str(place), table=table) as source:
        _refuse_missing(source, place, schema, columns)


def _refuse_missing(
    source: RowSource, place: str | Path, schema: Schema, columns: Iterable[str]
) -> None:
    person = [] if schema.person_id is None else [schema.person_id]
    for name in (*person, *sorted(set(columns))):
        if name not in source.columns:
            shown = without_password(str(place))
            raise TableError(f"{shown}: no column {name!r}, which the schema promises.")


def _values(column: pa.ChunkedArray, facts: SchemaColumn) -> FloatArray:
    if not facts.numeric:
        levels = pa.array(facts.labels, type=pa.string())
        places = pa.compute.index_in(column.cast(pa.string()), value_set=levels)
        found = places.combine_chunks().to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype=np.float64)
    values = np.array(column.to_numpy(), dtype=np.float64)
    outside = ~((values >= facts.low) & (values <= facts.high))
    if facts.kind != "number":
        outside |= values != np.rint(values)
    values[outside] = np.nan
    return values


def _ids(rows: pa.Table, person: str | None) -> tuple[ByteArray, IntArray]:
    size = rows.num_rows
    if person is None:
        return np.arange(size, dtype=np.int64).view(np.uint8), 8 * np.arange(size + 1)
    ids = rows.column(PERSON).cast(pa.large_string()).fill_null("").combine_chunks()
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64, count=size + 1, offset=8 * ids.offset)
    characters = b"\0" if data is None or data.size == 0 else data
    return np.frombuffer(characters, dtype=np.uint8).copy(), starts.copy()
