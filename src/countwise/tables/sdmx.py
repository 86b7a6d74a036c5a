"""SDMX-CSV: one row an observation, one column a dimension, the count in OBS_VALUE.

Both versions are read: 1.0 begins with the column DATAFLOW, 2.0 with STRUCTURE, STRUCTURE_ID
and ACTION. Version 2.0 is written. Names that come with their label, as in `SEX: Sex` or
`F: Female`, are read by the part before the colon.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from countwise.errors import TableError
from countwise.tables.dialect import PLAIN, Reading
from countwise.tables.files import column_names, load, name_of, without_blank
from countwise.tables.frames import Table
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.table_file import TableFile
from countwise.tables.workload import Workload

TOTAL = "_T"
"""The code of a total in SDMX's shared code lists."""
VALUE = "OBS_VALUE"
IDENTIFIER = re.compile(r"[A-Za-z0-9_@$-]+")
DATAFLOW = re.compile(r"[A-Za-z][\w.-]*:[\w@$-]+\(\d+(\.\d+)+\)")
LABELLED = r"^[A-Za-z0-9_@$-]+\s*:\s"


def load_sdmx(table: Table, by: Sequence[str], count: str, reading: Reading = PLAIN) -> TableFile:
    """The dimensions `by` and the observations of an SDMX-CSV file, as `count`."""
    names = {name.partition(":")[0].strip(): name for name in column_names(table, reading)}
    if not {"DATAFLOW", "STRUCTURE"} & set(names):
        raise TableError(
            f"{name_of(table)}: not SDMX-CSV, which begins with a column DATAFLOW (version 1.0) or "
            "STRUCTURE (2.0). To fix, use --layout long."
        )
    value = VALUE if VALUE in names else count
    extra = [value, *(["ACTION"] if "ACTION" in names else [])]
    levels, others = [names.get(name, name) for name in by], [names.get(e, e) for e in extra]
    source = without_blank(load(table, levels, others, reading=reading))
    frame = source.frame.rename({names[name]: name for name in (*by, *extra)})
    if any(":" in names[name] for name in by):
        frame = frame.with_columns(
            pl.when(pl.col(by).str.contains(LABELLED))
            .then(pl.col(by).str.extract(r"^([^:]*?)\s*:", 1))
            .otherwise(pl.col(by))
        )
    if "ACTION" in frame.columns:
        _refuse_deletions(source, frame["ACTION"])
    return replace(source, frame=frame.select(*by, pl.col(value).alias(count)))


def _refuse_deletions(source: TableFile, action: pl.Series) -> None:
    deletes = (action == "D").fill_null(value=False)
    if deletes.any():
        raise TableError(
            f"{source.where(int(deletes.arg_max() or 0))}: ACTION is D (delete). To fix, give a "
            "message of observations to count, not of changes."
        )


def sdmx(cells: Hierarchy | Workload, table: pl.DataFrame, *, dataflow: str) -> pl.DataFrame:
    """Counts of every node as SDMX-CSV 2.0; a level below a node holds the total code.

    `table` has the level columns, empty below a node's level, and `count`. `dataflow` is the
    identity of the flow, as in `AGENCY:FLOW(1.0)`.
    """
    if not DATAFLOW.fullmatch(dataflow):
        raise TableError(
            f"dataflow must read AGENCY:FLOW(1.0), the identity of an SDMX dataflow; got "
            f"{dataflow!r}."
        )
    known = cells.labels if isinstance(cells, Hierarchy) else cells.level_labels
    for name, labels in zip(cells.by, known, strict=True):
        _refuse_no_identifier((name,), what="level column")
        _refuse_no_identifier(labels, what=f"label of level {name!r}")
        if TOTAL in labels:
            raise TableError(f"level {name!r} has a label {TOTAL!r}, SDMX's code of totals.")
    return table.select(
        pl.lit("dataflow").alias("STRUCTURE"),
        pl.lit(dataflow).alias("STRUCTURE_ID"),
        pl.lit("I").alias("ACTION"),
        *(pl.col(name).cast(pl.String).fill_null(TOTAL) for name in cells.by),
        pl.col("count").alias(VALUE),
    )


def _refuse_no_identifier(names: Sequence[str], *, what: str) -> None:
    for name in names:
        if not IDENTIFIER.fullmatch(name):
            raise TableError(
                f"{what} {name!r} can not be an SDMX code, which has letters, digits, _, @, $ "
                "and - only. To fix, release the table with codes, or choose another layout."
            )
