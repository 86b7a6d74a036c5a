"""Names for the arrays that travel between rooms."""

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
UIntArray = npt.NDArray[np.uint64]
CodeArray = npt.NDArray[np.uint32]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

T = TypeVar("T", bound=npt.NDArray[Any])


def frozen(array: T) -> T:
    """The same array, read-only from now on."""
    array.setflags(write=False)
    return array
