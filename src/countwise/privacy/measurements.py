"""Noisy counts as drawn: all that post-processing and inference ever see of the truth."""

from dataclasses import dataclass

from countwise.arrays import IntArray
from countwise.privacy.laws import IntegerLaw
from countwise.tables.hierarchy import Hierarchy


@dataclass(frozen=True, kw_only=True)
class Measurements:
    """One signed noisy count for every node, with the law of its noise, level by level."""

    hierarchy: Hierarchy
    laws: tuple[IntegerLaw, ...]
    noisy: tuple[IntArray, ...]
