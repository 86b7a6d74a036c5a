"""What an unfinished run keeps: noisy counts and what follows from them, never a true count.

The folder stands beside the output as `.NAME.unfinished`, for this user alone, and goes when the
output has its name. A file in it appears whole or not at all, and never changes: of two attempts
at the same noise the first that is complete is kept.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from countwise.errors import InputError
from countwise.tables.hierarchy import Hierarchy

RUN = "run.json"
SEPARATOR = "\x1f"
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class Staging:
    """The folder of an unfinished run."""

    folder: Path

    def has(self, name: str) -> bool:
        """Whether this was completed."""
        return (self.folder / name).exists()

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> None:
        """Complete a file, unless another attempt has done so already."""
        handle, partial = mkstemp(prefix=".partial-", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())
            try:
                os.link(partial, self.folder / name)
            except FileExistsError:
                return
        finally:
            os.unlink(partial)

    def keep(self, name: str, arrays: Arrays) -> None:
        """Complete a file of arrays; whole numbers take no more room than they need."""
        small: dict[str, Any] = {key: _narrowed(array) for key, array in arrays.items()}
        self.write(name, lambda stream: np.savez(stream, **small))

    def kept(self, name: str, *wanted: str) -> Arrays:
        """Arrays of a completed file, all or those wanted, whole numbers as 64 bits again."""
        with np.load(self.folder / name) as found:
            return {key: _widened(found[key]) for key in wanted or found.files}

    def settings(self) -> dict[str, Any]:
        """What was decided when the run began."""
        text = (self.folder / RUN).read_text(encoding="utf-8")
        settings: dict[str, Any] = json.loads(text)
        return settings

    def forget(self, setting: str) -> None:
        """Take a setting out that is no longer needed."""
        settings = self.settings() | {setting: None}
        partial = self.folder / f".{RUN}"
        partial.write_text(json.dumps(settings), encoding="utf-8")
        partial.replace(self.folder / RUN)


def _narrowed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype == np.int64 and len(array):
        narrow = np.iinfo(np.int32)
        if array.min() >= narrow.min and array.max() <= narrow.max:
            return array.astype(np.int32)
    return array


def _widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(np.int64) if array.dtype == np.int32 else array


def place(output: Path) -> Path:
    """Where the run that makes an output keeps what it has."""
    return output.parent / f".{output.name}.unfinished"


@contextmanager
def opened(
    output: Path, *, identity: str, settings: Callable[[], dict[str, Any]], fresh: bool
) -> Iterator[Staging]:
    """The staging folder of a run, with what an earlier run of the same kind left.

    A run of another plan or input is refused unless it is to begin afresh. Only one process
    at a time works on an output.
    """
    folder = place(output.absolute())
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"another run is making {output} now. To fix, wait for it, or choose another name."
            ) from None
        if fresh:
            _emptied(folder)
        staging = Staging(folder=folder)
        if staging.has(RUN) and staging.settings()["identity"] != identity:
            raise InputError(
                f"{folder} has an unfinished run of another plan or input. To fix, repeat the "
                "command that was stopped to finish it, or throw its noisy counts away with "
                "--fresh."
            )
        _clean(folder)
        if not staging.has(RUN):
            text = json.dumps(settings() | {"identity": identity})
            staging.write(RUN, lambda stream: stream.write(text.encode()))
        yield staging


def discard(staging: Staging) -> None:
    """Remove a staging folder whose work is done, or was refused before any noise was drawn."""
    shutil.rmtree(staging.folder, ignore_errors=True)


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != "lock":
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _clean(folder: Path) -> None:
    """What stopped attempts left half-written."""
    for path in folder.glob(".partial-*"):
        path.unlink()


def identity_of(*words: object) -> str:
    """One text for all that makes a run the same run."""
    return hashlib.sha256(SEPARATOR.join(map(str, words)).encode()).hexdigest()


def identity_of_file(path: Path) -> str:
    """A file by its place, size and time of last change; its content is not looked at."""
    found = path.resolve().stat()
    return f"{path.resolve()} {found.st_size} {found.st_mtime_ns}"


def shape_arrays(hierarchy: Hierarchy) -> Arrays:
    """A public tree as arrays."""
    labels = json.dumps([hierarchy.by, hierarchy.labels]).encode()
    codes = {f"codes{i}": each for i, each in enumerate(hierarchy.codes)}
    offsets = {f"offsets{i}": each for i, each in enumerate(hierarchy.offsets)}
    return {"labels": np.frombuffer(labels, np.uint8), **codes, **offsets}


def shape_of(arrays: Arrays, *, depth: int | None = None) -> Hierarchy:
    """The tree of such arrays, down to a depth if not all of it is there."""
    by, labels = json.loads(arrays["labels"].tobytes())
    there = range(len(by) if depth is None else depth)
    return Hierarchy(
        by=tuple(by),
        labels=tuple(map(tuple, labels)),
        codes=tuple(arrays[f"codes{i}"] for i in there),
        offsets=tuple(arrays[f"offsets{i}"] for i in there),
    )
