"""Estimators of a histogram from its noisy counts: what they are, and the three simplest."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import numpy as np

from countwise.arrays import FloatArray


class Spread(Protocol):
    """A noise law, as far as its size goes. `scale` is sensitivity/ε for the laws of counts."""

    @property
    def scale(self) -> Fraction:
        """The unit of spread."""
        ...

    @property
    def variance(self) -> float:
        """E Z²."""
        ...


class Estimator(Protocol):
    """Estimates a vector of counts from the same vector with noise; the answer may be real.

    Works along the last axis, so a matrix of draws is estimated in one call.
    """

    @property
    def name(self) -> str:
        """The word for it on the command line."""
        ...

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:
        """The estimate."""
        ...


@dataclass(frozen=True)
class Identity:
    """x ↦ x. Unbiased; its expected squared error is the noise variance times the bins.

    Kerrigan 2019, section 3.1.
    """

    name: ClassVar[str] = "identity"

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:  # noqa: ARG002
        return noisy


@dataclass(frozen=True)
class Clipped:
    """x ↦ max(x, 0): the nearest point of the convex set that the truth lies in.

    So it is never further from the truth than x. It adds to the total. Kerrigan 2019,
    section 2.1.1, "boundary inflated".
    """

    name: ClassVar[str] = "clipped"

    def __call__(self, noisy: FloatArray, *, law: Spread) -> FloatArray:  # noqa: ARG002
        return np.maximum(noisy, 0.0)


@dataclass(frozen=True)
class Resized:
    """The nearest point of {y ≥ 0, Σy = Σx}, which is max(x - τ, 0) for one τ ≥ 0.

    All zeros when the noisy total is not positive: the set is then empty or a point.
    Kerrigan 2019, section 2.1.2.
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
