"""The mode method: posterior modes, then a mode of the multinomial. Wang & Reiter 2021, 3.2."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from countwise.adjust.count_modes import node_modes, posterior_modes, summed_observations
from countwise.adjust.protocol import Gathered, SubtreeAdjustment
from countwise.adjust.tree_walk import Piece, share_among_children, whole_tree
from countwise.arrays import IntArray
from countwise.tables.measurements import Measurements

Total = Literal["independent", "summed"]


@dataclass(frozen=True, kw_only=True)
class Mode(SubtreeAdjustment):
    """Every parent's count is apportioned among its children, from the root down.

    The root's count is the posterior mode given its own noisy value (`independent`, step 3) or
    given also the sum of its noisy children (`summed`, step 3'). Ties go by the public key, or
    to the last component when there is none.
    """

    name: ClassVar[str] = "mode"
    tie_key: int | None
    total: Total = "independent"

    def across(
        self, measurements: Sequence[Measurements], gathered: Gathered
    ) -> tuple[IntArray, ...]:
        """The root by itself, and what is below it; of pieces nothing is asked."""
        del gathered
        tree, summed = whole_tree(measurements), self.total == "summed"
        root = tree.room.root(
            posterior_modes(summed_observations(measurements))
            if summed
            else node_modes(measurements, 0)
        )
        return (root, *self.down(tree, root))

    def down(self, piece: Piece, counts: IntArray) -> tuple[IntArray, ...]:
        """Every count apportioned among the children."""
        found, room = [counts], piece.room
        for level in piece.below:
            values = np.maximum(room.above(level, node_modes(piece.measurements, level)), 0)
            order = piece.ranks(level, self.tie_key)
            found.append(room.share(level, found[-1], share_among_children, values, order))
        return tuple(found[1:])
