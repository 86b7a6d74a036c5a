"""How cells were counted: the bound of a person's rows, and the data set they were counted from.

Counts lose both, and a release needs both: its noise is scaled to the rows of a person, and its
loss is charged to the data set. So they go with the counts, in memory and in a Parquet file.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.errors import TableError
from countwise.tables.engines import PARQUET
from countwise.tables.file_faults import PARSER_FAULTS

ROWS, DATASET = "countwise rows", "countwise dataset"


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """At most so many rows of each person were counted, from this data set of a ledger.

    None where nothing was bounded, or no ledger was named.
    """

    rows: int | None = None
    dataset: str | None = None

    def to_metadata(self) -> dict[str, str]:
        """As a Parquet file carries it."""
        bound = {} if self.rows is None else {ROWS: str(self.rows)}
        return bound | ({} if self.dataset is None else {DATASET: self.dataset})


UNKNOWN = Provenance()


def provenance_of(files: Iterable[Path]) -> Provenance:
    """What the files of one table say together: the largest bound, and one data set.

    Files that were counted for different data sets, or one with and one without a bound, are
    refused: what is left out of one would be missing for all.
    """
    found = [_read(file) for file in files]
    if len({each.dataset for each in found}) > 1:
        raise TableError(
            "the files of the table were counted for different data sets of a ledger, or some for "
            "none. To fix, release each by itself, or count their records again together."
        )
    if len({each.rows is None for each in found}) > 1:
        raise TableError(
            "of some files of the table the rows of each person were bounded, and of some not. To "
            "fix, count their records again together."
        )
    bounds = [each.rows for each in found if each.rows is not None]
    return Provenance(rows=max(bounds, default=None), dataset=found[0].dataset if found else None)


def _read(file: Path) -> Provenance:
    if file.suffix.lower() not in PARQUET or not file.is_file():
        return UNKNOWN
    try:
        kept = pl.read_parquet_metadata(file)
    except (*PARSER_FAULTS, OSError):
        return UNKNOWN
    rows = kept.get(ROWS, "")
    return Provenance(rows=int(rows) if rows.isdecimal() else None, dataset=kept.get(DATASET))
