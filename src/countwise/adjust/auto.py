"""The adjustment that suits a table, chosen from its public shape and its noise only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.learning import FEWEST_CELLS
from countwise.adjust.leastsquares import LeastSquares
from countwise.arrays import IntArray
from countwise.privacy.measurements import Measurements

MOST_VALUES = 30_000_000


def choose(measurements: Sequence[Measurements]) -> tuple[str, str]:
    """The name of the adjustment to use, and why."""
    hierarchy = measurements[0].hierarchy
    if hierarchy.cells < FEWEST_CELLS:
        return "least-squares", (
            f"{hierarchy.cells} cells are too few to learn their distribution from; it takes "
            f"{FEWEST_CELLS}"
        )
    width = 90 * float(max(each.laws[-1].scale for each in measurements))
    if hierarchy.cells * width > MOST_VALUES:
        return "least-squares", (
            f"the exact posterior of {hierarchy.cells:,} cells under this noise would take too long"
        )
    return "bayes", (
        "the cells are many enough to learn their distribution from, and its posterior means are "
        "never much worse and often far better than least squares"
    )


@dataclass(frozen=True, kw_only=True)
class Auto:
    """Empirical Bayes where the cells can teach it something in reasonable time."""

    name: ClassVar[str] = "auto"
    tie_key: int | None
    pool: str = ""

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        if choose(measurements)[0] == "bayes":
            return EmpiricalBayes(tie_key=self.tie_key, pool=self.pool)(measurements)
        return LeastSquares(tie_key=self.tie_key)(measurements)
