"""The mode method: posterior modes, then a mode of the multinomial. Wang & Reiter 2021, 3.2."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from countwise.adjust.count_modes import node_modes, posterior_modes, summed_observations
from countwise.adjust.tree_walk import floors_of, ranks, share_among_children
from countwise.arrays import IntArray
from countwise.tables.measurements import Measurements

Total = Literal["independent", "summed"]


@dataclass(frozen=True, kw_only=True)
class Mode:
    """Every parent's count is apportioned among its children, from the root down.

    The root's count is the posterior mode given its own noisy value (`independent`, step 3) or
    given also the sum of its noisy children (`summed`, step 3'). Ties go by the public key, or
    to the last component when there is none.
    """

    name: ClassVar[str] = "mode"
    tie_key: int | None
    total: Total = "independent"

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        hierarchy, room = measurements[0].hierarchy, floors_of(measurements[0])
        summed = self.total == "summed"
        root = (
            posterior_modes(summed_observations(measurements))
            if summed
            else node_modes(measurements, 0)
        )
        counts = [room.root(root)]
        for level in range(1, len(hierarchy.sizes)):
            values = np.maximum(room.above(level, node_modes(measurements, level)), 0)
            order = ranks(hierarchy, level, self.tie_key)
            counts.append(room.share(level, counts[-1], share_among_children, values, order))
        return tuple(counts)
