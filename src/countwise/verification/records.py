"""Confidential rows, read through DuckDB and wrapped so that they are not shown by accident.

Reading never looks at values to decide anything: a CSV is text with commas and one header
line, and what does not fit the schema (a word in a number column, a number outside its bounds,
an unknown level) is a missing value. A row that is no row (too many or too few fields, bytes that
are not UTF-8) is left out. What no reader can undo is a quotation mark that is never closed: the
file must be written by something that quotes.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.errors import TableError
from countwise.kernels.keyed_hash import ByteArray
from countwise.tables.engines import literal
from countwise.verification.schema import Column, Schema

DATABASES = {".duckdb", ".ddb", ".db"}
PARQUET = {".parquet", ".pq"}


class Records:
    """The rows of a data set: numbers and places of levels by column, NaN where missing.

    `ids` are the bytes that name each row's person and where they start; a row whose person is
    unknown has none. The rows leave through `reveal`, which only `verify` may call.
    """

    __slots__ = ("__columns", "__data", "__offsets", "schema")

    def __init__(
        self, schema: Schema, columns: Mapping[str, FloatArray], data: ByteArray, offsets: IntArray
    ) -> None:
        self.schema = schema
        self.__columns = {name: frozen(column) for name, column in columns.items()}
        self.__data, self.__offsets = frozen(data), frozen(offsets)

    def reveal(self) -> tuple[Mapping[str, FloatArray], ByteArray, IntArray]:
        """Columns, the bytes of the person ids, and where each id starts."""
        return self.__columns, self.__data, self.__offsets

    def __repr__(self) -> str:
        return f"Records({', '.join(self.__columns)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential rows can not be pickled")


def read_records(
    path: str | Path, schema: Schema, *, columns: Iterable[str], table: str | None = None
) -> Records:
    """The named columns of a CSV or Parquet file, or of a table in a DuckDB database."""
    path = Path(path)
    if not path.is_file():
        raise TableError(f"{path}: there is no such file.")
    chosen = [schema.columns[name] for name in sorted(set(columns))]
    wanted = [each.name for each in chosen]
    if schema.person_id is not None:
        wanted = [schema.person_id, *wanted]
    try:
        with _connection(path, table) as connection:
            source, given = _source(path, table, connection)
            for name in wanted:
                if name not in given:
                    raise TableError(f"{path}: no column {name!r}, which the schema promises.")
            rows = _select(connection, source, chosen, schema.person_id)
    except (duckdb.Error, OSError, UnicodeDecodeError, csv.Error):
        raise TableError(
            f"{path}: can not be read as {_kind(path)}. To fix, check the file's format"
            f"{' and the table name' if path.suffix.lower() in DATABASES else ''}."
        ) from None
    return Records(
        schema,
        {each.name: _values(rows.column(each.name), each) for each in chosen},
        *_ids(rows, schema.person_id),
    )


def _connection(path: Path, table: str | None) -> duckdb.DuckDBPyConnection:
    if path.suffix.lower() not in DATABASES:
        return duckdb.connect()
    if table is None:
        raise TableError(f"{path} is a database. To fix, name its table with --table.")
    return duckdb.connect(str(path), read_only=True)


def _source(
    path: Path, table: str | None, connection: duckdb.DuckDBPyConnection
) -> tuple[str, list[str]]:
    """The SQL that stands for the data, and its column names."""
    suffix = path.suffix.lower()
    if suffix in DATABASES:
        source = _quoted(table or "")
    elif suffix in PARQUET:
        source = f"read_parquet({_text(literal(str(path)))})"
    else:
        with path.open("rb") as file:
            names = next(csv.reader([file.readline().decode("utf-8-sig")]), [])
        if len(set(names)) < len(names) or not all(names):
            raise TableError(f"{path}: the header must name every column once.")
        file_name = _text(literal(str(path)))
        types = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
        source = (
            f"read_csv({file_name}, auto_detect=false, header=true, delim=',', quote='\"', "
            f"escape='\"', columns={{{types}}}, parallel=false, strict_mode=false, "
            "ignore_errors=true)"
        )
        return source, names
    return source, list(connection.sql(f"SELECT * FROM {source} LIMIT 0").columns)


def _select(
    connection: duckdb.DuckDBPyConnection, source: str, columns: list[Column], person: str | None
) -> pa.Table:
    # Every name comes from the schema and is quoted; levels are matched here, in NumPy's terms.
    parts = [
        f"TRY_CAST({_quoted(each.name)} AS {'DOUBLE' if each.numeric else 'VARCHAR'}) "
        f"AS {_quoted(each.name)}"
        for each in columns
    ]
    identity = "NULL" if person is None else f"CAST({_quoted(person)} AS VARCHAR)"
    query = f"SELECT {', '.join([*parts, f'{identity} AS {_quoted(ID)}'])} FROM {source}"
    return connection.sql(query).to_arrow_table()


ID = "`person`"  # a backtick can not be in a schema's column name


def _values(column: pa.ChunkedArray, facts: Column) -> FloatArray:
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
    ids = rows.column(ID).cast(pa.large_string()).fill_null("").combine_chunks()
    _, offsets, data = ids.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64, count=size + 1, offset=8 * ids.offset)
    characters = b"\0" if data is None or data.size == 0 else data
    return np.frombuffer(characters, dtype=np.uint8).copy(), starts.copy()


def _kind(path: Path) -> str:
    suffix = path.suffix.lower()
    return "a database" if suffix in DATABASES else "Parquet" if suffix in PARQUET else "CSV"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
