"""Negative counts set to zero. Kerrigan 2019, section 2.1.1, "boundary inflated"."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.noise_width import Spread
from countwise.arrays import FloatArray


@dataclass(frozen=True)
class Clipped:
    """x ↦ max(x, 0): the nearest point of the convex set that the truth lies in.

    So it is never further from the truth than x. It adds to the total.
    """

    name: ClassVar[str] = "clipped"

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:  # noqa: ARG002
        return np.maximum(noisy, 0.0)
