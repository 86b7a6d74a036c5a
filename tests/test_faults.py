"""What the command line says of faults that nobody foresaw: type and place, never their words."""

import ctypes
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable

import polars as pl
import pytest

from countwise import cli
from countwise.tables.reading import PublicCellsWarning

SECRET = "31337 people of Zq7"


def _fault() -> None:
    try:
        raise KeyError(SECRET)
    except KeyError as first:
        raise RuntimeError(SECRET) from first


def _panic() -> None:
    raise pl.exceptions.PanicException(SECRET)


def _system() -> None:
    raise OSError(SECRET)


def _no_space() -> None:
    raise OSError(28, SECRET, "out.csv")


@pytest.fixture
def ended(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[Callable[[], None]], tuple[int, str]]:
    """The exit code of a command that does something, and all that reached standard error."""

    def once(does: Callable[[], None]) -> tuple[int, str]:
        monkeypatch.setattr(cli, "app", does)
        monkeypatch.setattr(sys, "argv", ["countwise", "release"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        said = "".join(capfd.readouterr())
        assert "31337" not in said
        assert "Zq7" not in said
        return int(end.value.code or 0), said

    return once


Ended = Callable[[Callable[[], None]], tuple[int, str]]


def test_a_fault_is_told_by_its_type(ended: Ended) -> None:
    assert ended(_fault) == (
        1, "countwise: a fault of ours (RuntimeError). COUNTWISE_TRACEBACK=1 shows where.\n"
    )  # fmt: skip
    assert "a fault of ours (PanicException)" in ended(_panic)[1]


def test_a_traceback_has_places_and_no_words(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTWISE_TRACEBACK", "1")
    code, said = ended(_fault)
    assert code == 1
    lines = said.splitlines()
    assert lines[0] == "countwise: a fault of ours: RuntimeError, reached by"
    assert any(line.startswith("    countwise/cli/__init__.py:") for line in lines)
    assert lines[-2:][0].strip() == "after KeyError, reached by"
    assert lines[-1].strip().startswith("test_faults.py:")


def test_faults_of_the_system_are_told_in_its_words(ended: Ended) -> None:
    assert ended(_no_space) == (1, "countwise: No space left on device: out.csv\n")
    assert ended(_system) == (1, "countwise: OSError\n")


def test_what_libraries_print_by_themselves_is_lost(ended: Ended) -> None:
    def prints() -> None:
        os.write(2, SECRET.encode())
        ctypes.CDLL(None).perror(SECRET.encode())
        print("ours", file=sys.stderr)

    assert ended(prints) == (0, "ours\n")


def test_so_it_is_in_a_process_of_its_own() -> None:
    """Where standard error is what libraries write to as well, and is given back at the end."""
    code = """
import os, sys
from countwise import cli
def app():
    os.write(2, b"library")
    print("ours", file=sys.stderr)
cli.app, sys.argv = app, ["countwise", "release"]
try:
    cli.main()
except SystemExit:
    os.write(2, b"later")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "ours\nlater"


def test_a_process_without_standard_error_works_too() -> None:
    code = """
import os, sys
os.close(2)
from countwise import cli
cli.app, sys.argv = lambda: print("done"), ["countwise", "release"]
cli.main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"


def test_warnings_and_threads_are_told_by_type(ended: Ended) -> None:
    def fails() -> None:
        raise ValueError(SECRET)

    def warns() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            hook = warnings.showwarning
            hook(RuntimeWarning(SECRET), RuntimeWarning, "x.py", 1)
            hook(PublicCellsWarning("say so"), PublicCellsWarning, "x.py", 1)
        thread = threading.Thread(target=fails)
        thread.start()
        thread.join()

    assert ended(warns)[1].splitlines() == [
        "countwise: RuntimeWarning",
        "countwise: say so",
        "countwise: ValueError in the background.",
    ]


def test_output_is_as_before_once_a_command_ended(
    ended: Ended, capfd: pytest.CaptureFixture[str]
) -> None:
    ended(lambda: None)
    os.write(2, b"by a library")
    print("by Python", file=sys.stderr)
    sys.stderr.flush()
    assert {"by a library", "by Python"} == {
        part.strip() for part in capfd.readouterr().err.replace("by P", "\nby P").splitlines()
    }
