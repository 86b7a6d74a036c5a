"""Outputs that appear under their name only when they are complete.

Until then they are in `.NAME.unfinished` beside their place: a folder that is ours alone, with a
lock that one process at a time holds. What a killed process left there is removed by the next one
that makes the same output, or, of a release in pieces, gone on with.
"""

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from countwise.errors import InputError

MARKS = ("release.json", "reproduction.json")  # a folder with one of these is of our making
LOCK, RUN, NEW, OLD = "lock", "run.json", "new", "old"


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """An existing output is never touched unless the user says so, nor a folder of other things."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already. To fix, choose another name or --overwrite.")
    above = next((parent for parent in path.absolute().parents if parent.exists()), path)
    if not above.is_dir():
        raise InputError(f"{path}: {above} is a file, not a folder. To fix, choose another name.")
    if path.is_dir() and any(path.iterdir()) and not any((path / m).is_file() for m in MARKS):
        raise InputError(
            f"{path} is a folder that holds other things than a release or report and is left "
            "alone. To fix, choose another name."
        )


def place(output: Path) -> Path:
    """Where what is made for an output is until it is complete."""
    return output.parent / f".{output.name}.unfinished"


@contextmanager
def claimed(output: Path) -> Iterator[Path]:
    """The unfinished folder of an output, with what is left in it, for this process alone.

    It stays until `discard` removes it, unless nothing was put in it.
    """
    folder = place(output.absolute())
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = _locked(folder, output)
    try:
        yield folder
    finally:
        if folder.is_dir() and [path.name for path in folder.iterdir()] == [LOCK]:
            discard(folder)
        os.close(lock)


@contextmanager
def whole(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path in the unfinished folder to write a file or folder to; renamed to `path` at the end.

    On any failure, an interrupt included, the folder goes and nothing else changes.
    """
    refuse_existing(path, overwrite=overwrite)
    with claimed(path) as folder:
        if _to_be_finished(folder):
            raise InputError(
                f"{folder} has an unfinished release. To fix, repeat the command that was stopped "
                "to finish it, or remove the folder, which throws its noisy counts away."
            )
        emptied(folder)
        try:
            with completed(folder, path) as partial:
                yield partial
        finally:
            discard(folder)


@contextmanager
def completed(folder: Path, path: Path) -> Iterator[Path]:
    """A path within a claimed folder to write to, which then gets its name."""
    made = folder / NEW / path.name
    made.parent.mkdir()
    yield made
    if path.exists() and path.is_dir() != made.is_dir():
        kind = "folder" if path.is_dir() else "file"
        raise InputError(f"{path} is a {kind} and is left alone. To fix, choose another name.")
    put_in_place(made, path, folder)


def put_in_place(made: Path, path: Path, folder: Path) -> None:
    """What is complete gets its name; what had the name goes with the unfinished folder."""
    replaced = path.exists()
    if replaced:
        path.rename(folder / OLD)
    try:
        made.rename(path)
    except OSError:
        if replaced:
            (folder / OLD).rename(path)
        raise


def _to_be_finished(folder: Path) -> bool:
    """Whether a release left something here that was paid for, or that lasts."""
    try:
        found = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    return bool(found.get("lasting", True) or found.get("purpose"))


def emptied(folder: Path) -> None:
    """Remove what is in a claimed folder, but the lock."""
    for path in folder.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def discard(folder: Path) -> None:
    """Remove a claimed folder whose work is done, or came to nothing."""
    shutil.rmtree(folder, ignore_errors=True)


def _locked(folder: Path, output: Path) -> int:
    """The lock of a folder that is ours; another process may remove both while this one waits."""
    while True:
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            _refuse_others(folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            lock = os.open(folder / LOCK, flags, 0o600)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK, follow_symlinks=False)):
                return lock
        except BlockingIOError:
            os.close(lock)
            raise InputError(
                f"another run is making {output} now. To fix, wait for it, or choose another name."
            ) from None
        except FileNotFoundError:
            pass
        os.close(lock)


def _refuse_others(folder: Path) -> None:
    """A folder that was there before is used only if nobody else could put anything in it."""
    try:
        found = os.stat(folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    wrong = ""
    if stat.S_ISLNK(found.st_mode):
        wrong = "is a link"
    elif not stat.S_ISDIR(found.st_mode):
        wrong = "is not a folder"
    elif found.st_uid != os.geteuid():
        wrong = "belongs to another user"
    elif stat.S_IMODE(found.st_mode) & 0o077:
        wrong = "can be opened by other users"
    if wrong:
        raise InputError(
            f"{folder} is where unfinished work is kept, and it {wrong}. To fix, find out who made "
            "it, remove it, and run the command again."
        )
