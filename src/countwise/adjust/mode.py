"""The mode method: posterior modes, then a mode of the multinomial. Wang & Reiter 2021, 3.2."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from countwise.adjust.likelihood import node_modes, posterior_modes, summed_observations
from countwise.adjust.topdown import ranks, share_among_children
from countwise.arrays import IntArray
from countwise.privacy.measurements import Measurements

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
        hierarchy = measurements[0].hierarchy
        summed = self.total == "summed"
        counts = [
            posterior_modes(summed_observations(measurements))
            if summed
            else node_modes(measurements, 0)
        ]
        for level, offsets in enumerate(hierarchy.offsets, start=1):
            values = node_modes(measurements, level)
            order = ranks(hierarchy, level, self.tie_key)
            counts.append(share_among_children(offsets, counts[-1], values, order))
        return tuple(counts)
