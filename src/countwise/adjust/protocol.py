"""What every adjustment is, and what it gives back."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from countwise.adjust.tree_walk import Piece
from countwise.arrays import FloatArray, IntArray
from countwise.tables.measurements import Measurements

if TYPE_CHECKING:
    from countwise.adjust.fitted_priors import Fitted
    from countwise.adjust.learning import Division

Gathered = tuple[FloatArray, ...] | tuple[IntArray, ...]


class Adjusted(NamedTuple):
    """Counts, the method that made them and why, and what it learned.

    `divisions` has the law by which each level below the root was divided, None for least
    squares; `prior` is the cells' law as a prior.
    """

    counts: tuple[IntArray, ...]
    method: str
    reason: str = ""
    divisions: "tuple[Division | None, ...]" = ()
    prior: "Fitted | None" = None


class Adjustment(ABC):
    """Turns independent measurements of one hierarchy into counts, level by level.

    The counts are integers, none negative, and those of children add up to their parent's.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for it in a plan."""

    @abstractmethod
    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        """The adjusted count of every node."""

    def adjusted(self, measurements: Sequence[Measurements]) -> Adjusted:
        """The same with the method that made them, and what there is to say of it."""
        return Adjusted(counts=self(measurements), method=self.name)


class SubtreeAdjustment(Adjustment):
    """An adjustment that never looks at all cells at once, so that a tree can be in pieces.

    What the top must know of a piece is gathered upwards, the top is adjusted, and each piece
    shares the counts of its nodes at the cut among what is below. A whole tree is a top below
    which there is nothing.
    """

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        """The adjusted count of every node of a whole tree."""
        return self.across(measurements, ())

    def up(self, piece: Piece) -> Gathered:
        """What the top must know, one number a node of the piece at the cut in each array."""
        del piece
        return ()

    @abstractmethod
    def across(
        self, measurements: Sequence[Measurements], gathered: Gathered
    ) -> tuple[IntArray, ...]:
        """The counts of the top, down to the cut, from its noisy counts and what was gathered."""

    @abstractmethod
    def down(self, piece: Piece, counts: IntArray) -> tuple[IntArray, ...]:
        """The counts of the levels below the cut, given those of the piece's nodes at it."""
