"""True counts, wrapped so that they are not shown, stored or passed on by accident."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Generic, NoReturn, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from countwise.arrays import IntArray, frozen
from countwise.errors import TableError
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.provenance import UNKNOWN, Provenance

MAX_COUNT = 10**15  # sums of counts and noise stay far below 2^63, and exact in doubles below 2^53


class Space(Protocol):
    """Public cells: those of one tree, or of variables that cross each other."""

    @property
    def cells(self) -> int:
        """Number of cells."""
        ...

    def describe(self) -> Iterator[tuple[str, int]]:
        """Level names with their number of nodes."""
        ...


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Cells = TypeVar("Cells", bound=Space, default=Hierarchy)
else:
    from typing import TypeVar

    Cells = TypeVar("Cells")  # a default for it comes with Python 3.13


class Confidential(Generic[Cells]):
    """The true counts of public cells, such as those of a hierarchy.

    The cells are public and may be read by anyone. The counts leave through `reveal`, which
    only the function that adds noise may call. They are whole, none negative and none unknown:
    the noise is scaled to whole counts, and would leave a fraction of them to be read. How they
    were counted, which is public too, goes with them.
    """

    __slots__ = ("__cells", "provenance", "space")

    def __init__(self, space: Cells, cells: IntArray, provenance: Provenance = UNKNOWN) -> None:
        self.space = space
        self.provenance = provenance
        self.__cells = frozen(_checked(cells, size=space.cells))

    @property
    def hierarchy(self: "Confidential[Hierarchy]") -> Hierarchy:
        """The tree of cells."""
        if not isinstance(self.space, Hierarchy):
            raise TableError(
                "this table crosses several variables, and what it was given to takes one tree. To "
                "fix, read it with by=… alone."
            )
        return self.space

    def reveal(self) -> IntArray:
        """The true count of every cell."""
        return self.__cells

    def level(self: "Confidential[Hierarchy]", level: int) -> "Confidential[Hierarchy]":
        """The same people counted at a level of the tree, which becomes the level of cells."""
        return Confidential(
            self.hierarchy.above(level),
            self.hierarchy.sums(self.__cells)[level].copy(),
            self.provenance,
        )

    def sealed(self, key: bytes) -> bytes:
        """The counts under a key that only memory holds, to be handed from process to process."""
        nonce = os.urandom(12)
        return nonce + AESGCM(key).encrypt(nonce, self.__cells.tobytes(), None)

    @staticmethod
    def gathered(
        hierarchy: Hierarchy, parts: Sequence[bytes], key: bytes
    ) -> "Confidential[Hierarchy]":
        """The table of a hierarchy whose cells were sealed in parts, one after another."""
        opened = [AESGCM(key).decrypt(part[:12], part[12:], None) for part in parts]
        return Confidential(hierarchy, np.frombuffer(b"".join(opened), dtype=np.int64))

    def __repr__(self) -> str:
        shape = ", ".join(f"{size} {level}" for level, size in self.space.describe())
        return f"Confidential({shape})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential counts can not be pickled")

    __getstate__ = __reduce__


def _checked(cells: IntArray, *, size: int) -> IntArray:
    """One whole count a cell, from 0 to 10^15, together at most 10^15."""
    if not isinstance(cells, np.ndarray) or cells.dtype.kind not in "iu":
        raise TableError("counts must be an array of whole numbers, of an integer type.")
    if cells.shape != (size,):
        raise TableError(f"the table has {size:,} cells, and needs one count for each of them.")
    if cells.size and (int(cells.min()) < 0 or int(cells.max()) > MAX_COUNT):
        raise TableError("a count is negative or larger than 10^15. Counts are from 0 to 10^15.")
    if float(cells.sum(dtype=np.float64)) > MAX_COUNT:
        raise TableError("the counts of the table add up to more than 10^15.")
    return cells.astype(np.int64, copy=False)
