"""Shares of a privacy loss as unknowns: what they buy, and the best of them by descent.

docs/explain/crossed-least-squares.md, section 5.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import minimize

from countwise.arrays import BoolArray, FloatArray
from countwise.margins.meanvariances import MeanVariances

Unit = Literal["epsilon", "rho"]
Score = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
FREE = 1e15  # stands for the precision of a margin that costs nothing and is measured exactly
FAR = 60.0  # beyond, geometric noise is zero
WIDEST = 15.0  # logarithms of shares: a share of e^-15 buys next to nothing


def geometric_mean(weights: FloatArray) -> Score:
    """The weighted mean of the logarithms of variances, and its slopes."""
    parts = weights / weights.sum()

    def score(variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.log(variances) @ parts, parts / variances

    return score


def largest_ratio(limits: FloatArray, sharpness: float, also: Score) -> Score:
    """About the logarithm of the largest ratio of a variance to its limit.

    A limit of infinity is none. `also` decides among what meets the limits equally well.
    """
    few = 1e-3

    def score(variances: FloatArray) -> tuple[FloatArray, FloatArray]:
        logs = sharpness * (np.log(variances) - np.log(limits))
        top = logs.max(axis=-1, keepdims=True)
        powers = np.exp(logs - top)
        total = powers.sum(axis=-1, keepdims=True)
        other, slopes = also(variances)
        value = (top + np.log(total))[..., 0] / sharpness
        return value + few * other, powers / total / variances + few * slopes

    return score


@dataclass(frozen=True, kw_only=True, eq=False)
class Spending:
    """The margins that may be measured, at a cost or free, and how good what they say is.

    `reach` is how far a person moves each: the distance in L1 under ε, its square in L2 under ρ; 0
    where it is free.
    """

    mean: MeanVariances
    unit: Unit
    loss: float
    reach: FloatArray
    score: Score

    def precisions(self, shares: FloatArray) -> FloatArray:
        """What shares of the loss buy: geometric noise under ε, Gaussian noise under ρ."""
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = shares * self.loss / self.reach
            if self.unit == "epsilon":
                bought = 2 * np.sinh(np.minimum(rate, FAR) / 2) ** 2
            else:
                bought = 2 * rate
        return np.where(self.reach > 0, bought, FREE)

    def worth(self, shares: FloatArray) -> FloatArray:
        """The score of each row of shares: less is better."""
        return self.score(self.mean(self.precisions(shares)))[0]

    def slopes(self, shares: FloatArray) -> tuple[float, FloatArray]:
        """The score of shares, and its derivatives."""
        variances, by_precision = self.mean.slopes(self.precisions(shares))
        value, by_variance = self.score(variances)
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = shares * self.loss / self.reach
            turn = np.sinh(np.minimum(rate, FAR)) if self.unit == "epsilon" else 2.0
            bought = np.where(self.reach > 0, turn * self.loss / self.reach, 0.0)
        return float(value), (by_variance @ by_precision) * bought

    def settle(self, shares: FloatArray) -> tuple[FloatArray, float]:
        """The best shares near these, of the margins that have one; and their score."""
        chosen = np.flatnonzero(shares)

        def spread(logs: FloatArray) -> FloatArray:
            found = np.zeros_like(shares)
            powers = np.exp(logs - logs.max())
            found[chosen] = powers / powers.sum()
            return found

        def function(logs: FloatArray) -> tuple[float, FloatArray]:
            now = spread(logs)
            value, slopes = self.slopes(now)
            turn = now * (slopes - now @ slopes)
            return value, turn[chosen]

        start = np.log(shares[chosen])
        bounds = [(float(start.max()) - WIDEST, float(start.max()) + WIDEST)] * len(chosen)
        found = minimize(function, start, jac=True, method="L-BFGS-B", bounds=bounds)
        return spread(found.x), float(found.fun)


def gap(spending: Spending, shares: FloatArray) -> float:
    """At most how much better any other shares are, where the score is convex in them: under ρ.

    The slopes of a convex function bound it from below. Frank & Wolfe 1956.
    """
    _, slopes = spending.slopes(shares)
    costly: BoolArray = spending.reach > 0
    return float(shares @ slopes - slopes[costly].min())
