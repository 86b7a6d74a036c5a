"""Compilation is said once, kept for other processes, and where it can not be kept that is said."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numba

TOY = """
from countwise.kernels.compilation import compiled

@compiled
def twice(x: int) -> int:
    return 2 * x

@compiled
def thrice(x: int) -> int:
    return 3 * x
"""
CALL = """
import importlib.util, sys
from countwise.cli.compiling import told
place = importlib.util.spec_from_file_location("countwise.toy", sys.argv[1])
toy = importlib.util.module_from_spec(place)
sys.modules["countwise.toy"] = toy
with told():
    exec(compile(open(sys.argv[1]).read(), "<typed>", "exec"), toy.__dict__) if sys.argv[2:] else (
        place.loader.exec_module(toy))
    assert (toy.twice(4), toy.thrice(4)) == (8, 12)
"""


def said(folder: Path, *words: str) -> str:
    """What a process writes to standard error that calls two compiled functions."""
    (folder / "toy.py").write_text(TOY) if not (folder / "toy.py").exists() else None
    done = subprocess.run(
        [sys.executable, "-c", CALL, str(folder / "toy.py"), *words],
        env=os.environ | {"NUMBA_CACHE_DIR": str(folder / "code")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_it_is_said_once_and_the_next_process_finds_what_is_kept(tmp_path: Path) -> None:
    first = said(tmp_path)
    assert first.count("compiling, once") == 1
    assert str(tmp_path / "code") in first
    assert said(tmp_path) == ""


def test_what_another_version_kept_is_renewed(tmp_path: Path) -> None:
    """An index names types, and Numba reads it before it looks whether it is out of date."""
    said(tmp_path)
    kept = list((tmp_path / "code").rglob("*.nbi"))
    assert len(kept) == 2
    for index in kept:
        gone = b"ccountwise.kernels.tilting\nNoSuchType\n."
        index.write_bytes(pickle.dumps(numba.__version__) + gone)
    assert "compiling, once" in said(tmp_path)
    assert said(tmp_path) == ""


def test_where_nothing_can_be_kept_the_variable_is_named(tmp_path: Path) -> None:
    """Code that is in no file is kept nowhere: so it is where no folder can be written to."""
    first = said(tmp_path, "typed")
    assert first.count("NUMBA_CACHE_DIR") == 1
    assert first == said(tmp_path, "typed")


def test_a_library_says_nothing(tmp_path: Path) -> None:
    code = CALL.replace("with told():", "if True:")
    (tmp_path / "toy.py").write_text(TOY)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "toy.py"), "typed"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""
