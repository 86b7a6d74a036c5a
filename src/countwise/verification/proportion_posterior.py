"""The posterior of the proportions behind noisy counts of outcomes, in closed form.

Counts S of K outcomes in M partitions are multinomial with proportions p, and p is Dirichlet
with parameters `alpha`. With p integrated out
(Balmat, Barrientos & Reiter 2018, eq. (4)),

    P(S | noisy) ∝ Π_j exp(-(ε/2)·|noisy_j - S_j|)·Γ(alpha_j + S_j)/S_j!     on S_1 + … + S_K = M,

independent weights coupled through their sum; and p given S is Dirichlet(alpha + S). So the
share of some outcomes among some others is a finite mixture of Beta laws. No sampling, no
burn-in: all below are sums of positive terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, floor, log

import numpy as np
import numpy.typing as npt

from countwise.arrays import FloatArray, frozen
from countwise.kernels import beta_mixture as kernel
from countwise.kernels import urns
from countwise.negligible import WINDOW

# Counts further than this many units of log probability below the best are left out.
NOTHING = (0, np.ones(1))

Weights = tuple[int, FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class BetaMixture:
    """The law Σ_k weights[k]·Beta(a + low + k, b + total - low - k) of a share."""

    weights: FloatArray
    low: int
    total: int
    a: float
    b: float

    def density(self, x: npt.ArrayLike) -> FloatArray:
        """The density inside (0, 1)."""
        return self._curve(x)[0]

    def cdf(self, x: npt.ArrayLike) -> FloatArray:
        """Pr(share <= x)."""
        x = np.asarray(x, dtype=np.float64)
        inside = self._curve(np.clip(x, 1e-300, 1 - 1e-16))[1]
        return np.asarray(np.where(x <= 0, 0.0, np.where(x >= 1, 1.0, inside)))

    def above(self, t: float) -> float:
        """Pr(share > t)."""
        return float(1 - self.cdf(t))

    def quantile(self, q: float) -> float:
        """The x with Pr(share <= x) = q."""
        tails = np.append(self.weights[::-1].cumsum()[::-1][1:], 0.0)
        return float(kernel.quantile(q, self.mean, self.weights, tails, *self._law))

    def interval(self, level: float) -> tuple[float, float]:
        """The interval with equal tails that holds the share with this probability."""
        return self.quantile((1 - level) / 2), self.quantile((1 + level) / 2)

    def summary(self, level: float = 0.95) -> "Summary":
        """Mode, median, interval and Pr(share > 1/2) in one pass."""
        found = kernel.summary(self.weights, *self._law, (1 - level) / 2)
        return Summary(*map(float, found[:5]))

    @cached_property
    def mean(self) -> float:
        """The expected share."""
        k = self.low + np.arange(len(self.weights))
        return float(self.weights @ (self.a + k)) / (self.a + self.b + self.total)

    @property
    def mode(self) -> float:
        """The share of largest density; 0 or 1 where it is largest 1e-12 from that end, rising."""
        return self.summary().mode

    @property
    def median(self) -> float:
        """The share with half of the probability on either side."""
        return self.quantile(0.5)

    @property
    def _law(self) -> tuple[int, int, float, float]:
        return self.low, self.total, self.a, self.b

    def _curve(self, x: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
        points = np.asarray(x, dtype=np.float64)
        density, cumulative = kernel.curve(points.ravel(), self.weights, *self._law)
        return density.reshape(points.shape), cumulative.reshape(points.shape)


@dataclass(frozen=True)
class Summary:
    """A share's posterior in five numbers."""

    mode: float
    median: float
    lower: float
    upper: float
    above_half: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ProportionPosterior:
    """The posterior of K proportions given noisy counts of M partitions."""

    noisy: FloatArray
    partitions: int
    epsilon: Fraction
    alpha: FloatArray

    def share(self, first: Sequence[int], among: Sequence[int] | None = None) -> BetaMixture:
        """The law of p_first / p_among, sums over outcomes; `among` is everything by default."""
        everything = range(len(self.noisy))
        among = list(everything) if among is None else list(among)
        second = [j for j in among if j not in first]
        others = [j for j in everything if j not in among]
        a, b = float(self.alpha[list(first)].sum()), float(self.alpha[second].sum())
        (first_low, one), (second_low, two), (others_low, rest) = (
            self._joined(group) for group in (first, second, others)
        )
        weights, low, total = urns.elevate(
            one, first_low, two, second_low, rest, others_low, self.partitions, a, b
        )
        return BetaMixture(weights=frozen(weights), low=low, total=total, a=a, b=b)

    def _joined(self, group: Sequence[int]) -> Weights:
        """The weights of a group's sum."""
        if not len(group):
            return NOTHING
        low, weights = self._categories[group[0]]
        for j in group[1:]:
            more_low, more = self._categories[j]
            low, weights = low + more_low, urns.convolve(weights, more)
        return low, weights

    @cached_property
    def _categories(self) -> tuple[Weights, ...]:
        """Each outcome's weights on the counts that can matter.

        A noisy count beyond 0..M has the same weights as the end it lies beyond. Let D be what
        the clipped counts add up to beyond M. A vector S with |S_j - noisy_j| = d has an L1
        distance from them of at least 2d - |D|, and the nearest one |D|: so its probability is
        at least ε(d - |D|) logs below the best, apart from what the prior can make up.
        """
        size, rate = self.partitions, float(self.epsilon) / 2
        clipped = np.clip(self.noisy, 0, size)
        excess = abs(float(clipped.sum()) - size)
        reach = excess + reach_of(self.alpha, size, self.epsilon)
        found = []
        for noisy, alpha in zip(clipped, self.alpha, strict=True):
            low, high = max(0, floor(noisy - reach)), min(size, ceil(noisy + reach))
            weights = urns.category(float(noisy), rate, float(alpha), low, high)
            found.append((low, weights))
        return tuple(found)


def reach_of(alpha: FloatArray, partitions: int, epsilon: Fraction) -> float:
    """How far beyond the excess |D| counts can matter; Γ(a+x)/x! varies by (M+1)^|a-1| at most."""
    logs = float(np.abs(alpha - 1).sum()) * log(partitions + 1) + WINDOW
    return logs / float(epsilon) + 1


def majorities(
    noisy: FloatArray, *, partitions: int, epsilon: Fraction, alpha: FloatArray, border: float
) -> FloatArray:
    """Pr(r > 1 - border), Pr(share of errors > 1/2) and Pr(r < border) for many rows of two or
    three noisy counts."""
    reach = reach_of(alpha, partitions, epsilon)
    rate = float(epsilon) / 2
    return np.asarray(kernel.majorities(noisy, partitions, rate, np.array(alpha), reach, border))
