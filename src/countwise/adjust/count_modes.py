"""Posterior modes of counts under log-concave noise and a flat prior on 0, 1, 2, …"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from countwise.arrays import FloatArray, IntArray
from countwise.noise.noise_sums import sum_of
from countwise.tables.measurements import Measurements

FLAT = 1e-12  # slopes closer to zero than this are rounding


class LogConcave(Protocol):
    """A law known by its log-ratios of neighbouring probabilities."""

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(k+1) - log P(k), falling in k."""
        ...


def posterior_modes(observed: Sequence[tuple[IntArray, LogConcave]]) -> IntArray:
    """For each count, the mode of its posterior given several noisy values of it.

    The log-likelihood is concave, so its slope is bisected. Where a whole interval is modal its
    middle is taken; a mode below zero is zero.
    """
    values = np.stack([value for value, _ in observed])
    low, high = values.min(axis=0), values.max(axis=0)
    left = _first(observed, low, high, FLAT)
    right = _first(observed, low, high, -FLAT)
    return np.asarray(np.maximum((left + right) // 2, 0))


def _first(
    observed: Sequence[tuple[IntArray, LogConcave]], low: IntArray, high: IntArray, bound: float
) -> IntArray:
    """The smallest N in low … high from which the slope of the log-likelihood is ≤ bound."""
    low, high = low.copy(), high.copy()
    while bool((low < high).any()):
        middle = (low + high) // 2
        # N counts up when the noise value - N counts down.
        slope = sum(-law.slope(value - middle - 1) for value, law in observed)
        falling = slope <= bound
        high = np.where(falling, middle, high)
        low = np.where(falling, low, np.minimum(middle + 1, high))
    return low


def node_modes(measurements: Sequence[Measurements], level: int) -> IntArray:
    """The posterior mode of each node of a level from its own noisy values."""
    if len(measurements) == 1:
        return np.maximum(measurements[0].noisy[level], 0)
    return posterior_modes(
        [(measurement.noisy[level], measurement.laws[level]) for measurement in measurements]
    )


def summed_observations(
    measurements: Sequence[Measurements],
) -> list[tuple[IntArray, LogConcave]]:
    """What is known of the total: its noisy values, and the sums of the noisy components.

    Wang & Reiter 2021, eq. (10).
    """
    observed: list[tuple[IntArray, LogConcave]] = []
    for measurement in measurements:
        observed.append((measurement.noisy[0], measurement.laws[0]))
        law = sum_of({measurement.laws[1]: int(measurement.protected(1).sum())})
        observed.append((measurement.noisy[1].sum(keepdims=True), law))
    return observed
