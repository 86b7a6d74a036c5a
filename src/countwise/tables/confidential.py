"""True counts, wrapped so that they are not shown, stored or passed on by accident."""

from typing import NoReturn

from countwise.arrays import IntArray, frozen
from countwise.tables.hierarchy import Hierarchy


class Confidential:
    """The true counts of the cells of a public hierarchy.

    The hierarchy is public and may be read by anyone. The counts leave through `reveal`, which
    only the function that adds noise may call.
    """

    __slots__ = ("__cells", "hierarchy")

    def __init__(self, hierarchy: Hierarchy, cells: IntArray) -> None:
        self.hierarchy = hierarchy
        self.__cells = frozen(cells)

    def reveal(self) -> IntArray:
        """The true count of every cell."""
        return self.__cells

    def __repr__(self) -> str:
        shape = ", ".join(f"{size} {level}" for level, size in self.hierarchy.describe())
        return f"Confidential({shape})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("confidential counts can not be pickled")
