"""Folders that appear under their name only when they are complete."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countwise.errors import InputError


def refuse_existing(folder: Path, *, overwrite: bool) -> None:
    """An existing output is never touched unless the user says so."""
    if folder.exists() and not overwrite:
        raise InputError(f"{folder} exists already. To fix, choose another name or --overwrite.")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file, and a folder is to be written there.")


@contextmanager
def whole_folder(folder: Path, *, overwrite: bool) -> Iterator[Path]:
    """A hidden folder to write into, renamed to its name at the end, or removed on any failure."""
    refuse_existing(folder, overwrite=overwrite)
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield partial
        partial.chmod(0o755)
        if folder.exists():
            old = partial.with_name(partial.name + ".old")
            folder.rename(old)
            partial.rename(folder)
            shutil.rmtree(old)
        else:
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def whole_file(path: Path, text: str) -> None:
    """A text file that is there completely or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
