"""What the command line says when something fails that nobody foresaw.

Exceptions, warnings and panics of libraries quote what they stumbled over, which can be a record
or a count. Of these only the type and the place in our code are told.
"""

import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import countwise

HERE = Path(countwise.__file__).parent
TRACEBACK = "COUNTWISE_TRACEBACK"


def unforeseen(problem: BaseException) -> str:
    """A fault of ours in one line, or, if the user asks for it, with the calls that led there."""
    kind = type(problem).__name__
    if os.environ.get(TRACEBACK):
        return "\n".join([f"a fault of ours: {kind}, reached by", *_calls(problem)])
    return f"a fault of ours ({kind}). {TRACEBACK}=1 shows where."


def _calls(problem: BaseException) -> list[str]:
    """The calls that led to an exception and to those it followed from, without their words."""
    lines = [
        f"    {_short(frame.filename)}:{frame.lineno} {frame.name}"
        for frame in traceback.extract_tb(problem.__traceback__)
    ]
    before = problem.__cause__ or problem.__context__
    if before is not None:
        lines += [f"  after {type(before).__name__}, reached by", *_calls(before)]
    return lines


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(HERE.parent)) if path.is_relative_to(HERE) else path.name


@contextmanager
def only_our_words() -> Iterator[None]:
    """Standard error for what this program says; what libraries write to it by themselves is lost.

    The descriptor they write to leads nowhere, and Python's own way of telling of exceptions in
    threads, and of warnings, tells their types.
    """
    try:
        ours = os.dup(2)
    except OSError:  # there is no standard error
        with _hooks():
            yield
        return
    before = sys.stderr
    before.flush()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    if _descriptor() == 2:
        sys.stderr = os.fdopen(os.dup(ours), "w", encoding=before.encoding, errors="replace")
        sys.stderr.reconfigure(line_buffering=True)
    try:
        with _hooks():
            yield
    finally:
        sys.stderr.flush()
        os.dup2(ours, 2)
        os.close(ours)
        if sys.stderr is not before:
            sys.stderr.close()
            sys.stderr = before


def _descriptor() -> int | None:
    try:
        return sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return None


@contextmanager
def _hooks() -> Iterator[None]:
    kept = warnings.showwarning, threading.excepthook, sys.unraisablehook
    warnings.showwarning = _show_warning
    threading.excepthook = lambda found: _tell(found.exc_type)
    sys.unraisablehook = lambda found: _tell(found.exc_type)
    try:
        yield
    finally:
        warnings.showwarning, threading.excepthook, sys.unraisablehook = kept


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """Our own warnings in full, those of libraries by their type."""
    ours = category.__module__.partition(".")[0] == "countwise"
    print(f"countwise: {message if ours else category.__name__}", file=sys.stderr)


def _tell(kind: type[BaseException] | None) -> None:
    name = "an exception" if kind is None else kind.__name__
    print(f"countwise: {name} in the background.", file=sys.stderr)
