"""Tails of memoryless noise: polynomial times exponential, in any kind of number.

Laplace and geometric noise fall by a constant factor, so every expectation over a half-line is
a polynomial times that falling factor. With weights q(u)·e^{-ru} and the moments μ_m of
e^{-rt} on t ≥ 0 (an integral for Laplace, a sum for geometric noise),

    Σ over u ≥ h of q(u)·e^{-ru}  =  e^{-rh} · Σ_i h^i · Σ_m q_{i+m}·C(i+m, i)·μ_m

where all coefficients are positive, so nothing cancels. Numbers may be doubles, arrays of them,
balls of python-flint (then the result is an enclosure), or `terms.Terms` (then it is a formula).

Three laws are needed for two bins: the noise X; the sum of two, which is also the law of their
difference; and R = Y - T, noise minus the overshoot T of another noise beyond a point it is
known to have passed, which by memorylessness is exponential or geometric.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb, expm1
from typing import Any, Literal

from flint import arb

from countwise.noise.laws import Geometric, ball

Scalar = Any  # float, array of floats, arb, or Terms
Weights = Literal["noise", "pair", "overshoot"]


@dataclass(frozen=True, kw_only=True)
class Tails:
    """The laws of X, of X + Y and of R below zero, as polynomials in the distance from zero."""

    rate: Scalar
    step: int  # 1 on the integers, 0 on the line
    moments: Sequence[Scalar]
    noise: Sequence[Scalar]
    pair: Sequence[Scalar]
    overshoot: Sequence[Scalar]
    variance: Scalar  # E X²
    overshoot_square: Scalar  # E T²
    exponential: Callable[[Scalar], Scalar]

    @cached_property
    def polynomials(self) -> dict[tuple[Weights, int], list[Scalar]]:
        """Σ_m q_{i+m}·C(i+m, i)·μ_m by i, for each law and the powers 0 and 2 of the distance."""
        laws: dict[Weights, Sequence[Scalar]] = {
            "noise": self.noise,
            "pair": self.pair,
            "overshoot": self.overshoot,
        }
        return {
            (name, power): [
                sum(
                    weights[j] * (comb(j + power, i) * self.moments[j + power - i])
                    for j in range(max(i - power, 0), len(weights))
                )
                for i in range(len(weights) + power)
            ]
            for name, weights in laws.items()
            for power in (0, 2)
        }

    def at(self, weights: Weights, h: Scalar, *, power: int) -> Scalar:
        """Σ over u ≥ h of u^power times the weight."""
        total: Scalar = 0
        for coefficient in reversed(self.polynomials[weights, power]):
            total = total * h + coefficient
        return total * self.exponential(-self.rate * h)

    def beyond(self, weights: Weights, h: Scalar, *, power: int) -> Scalar:
        """Σ over u > h of u^power times the weight."""
        return self.at(weights, h + self.step, power=power)


def laplace_tails(exponential: Callable[[Scalar], Scalar]) -> Tails:
    """Laplace noise of scale 1. The fractions are exact in binary."""
    return Tails(
        rate=1,
        step=0,
        moments=(1, 1, 2, 6),
        noise=(0.5,),
        pair=(0.25, 0.25),
        overshoot=(0.25, 0.5),
        variance=2,
        overshoot_square=2,
        exponential=exponential,
    )


def geometric_tails(
    alpha: Scalar, rest: Scalar, rate: Scalar, exponential: Callable[[Scalar], Scalar]
) -> Tails:
    """Geometric noise with ratio α = e^{-rate}, given also 1-α to full precision."""
    peak = rest / (1 + alpha)
    eulerian = (1, alpha, alpha * (1 + alpha), alpha * (1 + alpha * (4 + alpha)))
    return Tails(
        rate=rate,
        step=1,
        moments=tuple(top / rest ** (m + 1) for m, top in enumerate(eulerian)),
        noise=(peak,),
        pair=(peak * peak * (1 + alpha * alpha) / (rest * (1 + alpha)), peak * peak),
        overshoot=(peak * alpha / (1 + alpha), peak * rest / alpha),
        variance=2 * alpha / (rest * rest),
        overshoot_square=(1 + alpha) / (rest * rest),
        exponential=exponential,
    )


def geometric_floats(law: Geometric, exponential: Callable[[Scalar], Scalar]) -> Tails:
    """Geometric noise in doubles, or arrays of them."""
    return geometric_tails(law.alpha, -expm1(-law.rate), law.rate, exponential)


def laplace_balls() -> Tails:
    """Laplace noise of scale 1 in balls."""
    return laplace_tails(lambda x: arb(x).exp())


def geometric_balls(scale: Fraction) -> Tails:
    """Geometric noise in balls of the working precision."""
    rate = ball(1 / scale)
    return geometric_tails((-rate).exp(), -(-rate).expm1(), rate, lambda x: arb(x).exp())


def outside(bins: Sequence[Fraction], tails: Tails, reach: arb) -> arb:
    """A bound on what an estimator loses where the noise of some bin is beyond the reach.

    For every estimator here, noise z and bins h the loss is at most ‖z‖² + ‖h‖². Identity and
    clipped: at most z² a bin. Resized gives a bin between 0 and max(h+z, 0), so it is off by at
    most |z| or h. Means of runs are a projection P, and ‖P(h+z) - h‖² = ‖Pz‖² + ‖h - Ph‖².
    """
    beyond, square = (2 * tails.beyond("noise", reach, power=power) for power in (0, 2))
    rest = (len(bins) - 1) * tails.variance + ball(sum((h * h for h in bins), Fraction(0)))
    return len(bins) * arb(square + beyond * rest)
