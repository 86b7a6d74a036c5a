"""Files of statistical packages: Stata (`.dta`) and SPSS (`.sav`, `.zsav`, `.por`).

A code with a value label is read as its label, which is what the package shows.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from countwise.errors import TableError

STATA, SPSS = (".dta",), (".sav", ".zsav")
STATISTICAL = (*STATA, *SPSS)


def is_statistical(path: Path) -> bool:
    """Whether a file is read as one of a statistical package."""
    return path.suffix.lower() in STATISTICAL


def read_statistical(path: Path) -> pl.DataFrame:
    """The variables of a file, with value labels in place of codes where there are any."""
    try:
        import pyreadstat
    except ImportError:
        raise TableError(
            f"{path}: files of Stata and SPSS are read with pyreadstat. To fix, pip install "
            '"countwise[statistical]", or save the table as CSV.'
        ) from None
    reads = pyreadstat.read_dta if path.suffix.lower() in STATA else pyreadstat.read_sav
    try:
        columns, meta = reads(str(path), output_format="dict")
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, UnicodeDecodeError) as problem:
        raise TableError(
            f"{path}: can not be read ({type(problem).__name__}). To fix, check that the file is "
            "whole, or save it again."
        ) from None
    return pl.DataFrame(
        [_labelled(name, values, meta.variable_value_labels.get(name, {}))
         for name, values in columns.items()]
    )  # fmt: skip


def _labelled(name: str, values: Any, labels: Mapping[Any, str]) -> pl.Series:
    series = pl.Series(name, values, strict=False)
    if not labels or not series.dtype.is_numeric():
        return series
    texts = {float(str(code)): text for code, text in labels.items()}
    codes = series.cast(pl.Float64)
    spelled = pl.select(
        pl.when(codes == codes.round(0))
        .then(codes.cast(pl.Int64, strict=False).cast(pl.String))
        .otherwise(codes.cast(pl.String))
    ).to_series()
    return codes.replace_strict(texts, default=spelled, return_dtype=pl.String).alias(name)
