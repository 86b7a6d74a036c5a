"""Outputs that appear under their name only when they are complete."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countwise.errors import InputError

MARKS = ("release.json", "reproduction.json")  # a folder with one of these is of our making


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """An existing output is never touched unless the user says so, nor a folder of other things."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already. To fix, choose another name or --overwrite.")
    above = next((each for each in path.absolute().parents if each.exists()), path)
    if not above.is_dir():
        raise InputError(f"{path}: {above} is a file, not a folder. To fix, choose another name.")
    if path.is_dir() and any(path.iterdir()) and not any((path / m).is_file() for m in MARKS):
        raise InputError(
            f"{path} is a folder that holds other things than a release or report and is left "
            "alone. To fix, choose another name."
        )


@contextmanager
def whole(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path in a hidden folder to write a file or folder to; renamed to `path` at the end.

    On any failure, an interrupt included, the hidden folder goes and nothing else changes.
    """
    refuse_existing(path, overwrite=overwrite)
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield hidden / path.name
        if path.exists() and path.is_dir() != (hidden / path.name).is_dir():
            kind = "folder" if path.is_dir() else "file"
            raise InputError(f"{path} is a {kind} and is left alone. To fix, choose another name.")
        if path.exists():
            path.rename(hidden / f"{path.name}.old")
        (hidden / path.name).rename(path)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
