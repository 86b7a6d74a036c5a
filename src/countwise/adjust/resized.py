"""Counts docked evenly until none is negative and the noisy total stands. Kerrigan 2019, 2.1.2."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.noise_width import Spread
from countwise.arrays import FloatArray


@dataclass(frozen=True)
class Resized:
    """The nearest point of {y ≥ 0, Σy = Σx}, which is max(x - τ, 0) for one τ ≥ 0.

    All zeros when the noisy total is not positive: the set is then empty or a point.
    """

    name: ClassVar[str] = "resized"

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:  # noqa: ARG002
        total = np.maximum(noisy.sum(axis=-1, keepdims=True), 0.0)
        falling = -np.sort(-noisy, axis=-1)
        # With the k largest kept, τ = (their sum - total)/k; the right k is the last whose
        # smallest count stays positive (Held, Wolfe & Crowder 1974).
        docks = (np.cumsum(falling, axis=-1) - total) / np.arange(1, noisy.shape[-1] + 1)
        kept = np.maximum((falling > docks).sum(axis=-1, keepdims=True), 1)
        dock = np.take_along_axis(docks, kept - 1, axis=-1)
        return np.asarray(np.maximum(noisy - dock, 0.0))
