"""Engines that count records: DuckDB in process, or any database that Ibis speaks to."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from countwise.errors import CountwiseError, TableError
from countwise.tables.dialect import PLAIN, UTF8, Reading, find_dialect
from countwise.tables.file_faults import ARROW, missing_column, parsing
from countwise.tables.files import column_names, is_text, name_of
from countwise.tables.files import opened as read
from countwise.tables.frames import NAME, as_table
from countwise.tables.scratch import scratch
from countwise.tables.spark_session import is_spark, quiet, session
from countwise.tables.statistical import STATISTICAL
from countwise.tables.workbooks import WORKBOOKS

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

DEFAULT = "duckdb://"
OTHER_NAMES = {"postgresql": "postgres"}
EXTRAS = {"postgres": "countwise[postgres]"}
READ_FILES = ("duckdb", "pyspark")
"""Engines that read files, and the text of CSV files as numbers."""
PARQUET = (".parquet", ".pq")
CSV = (".csv", ".csv.gz", ".txt", ".tsv")
READ_WHOLE = (*WORKBOOKS, *STATISTICAL, *ARROW)
"""What is read here and handed to the engine in memory."""
VIEW = "countwise_records"
BATCH = 1_000_000
OURS = ("builtins", "countwise", "numpy")
LINE = re.compile(r"Invalid Input Error: CSV Error on Line: (\d+)")
"""How DuckDB begins what it says of a row of a file: all that is taken from its words."""


@dataclass(frozen=True, kw_only=True)
class RecordTable:
    """Confidential records as an engine sees them, and where they stand.

    `first_row` is the number an editor or viewer gives the first record of a file; a table of a
    database has no such number.
    """

    table: "ir.Table"
    name: str
    engine: str
    first_row: int | None

    def where(self, row: int) -> str:
        """The place of a record, counted from 0."""
        return self.name if self.first_row is None else f"{self.name}, row {row + self.first_row}"

    @contextmanager
    def batches(self, query: "ir.Table") -> Iterator[Iterator[pl.DataFrame]]:
        """The rows of a query's result, as the engine hands them out."""
        import pyarrow as pa

        if self.engine == "duckdb":
            # Not through Ibis 12, which asks DuckDB 2 for a method that is gone.
            relation = query.get_backend().con.sql(query.compile())
            reader = pa.RecordBatchReader.from_stream(relation)
        elif self.engine == "pyspark":
            # Not through Ibis, which goes by way of Pandas and makes numbers of codes with gaps.
            reader = query.get_backend().raw_sql(query.compile()).toArrow().to_reader()
        else:
            reader = query.to_pyarrow_batches(chunk_size=BATCH)
        with reader:
            yield _collected(reader)

    def column(self, name: str) -> "ir.Column":
        """A column that must be there."""
        if name not in self.table.columns:
            raise TableError(missing_column(self.name, name, self.table.columns))
        return self.table[name]


