"""What every adjustment is."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from countwise.arrays import IntArray
from countwise.tables.measurements import Measurements


class Adjustment(Protocol):
    """Turns independent measurements of one hierarchy into counts, level by level.

    The counts are integers, none negative, and those of children add up to their parent's.
    """

    name: ClassVar[str]

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        """The adjusted count of every node."""
        ...
