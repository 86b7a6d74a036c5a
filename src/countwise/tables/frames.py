"""Data frames of pandas and Polars and tables of Arrow, handed over in Python."""

from pathlib import Path
from typing import Any

import polars as pl

from countwise.errors import TableError

Table = Path | pl.DataFrame
"""A file of columns, or columns in memory."""
NAME = "data frame"
"""What messages call columns in memory."""


def as_table(given: object) -> Table:
    """A path, or the columns of a data frame or Arrow table."""
    if isinstance(given, str | Path):
        return Path(given)
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    if isinstance(given, pl.DataFrame):
        return given
    kind = f"{type(given).__module__.partition('.')[0]}.{type(given).__name__}"
    if kind in ("pandas.DataFrame", "pandas.Series"):
        return _of_pandas(given)
    if hasattr(given, "__arrow_c_stream__"):
        return pl.DataFrame(given)
    raise TableError(
        f"a table is a file, a data frame of pandas or Polars, or an Arrow table; got {kind}."
    )


def _of_pandas(given: Any) -> pl.DataFrame:
    """With the names of its index as columns, as a grouped table has its levels."""
    named = [name for name in given.index.names if name is not None]
    frame = given.reset_index(level=named) if named else given.reset_index(drop=True)
    if not hasattr(frame, "columns"):
        raise TableError("a pandas.Series needs a named index of levels. To fix, give a DataFrame.")
    return pl.DataFrame(
        {str(name): pl.Series(str(name), frame[name].to_list(), strict=False) for name in frame}
    )
