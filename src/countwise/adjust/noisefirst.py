"""Runs of bins replaced by their means: NoiseFirst (Xu et al. 2012) and a variant that merges more.

Xu et al. choose the number of runs k that minimises SSE(Ĥ_k, x) - (2n - 4k)/ε², an unbiased
estimate of the risk of k runs fixed in advance. The constant n drops out, so every run costs
4/ε². Two readings of that constant are offered, equal for Laplace noise of scale 1/ε:

- `variance`: 4/ε² is twice the variance 2/ε² of the noise, so a run costs twice the variance of
  whatever noise there is. This is what the derivation needs, and the default.
- `published`: 4/ε² as printed, with 1/ε the scale of the noise. For geometric noise it is larger
  than twice the variance.

(Kerrigan 2019, section 2.1.3, prints the criterion with the true H in place of x; the derivation
in 3.2.1 has x, which is the only thing that can be computed.)

The runs are chosen on the same numbers, and that makes the estimate of the risk too kind to many
runs: on a flat histogram every seventh bin starts one. `segmented` charges 2·log n times the
variance for a run, as an information criterion would, with n no less than 8 so that a few bins
are not merged less readily than by NoiseFirst.
"""

from dataclasses import dataclass
from math import log
from typing import ClassVar, Literal

import numpy as np

from countwise.adjust.estimators import Spread
from countwise.arrays import FloatArray
from countwise.kernels.segmentation import segmented_rows

Reading = Literal["variance", "published"]


@dataclass(frozen=True)
class NoiseFirst:
    """The runs that minimise SSE + penalty·runs, each replaced by its mean. Keeps the total.

    The order of the bins matters: neighbours are merged.
    """

    name: ClassVar[str] = "noisefirst"
    reading: Reading = "variance"

    def penalty(self, law: Spread, bins: int) -> float:  # noqa: ARG002
        """The price of a run."""
        if self.reading == "published":
            return 4 * float(law.scale) ** 2
        return 2 * law.variance

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:
        return merged(noisy, self.penalty(law, noisy.shape[-1]))


@dataclass(frozen=True)
class Segmented:
    """NoiseFirst with a price for a run that grows with the number of bins."""

    name: ClassVar[str] = "segmented"

    def penalty(self, law: Spread, bins: int) -> float:
        """The price of a run."""
        return 2 * log(max(bins, 8)) * law.variance

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:
        return merged(noisy, self.penalty(law, noisy.shape[-1]))


def merged(noisy: FloatArray, penalty: float) -> FloatArray:
    """The means of the best runs of every row."""
    bins = noisy.shape[-1]
    if bins == 2:
        return _merged_pairs(noisy, penalty)
    rows = np.ascontiguousarray(noisy, dtype=np.float64).reshape(-1, bins)
    return np.asarray(segmented_rows(rows, penalty).reshape(noisy.shape))


def _merged_pairs(noisy: FloatArray, penalty: float) -> FloatArray:
    """Two bins are one run when ½(x₁-x₂)² ≤ penalty. Kerrigan 2019, eq. (3.6)."""
    near = (noisy[..., :1] - noisy[..., 1:]) ** 2 <= 2 * penalty
    return np.where(near, noisy.mean(axis=-1, keepdims=True), noisy)
