"""Files that a command or function writes: refused before any work is done, and written whole."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from countwise.errors import InputError
from countwise.release.folder import refuse_existing, whole

TABLES = (".csv", ".parquet")
PAGES = (".html", ".htm")


def output_files(
    tables: Mapping[str, Path | None],
    others: Mapping[str, tuple[Path | None, tuple[str, ...]]] | None = None,
    *,
    data_set: bool = False,
    overwrite: bool,
) -> list[Path]:
    """What is to be written, by the option that names it; a data set is a folder.

    `tables` end in .csv or .parquet, and the others as they say.
    """
    usual: tuple[str, ...] = () if data_set else TABLES
    asked = [(name, path, usual) for name, path in tables.items()]
    asked += [(name, path, endings) for name, (path, endings) in (others or {}).items()]
    for name, path, endings in asked:
        if path is not None and endings and path.suffix.lower() not in endings:
            raise InputError(f"{name} {path} must end in {' or '.join(endings)}.")
    given = [path for _, path, _ in asked if path is not None]
    for path in given:
        refuse_existing(path, overwrite=overwrite)
    return given


def write_frame(frame: pl.DataFrame, file: Path, *, overwrite: bool) -> None:
    """A table as CSV or Parquet, as its name ends."""
    with whole(file, overwrite=overwrite) as partial:
        if file.suffix.lower() == ".parquet":
            frame.write_parquet(partial)
        else:
            frame.write_csv(partial)


def write_text(text: str, file: Path, *, overwrite: bool) -> None:
    """A page, or other text."""
    with whole(file, overwrite=overwrite) as partial:
        partial.write_text(text, encoding="utf-8")