def _collected(batches: "Iterable[pa.RecordBatch]") -> Iterator[pl.DataFrame]:
    """Small batches put together: each is joined with the domain, however small it is."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(each.num_rows for each in waiting) >= BATCH:
            yield cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches(waiting)))
            waiting = []
    if sum(each.num_rows for each in waiting):
        yield cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches(waiting)))


@contextmanager
def opened(
    records: object, *, engine: str = DEFAULT, reading: Reading = PLAIN
) -> Iterator[RecordTable]:
    """The records of a file or data frame, or of a table by its name, in an engine by its URL.

    What DuckDB can not hold in memory it writes to a folder that only this user can read and
    that is gone at the end, or after a kill at the next start.
    """
    with scratch() as folder:
        backend = connect(engine, folder=folder)
        try:
            given = as_table(records)
            with engine_faults(str(name_of(given))):
                if isinstance(given, pl.DataFrame):
                    yield _in_memory(backend, NAME, given, first_row=0)
                else:
                    yield _records(backend, str(records), reading)
        finally:
            if backend.name != "pyspark":  # other stages use the session
                backend.disconnect()


def connect(url: str, *, folder: str) -> Any:
    """The Ibis backend of a URL such as `duckdb://` or `postgres://user@host/database`."""
    import ibis

    scheme, _, rest = url.partition("://")
    scheme = OTHER_NAMES.get(scheme, scheme)
    url = f"{scheme}://{rest}"
    if is_spark(scheme):
        with quiet():
            return ibis.pyspark.connect(session(url))
    try:
        if scheme != "duckdb":
            return ibis.connect(url)
        # A database in a file is only read; opened for writing, a misspelt one would be made.
        return ibis.connect(url, temp_directory=folder, read_only=bool(rest))
    except ImportError:
        raise TableError(
            f"engine {scheme!r} needs a driver that is not installed. To fix, "
            f'pip install "{EXTRAS.get(scheme, f"ibis-framework[{scheme}]")}"'
        ) from None
    except ValueError:
        raise TableError(
            f"engine {scheme!r} is not known. To fix, give a URL such as duckdb://, "
            "duckdb:///path/to/file.duckdb, postgres://user@host/database, spark or "
            "spark://host:7077."
        ) from None
    except Exception as problem:
        raise TableError(
            f"engine {scheme!r} can not be reached: {type(problem).__name__}. To fix, check the "
            "host, the database and the user in its URL."
        ) from None


def _records(backend: Any, name: str, reading: Reading) -> RecordTable:
    path = Path(name)
    if name.lower().endswith(READ_WHOLE) or (
        backend.name == "duckdb" and _is_recoded(path, reading)
    ):
        with parsing(path, reading):
            found = read(path, reading)
            return _in_memory(backend, name, found.lazy.collect(), first_row=found.first_row)
    if name.lower().endswith((*PARQUET, *CSV)):
        if backend.name not in READ_FILES:
            raise TableError(
                f"{name}: engine {backend.name!r} counts its own tables, not files. To fix, name "
                "one of its tables, or leave --engine out."
            )
        parquet = name.lower().endswith(PARQUET)
        if not any(mark in name for mark in "*?") and not Path(name).exists():
            raise TableError(f"{name}: there is no such file.")
        source = literal(name) if Path(name).exists() and backend.name == "duckdb" else name
        if parquet:
            table, first_row = backend.read_parquet(source), 1
        else:
            table, first_row = _csv(backend, source, reading)
        return RecordTable(
            table=table,
            name=name,
            engine=backend.name,
            first_row=first_row if backend.name == "duckdb" and "*" not in name else None,
        )
    return RecordTable(table=_table(backend, name), name=name, engine=backend.name, first_row=None)


def literal(name: str) -> str:
    """The file name for DuckDB without its pattern characters meaning anything."""
    return re.sub(r"([*?\[])", r"[\1]", name)


def _table(backend: Any, name: str) -> "ir.Table":
    from ibis.common.exceptions import TableNotFound

    schema, _, table = name.rpartition(".")
    try:
        return backend.table(table, database=schema or None)
    except TableNotFound:
        raise TableError(
            f"{name}: neither a file of a kind that is read (.parquet, .csv, .xlsx and others) nor "
            f"a table of engine {backend.name!r}. To fix, check the name, or the database in "
            "--engine."
        ) from None


def _is_recoded(path: Path, reading: Reading) -> bool:
    """Whether a text file is in an encoding that the engine does not read."""
    return path.is_file() and is_text(path) and find_dialect(path, reading).encoding != UTF8


def _in_memory(backend: Any, name: str, frame: pl.DataFrame, *, first_row: int) -> RecordTable:
    """Columns in memory as a table of the engine."""
    if backend.name != "duckdb":
        raise TableError(
            f"{name}: engine {backend.name!r} does not count tables in memory or files of this "
            "kind. To fix, save the records as Parquet."
        )
    backend.con.register(VIEW, frame.to_arrow())  # Ibis 12 asks DuckDB 2 for words that are gone
    return RecordTable(
        table=backend.table(VIEW), name=name, engine=backend.name, first_row=first_row
    )


def _csv(backend: Any, name: str, reading: Reading) -> tuple["ir.Table", int]:
    """Every column as text, so that codes such as 007 keep their zeros, and its first row.

    Nothing about the rows is guessed: a guess can take a row for the header and drop others.
    """
    first = Path(min(glob(name), default=name))
    dialect = find_dialect(first, reading) if first.is_file() else None
    separator, skip = (",", 0) if dialect is None else (dialect.separator, dialect.skip)
    if backend.name == "pyspark":
        return backend.read_csv(name, header=True, inferSchema=False, sep=separator), skip + 2
    table = backend.read_csv(
        name,
        columns=dict.fromkeys(column_names(first, reading), "VARCHAR"),
        auto_detect=False,
        header=True,
        delim=separator,
        skip=skip,
        quote='"',
        escape='"',
    )
    return table, skip + 2


@contextmanager
def engine_faults(name: str) -> Iterator[None]:
    """Faults an engine reports, as ours. Its own text quotes records and is never shown."""
    try:
        yield
    except (Exception, pl.exceptions.PanicException) as problem:
        kind = type(problem)
        if kind.__module__.partition(".")[0] in OURS:
            raise
        if "No space left" in str(problem):
            raise CountwiseError(f"{name}: no space left on the disk to count records.") from None
        row = LINE.fullmatch(str(problem).partition("\n")[0])
        where = name if row is None else f"{name}, row {row[1]}"
        raise TableError(
            f"{where}: the engine can not count these records ({kind.__name__}). To fix, check "
            "that the file is whole, its quotation marks, and the types of the columns asked for."
        ) from None
