"""How functions become machine code, kept on disk.

The kept code of a function is renewed when its own file changes, not when a function that it calls
in another file does: after editing `inner` functions, remove the ``__pycache__`` of this folder.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit
from numba.core.caching import Cache

from countwise.arrays import FloatArray, IntArray

Function = TypeVar("Function", bound=Callable[..., Any])


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
        return njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:
        return njit(nogil=True, **options)(function)


def reading(array: FloatArray | IntArray, kind: type) -> Any:
    """A contiguous read-only view, so that one compiled version serves frozen arrays too."""
    view: Any = np.ascontiguousarray(array, dtype=kind).view()
    view.setflags(write=False)
    return view


def keep_in_memory() -> None:
    """From now on machine code is not written to disk: for a process that may not write."""
    Cache.save_overload = lambda *_: None  # type: ignore[method-assign]
