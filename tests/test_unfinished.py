"""Where unfinished work is kept: one hidden name, ours alone, locked, and not kept for ever."""

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.errors import InputError
from countwise.release.folder import LOCK, RUN, claimed, discard, place, whole

SHAPE = (60, 60, 40)
BY = ("state", "county", "kind")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def write_words(path: Path, words: str = "words") -> None:
    with whole(path, overwrite=True) as partial:
        partial.write_text(words)


def test_it_is_ours_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with whole(tmp_path / "x.txt", overwrite=False) as partial:
            partial.write_text("words")
            folder = place(tmp_path / "x.txt")
            assert partial.is_relative_to(folder)
            assert (mode(folder), mode(folder / LOCK)) == (0o700, 0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "x.txt").read_text() == "words"
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("kind", ["mode 777", "mode 750", "a link", "a file", "another's"])
def test_what_is_not_ours_alone_is_refused(tmp_path: Path, kind: str) -> None:
    folder, elsewhere = place(tmp_path / "x.txt"), tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if kind.startswith("mode"):
        folder.mkdir()
        folder.chmod(int(kind.split()[1], 8))
    elif kind == "a link":
        folder.symlink_to(elsewhere)
    elif kind == "a file":
        folder.write_text("")
    else:
        if os.geteuid() != 0:
            pytest.skip("only root can give a folder away")
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
    with pytest.raises(InputError, match="where unfinished work is kept, and it "):
        write_words(tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()
    assert list(elsewhere.iterdir()) == []


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    folder, victim = place(tmp_path / "x.txt"), tmp_path / "victim"
    folder.mkdir(mode=0o700)
    (folder / LOCK).symlink_to(victim)
    with pytest.raises(OSError, match="symbolic links"):
        write_words(tmp_path / "x.txt")
    assert not victim.exists()


def test_one_process_at_a_time_makes_an_output(tmp_path: Path) -> None:
    with claimed(tmp_path / "x.txt"), pytest.raises(InputError, match="another run is making"):
        write_words(tmp_path / "x.txt")
    write_words(tmp_path / "x.txt")


def test_a_lock_of_a_folder_that_was_removed_meanwhile_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking, the process before may discard all: then there is a new one."""
    output, real, times = tmp_path / "x.txt", fcntl.flock, []

    def slow(lock: int, how: int) -> None:
        times.append(lock)
        if len(times) == 1:
            discard(place(output))
        real(lock, how)

    monkeypatch.setattr(fcntl, "flock", slow)
    with claimed(output) as folder:
        assert (folder / LOCK).exists()
        assert len(times) == 2


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    folder = place(tmp_path / "x.txt")
    (folder / "new").mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "new" / "x.txt").write_text("half")
    (folder / "old").mkdir()
    (folder / "link").symlink_to(tmp_path)
    write_words(tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == "words"
    assert hidden(tmp_path) == []


def test_what_had_the_name_keeps_it_if_the_new_can_not_have_it(tmp_path: Path) -> None:
    write_words(tmp_path / "x.txt", "before")
    with pytest.raises(FileNotFoundError), whole(tmp_path / "x.txt", overwrite=True) as partial:
        assert not partial.exists()  # and nothing is written
    assert (tmp_path / "x.txt").read_text() == "before"
    assert hidden(tmp_path) == []


@pytest.mark.parametrize(("left", "kept"), [({"lasting": True}, True), ({"lasting": False}, False)])
def test_a_release_to_be_finished_is_not_thrown_away(
    tmp_path: Path, left: dict[str, object], kept: bool
) -> None:
    folder = place(tmp_path / "x.txt")
    folder.mkdir(mode=0o700)
    (folder / RUN).write_text(json.dumps(left | {"purpose": ""}))
    if kept:
        with pytest.raises(InputError, match="has an unfinished release"):
            write_words(tmp_path / "x.txt")
        assert (folder / RUN).exists()
    else:
        write_words(tmp_path / "x.txt")
        assert hidden(tmp_path) == []


def cells(folder: Path) -> None:
    """A table that takes a while to write."""
    grids = np.indices(SHAPE).reshape(len(SHAPE), -1)
    columns = {name: [f"{name} {i}" for i in grid] for name, grid in zip(BY, grids, strict=True)}
    rng = np.random.default_rng(1)
    counts = rng.negative_binomial(1, 0.05, grids.shape[1])
    pl.DataFrame(columns | {"count": counts}).write_parquet(folder / "cells.parquet")


def people(folder: Path) -> None:
    """Records of the same, and their domain."""
    rng = np.random.default_rng(2)
    columns = {
        name: [f"{name} {i}" for i in rng.integers(0, size, 20_000)]
        for name, size in zip(BY, SHAPE, strict=True)
    }
    pl.DataFrame(columns).write_parquet(folder / "people.parquet")
    (folder / "domain.toml").write_text(
        "".join(
            f"[columns.{name}]\nlevels = {[f'{name} {i}' for i in range(size)]}\n"
            for name, size in zip(BY, SHAPE, strict=True)
        )
    )


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "countwise", *words]


def kill_while(arguments: list[str], folder: Path, output: str, sign: str) -> Path:
    """Start a command and kill it as soon as it has begun to write this; what it left."""
    process = subprocess.Popen(
        arguments, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    left, end = place(folder / output), time.monotonic() + 200
    while not (left / sign).exists():
        assert process.poll() is None, "the run was over before it could be stopped"
        assert time.monotonic() < end
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / output).exists()
    return left


def test_a_killed_release_in_memory_leaves_nothing_after_the_next(tmp_path: Path) -> None:
    """Noisy counts are left by kill -9, for us alone, and go with the next run."""
    cells(tmp_path)
    arguments = command(
        "release", "cells.parquet", "--by", ",".join(BY), "--cells-are-public", "--epsilon", "1",
        "--adjust", "clipped", "--out", "rel",
    )  # fmt: skip
    left = kill_while(arguments, tmp_path, "rel", "new/rel/counts.parquet")
    assert mode(left) == 0o700
    assert mode(left / RUN) == 0o600
    assert hidden(tmp_path) == [left.name]
    subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True)
    assert hidden(tmp_path) == []
    assert cw.read_release(tmp_path / "rel").hierarchy.cells == np.prod(SHAPE)


def test_a_killed_tabulation_leaves_no_true_counts_after_the_next(tmp_path: Path) -> None:
    people(tmp_path)
    arguments = command(
        "tabulate", "people.parquet", "--by", ",".join(BY), "--domain", "domain.toml",
        "--out", "cells.csv",
    )  # fmt: skip
    left = kill_while(arguments, tmp_path, "cells.csv", "new/cells.csv")
    assert (mode(left), mode(left / "new" / "cells.csv")) == (0o700, 0o600)
    subprocess.run(arguments, cwd=tmp_path, check=True, capture_output=True)
    assert hidden(tmp_path) == []
    assert mode(tmp_path / "cells.csv") == 0o600
    assert pl.read_csv(tmp_path / "cells.csv")["count"].sum() == 20_000
