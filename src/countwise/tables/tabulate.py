"""From records of people to a confidential table, in one query of an engine.

The engine bins, bounds what each person contributes, and counts equal rows; the counts then go
to the cells of the public domain, batch by batch. Records outside the domain are refused or
counted into its declared other cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from countwise.arrays import IntArray
from countwise.errors import TableError
from countwise.tables.binning import is_missing
from countwise.tables.confidential import Confidential
from countwise.tables.contribution import bounded, fresh_key
from countwise.tables.crossed_cells import CrossedDomain
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.domain import Domain
from countwise.tables.engines import DEFAULT, READ_FILES, RecordTable, opened
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.provenance import Provenance
from countwise.tables.workload import Workload

if TYPE_CHECKING:
    import ibis.expr.types as ir

Refusal = Callable[[RecordTable, "Tabulation"], str]
"""Says why some record can not be counted, and where it is."""
Add = Callable[[IntArray, IntArray], None]
"""Takes numbers of cells, which may repeat, and the rows to be added to each."""
OUTSIDE = ("refuse", "other")
PERSON, ROWS, NAMELESS, ROW = (
    f"countwise {name}" for name in ("person", "rows", "nameless", "row")
)


@dataclass(frozen=True, kw_only=True)
class Tabulation:
    """How records become cells: the domain, what a person may contribute, and the rest.

    With a `person` column at most `rows` rows of each person are counted; without one, that no
    person has more is the steward's word. `reading` is what is said of a file of records.
    """

    domain: Domain
    person: str | None = None
    rows: int = 1
    outside: str = "refuse"
    reading: Reading = PLAIN

    def __post_init__(self) -> None:
        if self.rows < 1:
            raise TableError(f"rows a person must be a whole number of 1 or more, got {self.rows}.")
        if self.outside not in OUTSIDE:
            raise TableError(f"outside must be refuse or other, got {self.outside!r}.")
        for factor in self.domain.factors:
            if self.outside == "other" and factor.other is None:
                raise TableError(
                    f"the domain declares no other level for {', '.join(factor.columns)}. To fix, "
                    'add a line such as other = "elsewhere" there, or at the top for all columns.'
                )

    def provenance(self, dataset: str | None = None) -> Provenance:
        """What is known of cells that are counted so."""
        return Provenance(rows=None if self.person is None else self.rows, dataset=dataset)


def tabulate(records: object, tabulation: Tabulation, *, engine: str = DEFAULT) -> Confidential:
    """The confidential table of records in a file, a data frame, or a table of an engine."""
    return Confidential(*_cells(records, tabulation, engine), tabulation.provenance())


def tabulate_across(
    records: object, tabulation: Tabulation, crossing: CrossedDomain, *, engine: str = DEFAULT
) -> Confidential[Workload]:
    """The same for variables that cross; the tabulation's domain is that of the crossing."""
    workload = crossing.workload
    cells = crossing.ordered(_product(records, tabulation, engine))
    return Confidential(workload, cells, tabulation.provenance())


def write_confidential_cells(
    file: Path,
    records: object,
    tabulation: Tabulation,
    *,
    crossing: CrossedDomain | None = None,
    engine: str = DEFAULT,
    dataset: str | None = None,
) -> Hierarchy | Workload:
    """Write the TRUE count of every cell to a CSV or Parquet file only this user can read.

    The file is as confidential as the records. It is for stewards who tabulate in one place and
    release in another; `tabulate` keeps the counts in memory. A Parquet file carries the bound of a
    person's rows, and the data set of a ledger that its release must charge.
    """
    space: Hierarchy | Workload
    if crossing is None:
        space, cells = _cells(records, tabulation, engine)
        frame = space.frame(len(space.by), count=cells).drop("level")
    else:
        space = crossing.workload
        cells = crossing.ordered(_product(records, tabulation, engine))
        frame = space.frame(space.finest, count=cells).drop("level")
    file.touch(mode=0o600)
    if file.suffix.lower() == ".csv":
        frame.write_csv(file)
    else:
        frame.write_parquet(file, metadata=tabulation.provenance(dataset).to_metadata())
    return space


def _cells(records: object, tabulation: Tabulation, engine: str) -> tuple[Hierarchy, IntArray]:
    domain = tabulation.domain
    return domain.hierarchy, _product(records, tabulation, engine)[domain.order]


def _product(records: object, tabulation: Tabulation, engine: str) -> IntArray:
    """The true count of every cell, in the order of the domain's product."""
    product = np.zeros(tabulation.domain.size, dtype=np.int64)
    count_records(
        records,
        tabulation,
        engine=engine,
        key=fresh_key(),
        add=lambda cells, rows: np.add.at(product, cells, rows),
    )
    return product


def count_records(
    records: object, tabulation: Tabulation, *, engine: str, key: str, add: Add
) -> None:
    """Count records into cells, by their numbers in the product of the domain, batch by batch."""
    with opened(records, engine=engine, reading=tabulation.reading) as source:
        refusal = _count(source, tabulation, key, add)
        if refusal is not None:
            raise TableError(refusal(source, tabulation))


