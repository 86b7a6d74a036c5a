"""Where an engine puts what memory can not hold: ours alone, and not kept for ever."""

import fcntl
import os
import stat
import tempfile
from pathlib import Path

import duckdb
import pytest

from countwise.tables.scratch import LOCK, PREFIX, scratch
from countwise.verification import row_sources


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left(temporary: Path, name: str) -> Path:
    """A folder as a killed process leaves it."""
    folder = temporary / name
    folder.mkdir(mode=0o700)
    (folder / LOCK).touch()
    (folder / "duckdb_temp_storage-0.tmp").write_text("rows")
    return folder


def test_it_is_ours_alone_and_gone_at_the_end(temporary: Path) -> None:
    with scratch() as name:
        folder = Path(name)
        assert folder.parent == temporary
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "rows").write_text("rows")
    assert list(temporary.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next(temporary: Path) -> None:
    killed = left(temporary, f"{PREFIX}killed")
    with scratch():
        assert not killed.exists()


def test_what_another_process_uses_stays(temporary: Path) -> None:
    with scratch() as first, scratch() as second:
        assert len(list(temporary.iterdir())) == len({first, second}) == 2
        assert Path(first).is_dir()
        with (Path(first) / LOCK).open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_is_not_known_to_be_left_stays(temporary: Path) -> None:
    """A folder without a lock, a file, and a link to a folder that looks like one of ours."""
    elsewhere = left(temporary, "elsewhere")
    (temporary / f"{PREFIX}new").mkdir()
    (temporary / f"{PREFIX}notes").write_text("notes")
    (temporary / f"{PREFIX}link").symlink_to(elsewhere)
    with scratch():
        pass
    kept = {"elsewhere", *(f"{PREFIX}{name}" for name in ("link", "new", "notes"))}
    assert set(os.listdir(temporary)) == kept
    assert set(os.listdir(elsewhere)) == {"duckdb_temp_storage-0.tmp", LOCK}


def test_verification_puts_no_rows_into_files(tmp_path: Path) -> None:
    """Where DuckDB would have spilled it fails instead."""
    limits = row_sources.NOTHING_SPILLED | {"memory_limit": "30MB"}
    sort = "SELECT i, hash(i) AS h FROM range(5000000) t(i) ORDER BY h"
    with duckdb.connect(str(tmp_path / "people.duckdb"), config=limits) as engine:
        with pytest.raises(duckdb.OutOfMemoryException):
            engine.sql(sort).fetchall()
        assert [path.name for path in tmp_path.iterdir()] == ["people.duckdb"]
