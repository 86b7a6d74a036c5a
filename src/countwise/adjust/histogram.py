"""Estimators of a histogram from its noisy counts, and their use as adjustments."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countwise.adjust.estimators import Clipped, Estimator, Identity, Resized
from countwise.adjust.noisefirst import NoiseFirst, Segmented
from countwise.adjust.protocol import Gathered, SubtreeAdjustment
from countwise.adjust.tree_least_squares import project_down
from countwise.adjust.tree_walk import Piece, whole_tree
from countwise.arrays import FloatArray, IntArray
from countwise.errors import PlanError
from countwise.tables.measurements import Measurements

ESTIMATORS: dict[str, Estimator] = {
    each.name: each for each in (Identity(), Clipped(), Resized(), NoiseFirst(), Segmented())
}
SIGNED = "identity"  # can leave negative counts, which a release never has


@dataclass(frozen=True, kw_only=True)
class FromCells(SubtreeAdjustment):
    """An estimator as an adjustment: cells are estimated and rounded, all above are their sums.

    The noisy counts of the levels above are not used. Rounding keeps the estimated total, up to
    one half; all but `identity` end without negative counts. Where counts are exact, the
    estimates are moved to the nearest that keep them. In pieces an estimator is right only if it
    takes every cell by itself and leaves it whole, as `clipped` does.
    """

    estimator: Estimator

    @property
    def name(self) -> str:
        """That of the estimator."""
        return self.estimator.name

    def up(self, piece: Piece) -> Gathered:
        """For each node at the cut, the sum of its cells."""
        return (self._sums(piece)[piece.depth],)

    def across(
        self, measurements: Sequence[Measurements], gathered: Gathered
    ) -> tuple[IntArray, ...]:
        """Sums of what was gathered, or of the cells where these are here."""
        tree = whole_tree(measurements)
        if gathered:
            return tree.hierarchy.sums(np.asarray(gathered[0], np.int64))
        if len(measurements) > 1:
            raise PlanError(f"adjust {self.estimator.name} takes one noisy value a count.")
        if measurements[0].exact is None or self.estimator.name == SIGNED:
            return self._sums(tree)
        estimate = self._estimate(tree)
        above = [*tree.hierarchy.sums(estimate)]
        cells = [*tree.hierarchy.sums(np.ones(len(estimate)))]
        return project_down(tree, (above, cells), tie_key=None)

    def down(self, piece: Piece, counts: IntArray) -> tuple[IntArray, ...]:
        """Sums of the cells."""
        del counts
        return self._sums(piece)[piece.depth + 1 :]

    def _sums(self, piece: Piece) -> tuple[IntArray, ...]:
        return piece.hierarchy.sums(rounded(self._estimate(piece)))

    def _estimate(self, piece: Piece) -> FloatArray:
        measured = piece.measurements[0]
        estimate = self.estimator(measured.noisy[-1].astype(np.float64), law=measured.laws[-1])
        return estimate if self.estimator.name == SIGNED else np.maximum(estimate, 0.0)


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
