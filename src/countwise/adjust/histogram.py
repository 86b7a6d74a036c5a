"""Estimators of a histogram from its noisy counts, and their use as adjustments."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.estimators import Clipped, Estimator, Identity, Resized
from countwise.adjust.noisefirst import NoiseFirst, Segmented
from countwise.adjust.tree_least_squares import project_down
from countwise.adjust.tree_walk import floors_of
from countwise.arrays import FloatArray, IntArray
from countwise.errors import PlanError
from countwise.tables.measurements import Measurements

ESTIMATORS: dict[str, Estimator] = {
    each.name: each for each in (Identity(), Clipped(), Resized(), NoiseFirst(), Segmented())
}
SIGNED = "identity"  # can leave negative counts, which a release never has
RELEASABLE = tuple(name for name in ESTIMATORS if name != SIGNED)


@dataclass(frozen=True, kw_only=True)
class FromCells:
    """An estimator as an adjustment: cells are estimated and rounded, all above are their sums.

    The noisy counts of the levels above are not used. Rounding keeps the estimated total, up to
    one half; all but `identity` end without negative counts. Where counts are exact, the
    estimates are moved to the nearest that keep them.
    """

    name: ClassVar[str] = "from-cells"
    estimator: Estimator

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        if len(measurements) > 1:
            raise PlanError(f"adjust {self.estimator.name} takes one noisy value a count.")
        measured = measurements[0]
        noisy = measured.noisy[-1].astype(np.float64)
        estimate = self.estimator(noisy, law=measured.laws[-1])
        if self.estimator.name == SIGNED:
            return measured.hierarchy.sums(rounded(estimate))
        estimate = np.maximum(estimate, 0.0)
        if measured.exact is None:
            return measured.hierarchy.sums(rounded(estimate))
        above = measured.hierarchy.sums(estimate)
        cells = measured.hierarchy.sums(np.ones(len(estimate)))
        return project_down(floors_of(measured), above, cells, tie_key=None)


def rounded(values: FloatArray) -> IntArray:
    """Whole numbers within one of the values whose sum is the rounded sum of the values.

    The largest remainders are rounded up, the first among equals.
    """
    down = np.floor(values)
    missing = round(float((values - down).sum()))
    whole = down.astype(np.int64)
    order = np.argsort(down - values, kind="stable")
    whole[order[:missing]] += 1
    return whole
