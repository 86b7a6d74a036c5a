"""A noisy margin: all that anything after the boundary sees of its true counts."""

from dataclasses import dataclass

from countwise.arrays import BoolArray, IntArray
from countwise.noise.laws import IntegerLaw
from countwise.tables.workload import Margin


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """One signed noisy count for every node of a margin, each with fresh noise of one law.

    The counts have one axis a variable, of length 1 where people are counted together. `exact` says
    which of them carry no noise; None where all do.
    """

    margin: Margin
    law: IntegerLaw
    noisy: IntArray
    exact: BoolArray | None = None
