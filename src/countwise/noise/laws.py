"""Noise laws on the integers, and the Laplace law they descend from.

A law is frozen data with a rational scale. It answers in floating point (`pmf`, `cdf`,
`isf`, `variance`) for planning and inference, and in balls (`cdf_ball`) for the exact
sampler, which must not trust floating point.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import exp, expm1, isqrt, log, log1p
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from flint import arb, ctx, fmpq

from countwise.arrays import FloatArray, IntArray
from countwise.errors import PlanError

MAX_SCALE = 2**40  # keeps every noisy count far inside 64 bits


def ball(value: Fraction) -> arb:
    """The enclosure of a rational at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


@dataclass(frozen=True, kw_only=True)
class IntegerLaw:
    """A symmetric law on the integers; `scale` is its unit of spread."""

    name: ClassVar[str]
    memoryless: ClassVar[bool]
    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= MAX_SCALE:
            raise PlanError(
                f"the noise scale must be positive and at most 2^40, got {float(self.scale):g}. "
                "To fix, choose a larger epsilon."
            )

    def logpmf(self, k: npt.ArrayLike) -> FloatArray:
        """log P(Z = k)."""
        raise NotImplementedError

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(Z = k+1) - log P(Z = k), falling in k: the laws are log-concave."""
        raise NotImplementedError

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z > k)."""
        raise NotImplementedError

    def isf(self, q: npt.ArrayLike) -> IntArray:
        """The smallest k with P(Z > k) ≤ q, for 0 < q < 1."""
        raise NotImplementedError

    def cdf_ball(self, k: int) -> arb:
        """An enclosure of P(Z ≤ k) at the working precision."""
        raise NotImplementedError

    @property
    def variance(self) -> float:
        """E Z²."""
        raise NotImplementedError

    def pmf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z = k)."""
        return np.asarray(np.exp(self.logpmf(k)))

    def cdf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z ≤ k), by symmetry P(Z > -k-1)."""
        return self.sf(-np.asarray(k) - 1)

    def quantile(self, p: npt.ArrayLike) -> IntArray:
        """The smallest k with P(Z ≤ k) ≥ p."""
        p = np.asarray(p, dtype=np.float64)
        mirrored = self.isf(p)
        return np.asarray(np.where(self.sf(mirrored) == p, -mirrored - 1, -mirrored))

    def margin(self, confidence: float) -> int:
        """The smallest w with P(|Z| ≤ w) ≥ confidence."""
        return max(int(self.isf((1 - confidence) / 2)), 0)


@dataclass(frozen=True, kw_only=True)
class Geometric(IntegerLaw):
    """P(Z = k) = (1-α)/(1+α)·α^|k| with α = exp(-1/scale).

    Ghosh, Roughgarden & Sundararajan 2009; Wang & Reiter 2021, eq. (2).

    >>> law = Geometric(scale=Fraction(2))
    >>> law.pmf([0, 1]).round(4).tolist(), law.margin(0.95)
    ([0.2449, 0.1486], 6)
    """

    name: ClassVar[str] = "geometric"
    memoryless: ClassVar[bool] = True

    @cached_property
    def rate(self) -> float:
        """1/scale."""
        return float(1 / self.scale)

    @cached_property
    def alpha(self) -> float:
        """The ratio of neighbouring probabilities."""
        return exp(-self.rate)

    def logpmf(self, k: npt.ArrayLike) -> FloatArray:
        peak = log(-expm1(-self.rate)) - log1p(self.alpha)
        return np.asarray(peak - self.rate * np.abs(np.asarray(k, dtype=np.float64)))

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(k) >= 0, -self.rate, self.rate)

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k, dtype=np.float64)
        upper = np.exp(-self.rate * (np.maximum(k, -1) + 1)) / (1 + self.alpha)
        lower = np.exp(self.rate * np.minimum(k, 0)) / (1 + self.alpha)
        return np.asarray(np.where(k >= 0, upper, 1 - lower))

    def isf(self, q: npt.ArrayLike) -> IntArray:
        q = np.asarray(q, dtype=np.float64)
        upper = np.ceil(-np.log(q * (1 + self.alpha)) / self.rate) - 1
        lower = -np.floor(-np.log((1 - q) * (1 + self.alpha)) / self.rate)
        return np.asarray(np.where(q * (1 + self.alpha) < 1, upper, lower), dtype=np.int64)

    @property
    def variance(self) -> float:
        """2α/(1-α)². Coleman 2020."""
        return 2 * self.alpha / expm1(-self.rate) ** 2

    def cdf_ball(self, k: int) -> arb:
        step = ball(-1 / self.scale)
        if k < 0:
            return (step * -k).exp() / (1 + step.exp())
        return 1 - (step * (k + 1)).exp() / (1 + step.exp())


