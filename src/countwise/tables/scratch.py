"""A folder for what an engine can not hold in memory, which holds true rows while it is there.

It is ours alone, has a lock that its process holds, and goes at the end. What a killed process left
is removed by the next one that needs such a folder.
"""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

PREFIX, LOCK, TAKEN = "countwise-spill-", ".spill-lock", ".spill-lock-new"
"""Names that no folder of other things has: what has both and is free is removed."""


@contextmanager
def scratch() -> Iterator[str]:
    """A new folder in the folder of temporary files."""
    _remove_left()
    with TemporaryDirectory(prefix=PREFIX) as folder:
        # The lock has its name only once it is held, so nobody else finds it free before.
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        lock = os.open(Path(folder) / TAKEN, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(Path(folder) / TAKEN, Path(folder) / LOCK)
            yield folder
        finally:
            os.close(lock)


def _remove_left() -> None:
    """Remove folders of ours whose lock nobody holds."""
    for folder in Path(gettempdir()).glob(f"{PREFIX}*"):
        if _is_ours(folder) and _is_free(folder / LOCK):
            shutil.rmtree(folder, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _is_free(path: Path) -> bool:
    """Whether there is a lock and its process has gone."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
