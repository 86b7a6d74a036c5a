"""How functions become machine code, kept on disk.

The kept code of a function is renewed when its own file changes, not when a function that it calls
in another file does: after editing `inner` functions, remove the ``__pycache__`` of this folder.
All processes of a user share what is kept. Whoever listens (`countwise.progress`) is told when
something has to be compiled.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import Cache
from numba.core.event import Event, Listener, register

from countwise.arrays import FloatArray, IntArray
from countwise.progress import listeners

Function = TypeVar("Function", bound=Callable[..., Any])
FUNCTIONS: list[Any] = []
"""The compiled functions of the modules that are loaded."""


def compiled(function: Function) -> Function:
    """The function as machine code, kept on disk, running without the interpreter's lock."""
    return cast(Function, _kept(function))


def compiled_like_numpy(function: Function) -> Function:
    """As `compiled`, with NumPy's rule that a division by zero gives inf or nan."""
    return cast(Function, _kept(function, error_model="numpy"))


def compiled_with_fusion(function: Function) -> Function:
    """As `compiled`; a product and a sum may be rounded once."""
    return cast(Function, _kept(function, error_model="numpy", fastmath={"contract"}))


def compiled_in_lanes(function: Function) -> Function:
    """As `compiled_with_fusion`, with the terms of a sum grouped into lanes as the machine likes.

    The grouping is settled at compile time: it depends on how many terms there are, not on them.
    """
    lanes = {"contract", "reassoc", "nsz"}
    return cast(Function, _kept(function, error_model="numpy", fastmath=lanes))


def inlined(function: Function) -> Function:
    """As `compiled`, copied into its compiled callers."""
    return cast(Function, _kept(function, inline="always"))


def inner(function: Function) -> Function:
    """As `compiled`, for compiled callers only, which spares compiling a wrapper."""
    options: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, _kept(function, **options))


def _kept(function: Callable[..., Any], **options: Any) -> Any:
    """Machine code kept on disk, or, where no folder can be written to, in memory only."""
    try:
        made = njit(cache=True, nogil=True, **options)(function)
        made._cache.load_overload = partial(_load_or_renew, made._cache, made._cache.load_overload)
    except RuntimeError:
        made = njit(nogil=True, **options)(function)
    FUNCTIONS.append(made)
    return made


def _load_or_renew(cache: Any, load: Callable[..., Any], *wanted: Any) -> Any:
    """Kept code, or None where another version of countwise kept it whose types are gone."""
    try:
        return load(*wanted)
    except (AttributeError, ImportError):
        cache.flush()
        return None


def folder_of_code() -> Path | None:
    """Where the machine code of this room is kept; None where no folder can be written to."""
    kept = FUNCTIONS[0].stats.cache_path if FUNCTIONS else None
    return None if kept is None else Path(kept)


def not_kept() -> list[str]:
    """The functions of loaded modules of which no machine code is kept."""
    return [
        f"{each.__module__.rpartition('.')[2]}.{each.__name__}"
        for each in FUNCTIONS
        if each.stats.cache_path is None or not any(Path(each.stats.cache_path).glob(_file(each)))
    ]


def _file(function: Any) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__name__}-*.nbi"


class _Announcer(Listener):
    """Passes on that a function of ours is compiled; those it calls are part of it.

    The compiler's lock is held meanwhile, so this is never in two threads at once.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.telling = ExitStack()

    def on_start(self, event: Event) -> None:
        """Tell, if this is the outermost."""
        self.depth += 1
        function = event.data["dispatcher"]
        if self.depth == 1 and function.__module__.startswith("countwise."):
            for each in listeners:
                self.telling.enter_context(each(function.stats.cache_path))

    def on_end(self, event: Event) -> None:
        """Stop telling, if this was the outermost."""
        del event
        self.depth -= 1
        if not self.depth:
            self.telling.close()


cast(Any, register)("numba:compile", _Announcer())


def reading(array: FloatArray | IntArray, kind: type) -> Any:
    """A contiguous read-only view, so that one compiled version serves frozen arrays too."""
    view: Any = np.ascontiguousarray(array, dtype=kind).view()
    view.setflags(write=False)
    return view


def keep_in_memory() -> None:
    """From now on machine code is not written to disk: for a process that may not write."""
    Cache.save_overload = lambda *_: None  # type: ignore[method-assign]