@dataclass(frozen=True, kw_only=True)
class RoundedLaplace(IntegerLaw):
    """Laplace noise rounded to the nearest integer: P(|Z| ≥ k) = exp(-(k-½)/scale), k ≥ 1."""

    name: ClassVar[str] = "laplace"
    memoryless: ClassVar[bool] = True

    @cached_property
    def rate(self) -> float:
        """1/scale."""
        return float(1 / self.scale)

    def logpmf(self, k: npt.ArrayLike) -> FloatArray:
        k = np.abs(np.asarray(k, dtype=np.float64))
        tail = log(-expm1(-self.rate) / 2) - self.rate * (k - 0.5)
        return np.asarray(np.where(k == 0, log(-expm1(-self.rate / 2)), tail))

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k)
        first = log1p(exp(-self.rate / 2)) - log(2) - self.rate / 2
        size = np.where((k == 0) | (k == -1), first, -self.rate)
        return np.where(k >= 0, size, -size)

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k, dtype=np.float64)
        upper = np.exp(-self.rate * (np.maximum(k, 0) + 0.5)) / 2
        lower = np.exp(self.rate * (np.minimum(k, -1) + 0.5)) / 2
        return np.asarray(np.where(k >= 0, upper, 1 - lower))

    def isf(self, q: npt.ArrayLike) -> IntArray:
        q = np.asarray(q, dtype=np.float64)
        upper = np.ceil(-np.log(2 * q) / self.rate - 0.5)
        lower = -np.floor(-np.log(2 * (1 - q)) / self.rate + 0.5)
        return np.asarray(np.where(q < 0.5, upper, lower), dtype=np.int64)

    @property
    def variance(self) -> float:
        """Σ over k ≥ 1 of (2k-1)·P(|Z| ≥ k)."""
        ratio = exp(-self.rate)
        return exp(-self.rate / 2) * (1 + ratio) / expm1(-self.rate) ** 2

    def cdf_ball(self, k: int) -> arb:
        upper = (ball(-(abs(k + Fraction(1, 2))) / self.scale)).exp() / 2
        return upper if k < 0 else 1 - upper


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(IntegerLaw):
    """P(Z = k) ∝ exp(-k²/(2·scale²)) on the integers. Canonne, Kamath & Steinke 2020."""

    name: ClassVar[str] = "gaussian"
    memoryless: ClassVar[bool] = False

    @cached_property
    def _upper_tail(self) -> FloatArray:
        """P(Z > k) for k = -1, 0, 1, … down to where doubles end."""
        sigma = float(self.scale)
        reach = np.arange(int(38 * sigma) + 3, dtype=np.float64)
        weights = np.exp(-0.5 * (reach / sigma) ** 2)
        tails = np.cumsum(weights[::-1])[::-1]
        return np.asarray(tails / (weights[0] + 2 * tails[1]))

    def logpmf(self, k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k, dtype=np.float64) / float(self.scale)
        peak = self._upper_tail[0] - self._upper_tail[1]
        return np.asarray(log(peak) - 0.5 * k**2)

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        return np.asarray(-(np.asarray(k, dtype=np.float64) + 0.5) / float(self.scale) ** 2)

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        k = np.asarray(k, dtype=np.int64)
        last = len(self._upper_tail) - 1
        upper = self._upper_tail[np.clip(k + 1, 0, last)]
        lower = 1 - self._upper_tail[np.clip(-k, 0, last)]
        return np.asarray(np.where(k >= -1, upper, lower))

    def isf(self, q: npt.ArrayLike) -> IntArray:
        q = np.asarray(q, dtype=np.float64)
        falling = self._upper_tail
        upper = len(falling) - np.searchsorted(falling[::-1], q, side="right") - 1
        lower = len(falling) - np.searchsorted(falling[::-1], 1 - q, side="left")
        return np.asarray(np.where(q < falling[0], upper, -lower + 1), dtype=np.int64)

    @property
    def variance(self) -> float:
        """Σ over k ≥ 0 of 2(2k+1)·P(Z > k); just below scale² when scale is large."""
        tails = self._upper_tail[1:]
        return float(2 * np.sum((2 * np.arange(len(tails)) + 1) * tails))

    def cdf_ball(self, k: int) -> arb:
        if k >= 0:
            return 1 - self.cdf_ball(-k - 1)
        tails = _gaussian_tails(self.scale, ctx.prec)
        return tails[min(-k, len(tails) - 1)]


