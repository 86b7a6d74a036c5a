"""Where rows come from: a CSV or Parquet file, or a table of DuckDB, SQLite or PostgreSQL.

Whatever the place, DuckDB makes numbers and words of what it gives, by the same casts: what does
not fit becomes a missing value, never an error. Databases of other makers hand out text, which any
value has. They promise no order of rows, and another person's rows could change it; so the rows of
every database are put in the order of their own values.
"""

import csv
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa

from countwise.errors import TableError
from countwise.tables.engines import literal
from countwise.verification.schema import SchemaColumn

DATABASES = {".duckdb", ".ddb", ".db", ".sqlite", ".sqlite3", ".db3"}
PARQUET = {".parquet", ".pq"}
POSTGRES = ("postgres", "postgresql")
NOTHING_SPILLED: dict[str, str | bool | int | float | list[str]] = {"temp_directory": ""}
"""Else DuckDB would put rows that memory can not hold into files beside the data."""
SQLITE_MARK = b"SQLite format 3\0"
BATCH = 50_000  # rows fetched at once from a database
BOOLEAN = 16  # PostgreSQL's number for the type
PERSON = "`person`"  # a backtick can not be in a schema's column name


class RowSource(Protocol):
    """Rows that can be read: the names of their columns, and the values of some of them."""

    columns: list[str]
    ordered: bool

    def fetch(self, columns: Sequence[SchemaColumn], person: str | None) -> pa.Table:
        """Numbers as doubles and the rest as text, nulls for what does not fit."""


@contextmanager
def opened(place: str, *, table: str | None) -> Iterator[RowSource]:
    """The rows at a file or URL; faults say where, and nothing of what is in there."""
    scheme, _, rest = place.partition("://")
    if rest and scheme in ("duckdb", "sqlite"):
        place = rest
    shown = without_password(place)
    remote = bool(rest) and scheme in POSTGRES
    if rest and not remote and scheme not in ("duckdb", "sqlite"):
        raise TableError(
            f"{shown}: engine {scheme!r} is not known here. To fix, give a file, or a URL such as "
            "postgres://user@host/database."
        )
    path = Path(place)
    if not remote and not path.is_file():
        raise TableError(f"{shown}: there is no such file.")
    database = remote or path.suffix.lower() in DATABASES
    if database and table is None:
        raise TableError(f"{shown} is a database. To fix, name its table with --table.")
    kind = "a database" if database else "Parquet" if path.suffix.lower() in PARQUET else "CSV"
    try:
        if remote:
            with _postgres(place, table or "") as source:
                yield source
        elif database and _begins(path, SQLITE_MARK):
            uri = f"{path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(uri, uri=True)) as connection:
                connection.text_factory = _decoded
                yield SqliteTable(connection, table or "")
        else:
            name = str(path) if database else ":memory:"
            with duckdb.connect(name, read_only=database, config=NOTHING_SPILLED) as engine:
                yield DuckSource(engine, path, table if database else None)
    except ImportError:
        raise TableError(
            f"{shown}: PostgreSQL needs a driver that is not installed. To fix, "
            'pip install "countwise[postgres]"'
        ) from None
    except _faults():
        raise TableError(
            f"{shown}: can not be read as {kind}. To fix, check "
            + ("the address, the user" if remote else "the file's format")
            + (" and the table name." if database else ".")
        ) from None


