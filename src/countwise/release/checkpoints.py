"""What an unfinished run keeps: noisy counts and what follows from them, never a true count.

The folder stands beside the output as `.NAME.unfinished`, for this user alone, and goes when the
output has its name. A file in it appears whole or not at all, and never changes: of two attempts
at the same noise the first that is complete is kept.

A run that pays for its noise has a charge, by a name that is kept here. `DRAWN` is there before the
first noise is drawn for it; until then the charge bought nothing, and the next run has it.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from countwise.errors import InputError
from countwise.release.folder import RUN, claimed, discard, emptied
from countwise.tables.hierarchy import Hierarchy

DRAWN = "drawn"
SEPARATOR = "\x1f"
Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, kw_only=True, eq=False)
class MemoryStore:
    """What is kept in memory, and goes with the process."""

    arrays: dict[str, Arrays] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether this was completed."""
        return name in self.arrays

    def keep(self, name: str, arrays: Arrays) -> None:
        """Complete it, unless another attempt has done so already."""
        self.arrays.setdefault(name, arrays)

    def kept(self, name: str, *wanted: str) -> Arrays:
        """Arrays that were completed, all or those wanted."""
        found = self.arrays[name]
        return {key: found[key] for key in wanted or found}


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
        self.remember(setting, None)

    def remember(self, setting: str, value: object) -> None:
        """Keep what was settled after the run began."""
        _write_own(self.folder / RUN, self.settings() | {setting: value})

    @property
    def drawn(self) -> bool:
        """Whether noise may have been drawn for the charge of this run."""
        return self.has(DRAWN) or any(self.folder.glob("measured-*"))

    def drawing(self) -> None:
        """From now on noise is drawn, so the charge is used up whatever comes."""
        self.write(DRAWN, lambda _: None)
        handle = os.open(self.folder, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


Store = Staging | MemoryStore


def _write_own(path: Path, fields: dict[str, Any]) -> None:
    """JSON in place of what was there, in a file that `mkstemp` made readable for us alone."""
    handle, partial = mkstemp(prefix=".partial-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(fields, stream)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(partial, path)


def _narrowed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if array.dtype == np.int64 and len(array):
        narrow = np.iinfo(np.int32)
        if array.min() >= narrow.min and array.max() <= narrow.max:
            return array.astype(np.int32)
    return array


def _widened(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return array.astype(np.int64) if array.dtype == np.int32 else array


@contextmanager
def opened(
    output: Path,
    *,
    identity: str,
    purpose: str,
    settings: Callable[[], dict[str, Any]],
    fresh: bool,
    lasting: bool = True,
) -> Iterator[Staging]:
    """The staging folder of a run, with what an earlier run of the same kind left.

    A run of another plan or input is refused unless it is to begin afresh. Of a run that drew no
    noise only the charge is kept, if it was for the same `purpose`. The noise of a run that is not
    `lasting` goes with its process, and nothing is kept of it.
    """
    with claimed(output) as folder:
        staging = Staging(folder=folder)
        kept = {} if fresh else _kept(staging, identity=identity, purpose=purpose)
        try:
            if "identity" not in kept:
                emptied(folder)
                known = {"identity": identity, "purpose": purpose, "lasting": lasting}
                _write_own(folder / RUN, settings() | kept | known)
            _clean(folder)
            yield staging
        except BaseException:
            if not lasting and (staging.drawn or not purpose):
                discard(folder)
            raise


def _kept(staging: Staging, *, identity: str, purpose: str) -> dict[str, Any]:
    """The settings of an earlier run that is gone on with, or the charge that is left of it."""
    if not staging.has(RUN):
        return {}
    found = staging.settings()
    if staging.drawn:
        if not found.get("lasting", True):
            return {}
        if found["identity"] == identity:
            return found
        raise _another(staging.folder, "throw its noisy counts away")
    if not found.get("purpose"):
        return {}
    if found["purpose"] != purpose:
        raise _another(staging.folder, "give up what was charged for it")
    return {"charge": found["charge"]}


def _another(folder: Path, instead: str) -> InputError:
    return InputError(
        f"{folder} has an unfinished run of another plan or input. To fix, repeat the command that "
        f"was stopped to finish it, or {instead} with --fresh."
    )


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
