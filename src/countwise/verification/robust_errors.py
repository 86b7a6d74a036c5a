"""Standard errors that hold where residuals vary with the columns, or depend within a person.

Of a contrast c with u = (X'WX)⁻¹c, every row adds x·u times its residual. HC1 is n/(n - k) times
the sum of their squares (MacKinnon and White, 1985). Clustered by person, the rows of a person are
added up first and squared then; the factor is G/(G - 1)·(n - 1)/(n - k) for G persons (Liang and
Zeger, 1986). Sums go row by row in the order of the rows, so that every number of a partition is a
function of that partition's rows alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.exponentials import exponentials

if TYPE_CHECKING:
    from countwise.verification.fits import Fits


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedRows:
    """What was fitted: the design, the response, and for each row its group and its person."""

    x: FloatArray
    y: FloatArray
    groups: IntArray
    persons: IntArray

    def standard_error(self, fits: "Fits", contrast: FloatArray, *, clustered: bool) -> FloatArray:
        """The robust standard error of a contrast in every group."""
        count, k = fits.estimates.shape
        kept = np.flatnonzero(self.groups >= 0)
        groups = self.groups[kept]
        with np.errstate(all="ignore"):
            weights = fits.solved(contrast)
            scores = self._along(weights, fits, kept) * self._residuals(fits, kept)
            rows = fits.rows.astype(np.float64)
            if clustered:
                scores, groups = _added_up(scores, groups, self.persons[kept])
                many = np.bincount(groups, minlength=count)
                factor = many / (many - 1.0) * (rows - 1.0) / (rows - k)
            else:
                factor = rows / (rows - k)
            squares = np.bincount(groups, weights=scores * scores, minlength=count)
            return np.asarray(np.sqrt(squares * factor))

    def _along(self, weights: FloatArray, fits: "Fits", kept: IntArray) -> FloatArray:
        """For each row, its columns from the group's origin, weighted and added up."""
        groups = self.groups[kept]
        total = np.zeros(len(kept))
        for j in range(self.x.shape[1]):
            column = self.x[kept, j] - fits.origins[groups, j]
            total = total + weights[groups, j] * column
        return total

    def _residuals(self, fits: "Fits", kept: IntArray) -> FloatArray:
        linear = self._along(fits.estimates, fits, kept)
        if fits.family == "ols":
            return self.y[kept] - linear
        mean = np.ascontiguousarray(-linear if fits.family == "logistic" else linear)
        exponentials(mean, len(mean))
        return self.y[kept] - (1.0 / (1.0 + mean) if fits.family == "logistic" else mean)


def _added_up(
    scores: FloatArray, groups: IntArray, persons: IntArray
) -> tuple[FloatArray, IntArray]:
    """The scores of every person, and the group they are in: all their rows are in one."""
    known, places = np.unique(persons, return_inverse=True)
    group = np.zeros(len(known), dtype=np.int64)
    group[places] = groups
    sums = np.bincount(places, weights=scores, minlength=len(known))
    return np.asarray(sums, dtype=np.float64), group
