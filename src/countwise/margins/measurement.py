"""A noisy margin: all that anything after the boundary sees of its true counts."""

from dataclasses import dataclass

from countwise.arrays import BoolArray, IntArray
from countwise.noise.laws import IntegerLaw
from countwise.tables.workload import Margin

LEAST_VARIANCE = 1e-6  # of noise: counts are whole, so less is no error


def noise_variance(law: IntegerLaw) -> float:
    """Variance of a law, 0 of that without noise alone: of next to none it may be lost in rounding.

    Tables taken for certain have to refine each other, and those with next to no noise need not.
    """
    return max(law.variance, LEAST_VARIANCE) if law.scale else 0.0


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

    @property
    def certain(self) -> bool:
        """Whether no count carries noise: of the plan's making, and not because it is small."""
        return not self.law.scale or (self.exact is not None and bool(self.exact.all()))

    @property
    def variance(self) -> float:
        """Variance of the noise: 0 of a margin that is certain, and of no other."""
        return 0.0 if self.certain else noise_variance(self.law)
