"""Noisy counts as drawn: all that post-processing and inference ever see of the truth."""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.noise.laws import IntegerLaw
from countwise.tables.hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurements:
    """One signed noisy count for every node, with the law of its noise, level by level.

    Where a plan has invariants, `exact` says which nodes carry no noise at all.
    """

    hierarchy: Hierarchy
    laws: tuple[IntegerLaw, ...]
    noisy: tuple[IntArray, ...]
    exact: tuple[BoolArray, ...] | None = None

    def protected(self, level: int) -> BoolArray:
        """Which nodes of a level carry noise."""
        if self.exact is None:
            return np.ones(self.hierarchy.sizes[level], dtype=np.bool_)
        return ~self.exact[level]