@lru_cache(maxsize=8)
def _gaussian_tails(scale: Fraction, precision: int) -> list[arb]:
    """Enclosures of P(Z ≥ j), j = 0, 1, …; the last one encloses every later one too."""
    rate = ball(1 / (2 * scale * scale))
    reach = isqrt(int(2 * scale * scale * (precision + 16))) + 2
    # Terms beyond the reach fall faster than a geometric series with this ratio.
    first, ratio = (-rate * reach**2).exp(), (-rate * (2 * reach + 1)).exp()
    beyond = (first / (1 - ratio)) * arb(mid=0.5, rad=0.5)
    tails, running = [beyond], beyond
    for j in range(reach - 1, -1, -1):
        running = running + (-rate * j * j).exp()
        tails.append(running)
    tails.reverse()
    total = 2 * tails[0] - 1
    return [tail / total for tail in tails]


@dataclass(frozen=True, kw_only=True)
class Exact(IntegerLaw):
    """No noise: the count is public, or does not change between neighbours."""

    name: ClassVar[str] = "exact"
    memoryless: ClassVar[bool] = False
    scale: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.scale:
            raise PlanError(f"an exact count has scale 0, got {self.scale}.")

    def logpmf(self, k: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(k) == 0, 0.0, -np.inf)

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(k) >= 0, -np.inf, np.inf)

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        return np.where(np.asarray(k) < 0, 1.0, 0.0)

    def isf(self, q: npt.ArrayLike) -> IntArray:
        return np.zeros_like(np.asarray(q), dtype=np.int64)

    @property
    def variance(self) -> float:
        """None."""
        return 0.0


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """The continuous law with density exp(-|x|/scale)/(2·scale)."""

    name: ClassVar[str] = "laplace-continuous"
    scale: Fraction

    def logpdf(self, x: npt.ArrayLike) -> FloatArray:
        """log of the density."""
        b = float(self.scale)
        return np.asarray(-np.abs(np.asarray(x, dtype=np.float64)) / b - log(2 * b))

    def pdf(self, x: npt.ArrayLike) -> FloatArray:
        """The density."""
        return np.asarray(np.exp(self.logpdf(x)))

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """P(Z ≤ x)."""
        x = np.asarray(x, dtype=np.float64) / float(self.scale)
        return np.asarray(
            np.where(x < 0, np.exp(np.minimum(x, 0)) / 2, 1 - np.exp(-np.maximum(x, 0)) / 2)
        )

    def quantile(self, p: npt.ArrayLike) -> FloatArray:
        """The x with P(Z ≤ x) = p."""
        p = np.asarray(p, dtype=np.float64)
        side = np.where(p < 0.5, np.log(2 * p), -np.log(2 * (1 - p)))
        return np.asarray(float(self.scale) * side)

    @property
    def variance(self) -> float:
        """2·scale²."""
        return 2 * float(self.scale) ** 2