class DuckSource:
    """A file that DuckDB reads, or a table of one of its databases."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, path: Path, table: str | None) -> None:
        self._engine, self.ordered = engine, table is None
        if table is not None:
            self._sql = ".".join(map(_quoted, table.split(".")))
        elif path.suffix.lower() in PARQUET:
            self._sql = f"read_parquet({_text(literal(str(path)))})"
        else:
            self.columns = _header(path)
            self._sql = _csv(path, self.columns)
            return
        self.columns = list(engine.sql(f"SELECT * FROM {self._sql} LIMIT 0").columns)

    def fetch(self, columns: Sequence[SchemaColumn], person: str | None) -> pa.Table:
        """See `RowSource`."""
        return _cast(self._engine, self._sql, columns, person)


class SqliteTable:
    """A table of an SQLite database, whose columns may hold values of any type."""

    ordered = False

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection, self._sql = connection, _quoted(table)
        found = connection.execute(f"SELECT * FROM {self._sql} LIMIT 0")
        self.columns = [str(each[0]) for each in found.description]

    def fetch(self, columns: Sequence[SchemaColumn], person: str | None) -> pa.Table:
        """See `RowSource`."""
        names = _wanted(columns, person)
        listed = ", ".join(map(_quoted, names))
        cursor = self._connection.execute(f"SELECT {listed} FROM {self._sql}")
        return _cast_text(_collected(cursor, names), columns, person)


class PostgresTable:
    """A table of a PostgreSQL database, `schema.table` or `table`."""

    ordered = False

    def __init__(self, connection: Any, table: str) -> None:
        self._connection = connection
        self._sql = ".".join(map(_quoted, table.split(".")))
        found = connection.execute(f"SELECT * FROM {self._sql} LIMIT 0").description
        self.columns = [str(each.name) for each in found]
        self._booleans = {each.name for each in found if each.type_code == BOOLEAN}

    def fetch(self, columns: Sequence[SchemaColumn], person: str | None) -> pa.Table:
        """See `RowSource`."""
        names = _wanted(columns, person)
        numbers = {each.name for each in columns if each.numeric} & self._booleans
        parts = [
            f"CAST({_quoted(name)} AS {'int' if name in numbers else 'text'})" for name in names
        ]
        with self._connection.cursor("rows") as cursor:
            cursor.execute(f"SELECT {', '.join(parts)} FROM {self._sql}")
            return _cast_text(_collected(cursor, names), columns, person)


@contextmanager
def _postgres(url: str, table: str) -> Iterator[PostgresTable]:
    import psycopg

    with psycopg.connect(url, options="-c default_transaction_read_only=on") as connection:
        yield PostgresTable(connection, table)


def _faults() -> tuple[type[Exception], ...]:
    """What a reader can raise; a driver that is not installed raises nothing."""
    ours = (duckdb.Error, sqlite3.Error, OSError, ValueError, csv.Error)
    try:
        import psycopg
    except ImportError:
        return ours
    return (*ours, psycopg.Error)


def _cast(
    engine: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[SchemaColumn], person: str | None
) -> pa.Table:
    # Every name comes from the schema and is quoted; levels are matched in NumPy's terms.
    parts = [
        f"TRY_CAST({_quoted(each.name)} AS {'DOUBLE' if each.numeric else 'VARCHAR'}) "
        f"AS {_quoted(each.name)}"
        for each in columns
    ]
    identity = "NULL" if person is None else f"CAST({_quoted(person)} AS VARCHAR)"
    query = f"SELECT {', '.join([*parts, f'{identity} AS {_quoted(PERSON)}'])} FROM {sql}"
    return engine.sql(query).to_arrow_table()


def _cast_text(text: pa.Table, columns: Sequence[SchemaColumn], person: str | None) -> pa.Table:
    with duckdb.connect(config=NOTHING_SPILLED) as engine:
        engine.register("fetched", text)
        return _cast(engine, "fetched", columns, person)


def _begins(path: Path, mark: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(mark)) == mark


def _wanted(columns: Sequence[SchemaColumn], person: str | None) -> list[str]:
    return sorted({each.name for each in columns} | ({person} if person is not None else set()))


def _collected(cursor: Any, names: list[str]) -> pa.Table:
    """All rows of a query as text."""
    fields = pa.schema([(name, pa.string()) for name in names])
    parts = []
    while rows := cursor.fetchmany(BATCH):
        columns = [list(map(_written, column)) for column in zip(*rows, strict=True)]
        parts.append(pa.record_batch(columns, schema=fields))
    return pa.Table.from_batches(parts, schema=fields)


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _written(value: Any) -> str | None:
    """A value as text, numbers to their last bit; text of no known encoding as well as may be."""
    if isinstance(value, bytes):
        return _decoded(value)
    return None if value is None else str(value)


def _header(path: Path) -> list[str]:
    with path.open("rb") as file:
        names = next(csv.reader([file.readline().decode("utf-8-sig")]), [])
    if len(set(names)) < len(names) or not all(names):
        raise TableError(f"{path}: the header must name every column once.")
    return names


def _csv(path: Path, names: Sequence[str]) -> str:
    types = ", ".join(f"{_text(name)}: 'VARCHAR'" for name in names)
    return (
        f"read_csv({_text(literal(str(path)))}, auto_detect=false, header=true, delim=',', "
        f"quote='\"', escape='\"', columns={{{types}}}, parallel=false, strict_mode=false, "
        "ignore_errors=true)"
    )


def without_password(place: str) -> str:
    """A URL as it may be shown."""
    if "://" not in place:
        return place
    parts = urlsplit(place)
    user, _, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return f"{parts.scheme}://{name}{'@' if user else ''}{host}{parts.path}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
