"""Files that are written: refused before any work is done, written whole, or gone on with."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.errors import InputError
from countwise.inference.crossed_draws import CrossedDraws
from countwise.inference.draws import Draws
from countwise.release.folder import (
    RUN,
    claimed,
    completed,
    discard,
    refuse_existing,
    whole,
)

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


def page_or_table(path: Path | None, *, overwrite: bool) -> None:
    """Refuse what is neither a page nor a table, and what is there already."""
    output_files({}, {"--out": (path, (*PAGES, *TABLES))}, overwrite=overwrite)


def write_page_or_table(
    page: Callable[[], str], table: Callable[[], pl.DataFrame], file: Path, *, overwrite: bool
) -> None:
    """What the ending of a name says: a page, or a table as CSV or Parquet."""
    if file.suffix.lower() in TABLES:
        write_frame(table(), file, overwrite=overwrite)
    else:
        write_text(page(), file, overwrite=overwrite)


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


ARRAYS = ".npz"
DRAWS = (ARRAYS, ".parquet", ".csv")


def write_draws(made: Draws | CrossedDraws, prior: str, file: Path, *, overwrite: bool) -> None:
    """Joint draws as the name of their file ends."""
    with whole(file, overwrite=overwrite) as partial:
        write_draws_to(partial, made, prior)


def write_draws_to(partial: Path, made: Draws | CrossedDraws, prior: str) -> None:
    """A table with a row a cell and a column a draw, or arrays with their names."""
    kind = partial.suffix.lower()
    if kind == ARRAYS:
        given = made.to_arviz()
        arrays: dict[str, Any] = {**given["posterior"], **given["coords"]}
        with partial.open("wb") as stream:
            np.savez_compressed(stream, **arrays, prior=np.array(prior))
    elif kind == ".parquet":
        made.frame().write_parquet(partial)
    else:
        made.frame().write_csv(partial)


@contextmanager
def continued(file: Path, name: str, *, overwrite: bool) -> Iterator[tuple[Path, Path]]:
    """A folder that a run of this name left or makes, and the path to write the file to.

    The folder stays when the run is stopped, and goes when the file has its name.
    """
    refuse_existing(file, overwrite=overwrite)
    with claimed(file) as folder:
        if (folder / RUN).exists():
            raise InputError(
                f"{folder} has an unfinished release. To fix, choose another name for the draws."
            )
        unfinished = folder / name
        for each in folder.iterdir():
            if each.is_dir() and each != unfinished:
                discard(each)
        unfinished.mkdir(exist_ok=True)
        with completed(folder, file) as partial:
            yield unfinished, partial
        discard(folder)
