"""Posterior modes of counts under log-concave noise and a flat prior on 0, 1, 2, …"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt

from countwise.arrays import FloatArray, IntArray
from countwise.privacy.laws import Exact, IntegerLaw
from countwise.privacy.measurements import Measurements

WIDEST_CONVOLUTION = 1 << 15
FLAT = 1e-12  # slopes closer to zero than this are rounding


class LogConcave(Protocol):
    """A law known by its log-ratios of neighbouring probabilities."""

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(k+1) - log P(k), falling in k."""
        ...


@dataclass(frozen=True, kw_only=True)
class SumLaw:
    """The sum of `terms` independent draws of one law, by direct convolution.

    Convolving adds positive numbers only, so every probability is right to many digits, also
    far out. A law too wide for that is so close to normal that its slopes are taken from there;
    beyond 12 standard deviations the last slope continues.
    """

    law: IntegerLaw
    terms: int

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(k+1) - log P(k)."""
        k = np.asarray(k)
        table = _sum_slopes(self.law, self.terms)
        place = np.minimum(np.where(k >= 0, k, -k - 1), len(table) - 1)
        return np.where(k >= 0, table[place], -table[place])


@lru_cache(maxsize=16)
def _sum_slopes(law: IntegerLaw, terms: int) -> FloatArray:
    """Slopes of the sum's law at 0, 1, 2, …"""
    reach = int(12 * sqrt(terms * law.variance)) + 2
    if 2 * reach > WIDEST_CONVOLUTION:
        return np.asarray(-(np.arange(reach) + 0.5) / (terms * law.variance))
    power = _power(law, terms, max(reach, int(law.isf(1e-30))))
    upper = power[len(power) // 2 :][: reach + 1]
    return np.asarray(np.diff(np.log(upper[upper > 0])))


def _power(law: IntegerLaw, terms: int, reach: int) -> FloatArray:
    """The law of the sum on -reach … reach, by doubling."""
    one = law.pmf(np.arange(-reach, reach + 1))
    if terms == 1:
        return one
    half = _power(law, terms // 2, reach)
    doubled = np.convolve(half, half, mode="same")
    return np.convolve(doubled, one, mode="same") if terms % 2 else doubled


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
    return posterior_modes([(each.noisy[level], each.laws[level]) for each in measurements])


def summed_observations(
    measurements: Sequence[Measurements],
) -> list[tuple[IntArray, LogConcave]]:
    """What is known of the total: its noisy values, and the sums of the noisy components.

    Wang & Reiter 2021, eq. (10).
    """
    observed: list[tuple[IntArray, LogConcave]] = []
    for each in measurements:
        observed.append((each.noisy[0], each.laws[0]))
        law, terms = each.laws[1], int(each.protected(1).sum())
        exact = law.variance == 0 or not terms
        total = each.noisy[1].sum(keepdims=True)
        observed.append((total, Exact() if exact else SumLaw(law=law, terms=terms)))
    return observed