def _count(source: RecordTable, tabulation: Tabulation, key: str, add: Add) -> Refusal | None:
    """Add the records to their cells; what to say if one can not be counted."""
    query = grouped(source, tabulation, key=key)
    with source.batches(query) as batches:
        for batch in batches:
            found = counted_cells(batch, tabulation)
            if callable(found):
                return found
            add(*found)
    return None


def counted_cells(
    groups: pl.DataFrame, tabulation: Tabulation
) -> tuple[IntArray, IntArray] | Refusal:
    """The cells that groups of records are counted in, and the rows of each group."""
    if tabulation.person is not None and groups[NAMELESS].any():
        return _nameless
    places = _places(groups, tabulation)
    if any((each < 0).any() for each in places):
        return _outside
    cells = np.ravel_multi_index(places, tabulation.domain.shape)
    return np.asarray(cells), groups[ROWS].to_numpy()


def grouped(source: RecordTable, tabulation: Tabulation, *, key: str) -> "ir.Table":
    """The one expression: bin, bound, and count the records that agree in every key column."""
    chosen = _chosen(source, tabulation)
    keys = tabulation.domain.keys
    if tabulation.person is None:
        return chosen.group_by(keys).aggregate(chosen.count().name(ROWS))
    kept = bounded(chosen, person=PERSON, columns=keys, most=tabulation.rows, key=key)
    return kept.group_by(keys).aggregate(
        kept.count().name(ROWS), is_missing(kept[PERSON]).any().name(NAMELESS)
    )


def _chosen(source: RecordTable, tabulation: Tabulation, *others: "ir.Value") -> "ir.Table":
    """The key columns, binned, the person, and what else is asked for."""
    columns = list(others)
    for factor in tabulation.domain.factors:
        for key in factor.keys:
            column = source.column(key)
            if factor.bins is not None:
                _refuse_text(source, key)
                column = factor.bins.code(column)
            columns.append(column.name(key))
    if tabulation.person is not None:
        columns.append(source.column(tabulation.person).name(PERSON))
    return source.table.select(columns)


def _refuse_text(source: RecordTable, key: str) -> None:
    kind = source.column(key).type()
    if kind.is_numeric() or (kind.is_string() and source.engine in READ_FILES):
        return
    held = type(kind).__name__.lower()
    raise TableError(
        f"{source.name}: column {key!r} is cut into bins and holds {held}. To fix, make it a "
        "column of numbers in the records."
    )


def as_text(column: pl.Series) -> pl.Series:
    """Values as a domain spells its labels: no spaces around, whole numbers without a point."""
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        spelled = pl.select(
            pl.when(whole == column).then(whole.cast(pl.String)).otherwise(column.cast(pl.String))
        ).to_series()
        return spelled.set(column.is_nan().fill_null(value=False), None).alias(column.name)
    return column.cast(pl.String).str.strip_chars()


def _places(groups: pl.DataFrame, tabulation: Tabulation) -> tuple[IntArray, ...]:
    """For each factor the place of each group; -1 where a group must be refused."""
    found = []
    groups = groups.with_columns(as_text(groups[key]) for key in tabulation.domain.keys)
    for factor in tabulation.domain.factors:
        places = factor.places(groups)
        if tabulation.outside == "other" and factor.other is not None:
            places[places < 0] = factor.other
        found.append(places)
    return tuple(found)


def _outside(source: RecordTable, tabulation: Tabulation) -> str:
    """Says which columns, and in a file which row, lead to no cell. Costs a second pass."""
    keys, factors = tabulation.domain.keys, tabulation.domain.factors
    chosen = _chosen(source, tabulation, _row_numbers(source))
    query = chosen.group_by(keys).aggregate(chosen[ROW].min().name(ROW))
    found: list[tuple[int, str]] = []
    with source.batches(query) as batches:
        for batch in batches:
            for factor, places in zip(factors, _places(batch, tabulation), strict=True):
                rows = batch[ROW].to_numpy()[places < 0]
                columns = " and ".join(map(repr, factor.keys))
                if len(rows):
                    found.append((int(rows.min()), columns))
    row, columns = min(found)
    return (
        f"{source.where(row)}: column {columns} has no level of the domain there. To fix, correct "
        "the record, add the level, declare missing = … for empty values, or count such records "
        "into declared other levels with --outside other."
    )


def _nameless(source: RecordTable, tabulation: Tabulation) -> str:
    chosen = _chosen(source, tabulation, _row_numbers(source))
    row = chosen.filter(is_missing(chosen[PERSON]))[ROW].min().to_pyarrow().as_py()
    return (
        f"{source.where(int(row))}: the person column {tabulation.person!r} is empty. Every record "
        "must say whose it is, or the rows of a person can not be bounded."
    )


def _row_numbers(source: RecordTable) -> "ir.Value":
    import ibis

    numbers = ibis.row_number() if source.first_row is not None else ibis.literal(0, "int64")
    return numbers.name(ROW)


REFUSALS: tuple[Refusal, ...] = (_outside, _nameless)
