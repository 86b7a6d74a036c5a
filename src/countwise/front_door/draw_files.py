"""Files of joint draws, and the folder in which a run that was stopped goes on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

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
