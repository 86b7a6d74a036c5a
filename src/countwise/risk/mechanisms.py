"""What noise costs: the mechanisms of a count side by side, at matched privacy.

Closed forms for one count of sensitivity 1: variance, mean absolute error, quantile of the
absolute error. Geometric, Laplace and rounded Laplace noise are all ε-differentially private. The
discrete Gaussian never is, so it is matched in two ways: `gaussian-rho` has the same
concentrated privacy ρ = ε²/2 that every ε-private mechanism has (Bun & Steinke 2016), hence
σ = 1/ε; `gaussian-delta` is just (ε, δ)-private, its width found by bisection of its exact δ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, log

import numpy as np

from countwise.arrays import FloatArray
from countwise.noise.laws import DiscreteGaussian, Geometric, Laplace, RoundedLaplace
from countwise.progress import Tell, silent
from countwise.risk.monte_carlo import Noise, draw_noise

DELTA = 1e-6  # one in a million
QUANTILES = (0.5, 0.9, 0.95, 0.99)  # of |error|: what half, most and nearly all errors stay within
MECHANISMS = ("geometric", "laplace", "laplace-rounded", "gaussian-rho", "gaussian-delta")

# Fifty bins of $7,200 from $40,000 to $400,000: made up in the likeness of a city's payroll
# (Coleman 2020 uses San Francisco's), 29,000 people, ten of them from $299,200 on.
SALARIES = (
    *(700, 870, 1080, 1300, 1500, 1660, 1790, 1889, 1864, 1850, 1791, 1694, 1569, 1427, 1276),
    *(1124, 977, 838, 711, 597, 497, 410, 335, 272, 219, 175, 139, 110, 86, 67, 52, 40, 31, 23),
    *(18, 9, 2, 2, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0),
)


@dataclass(frozen=True, kw_only=True)
class CountError:
    """Errors of one noisy count under a mechanism at ε, in closed form."""

    mechanism: str
    epsilon: Fraction
    scale: float
    variance: float
    mean_absolute: float
    within: dict[str, float]  # by probability, the distance the noise stays within


@dataclass(frozen=True, kw_only=True)
class HistogramError:
    """Simulated errors of a whole noisy histogram: mean and standard deviation over draws."""

    mechanism: str
    epsilon: Fraction
    l1: float
    l1_sd: float
    l2: float
    l2_sd: float
    l1_clipped: float


def law_of(mechanism: str, epsilon: Fraction, *, delta: float = DELTA) -> Noise:
    """The noise of a mechanism on a count of sensitivity 1."""
    if mechanism == "geometric":
        return Geometric(scale=1 / epsilon)
    if mechanism == "laplace":
        return Laplace(scale=1 / epsilon)
    if mechanism == "laplace-rounded":
        return RoundedLaplace(scale=1 / epsilon)
    if mechanism == "gaussian-rho":
        return DiscreteGaussian(scale=1 / epsilon)
    return DiscreteGaussian(scale=narrowest_gaussian(epsilon, delta))


def gaussian_delta(law: DiscreteGaussian, epsilon: Fraction) -> float:
    """The exact δ at ε of the discrete Gaussian on a count of sensitivity 1.

    Σ over k of max(P(k) - e^ε·P(k-1), 0): the ratio P(k)/P(k-1) = e^{-(2k-1)/(2σ²)} is above e^ε
    for k ≤ ½ - εσ², so δ = P(Z ≤ k) - e^ε·P(Z ≤ k-1) at the last such k. Canonne et al. 2020.
    """
    last = (Fraction(1, 2) - epsilon * law.scale**2).__floor__()
    return float(law.cdf(last)) - exp(epsilon) * float(law.cdf(last - 1))


def narrowest_gaussian(epsilon: Fraction, delta: float) -> Fraction:
    """A scale whose δ at ε is at most `delta`, and is not a millionth below it."""
    low, high = 0.0, 1.0
    while not _private(high, epsilon, delta):
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _private(middle, epsilon, delta) else (middle, high)
    return Fraction(high).limit_denominator(10**9)


def _private(sigma: float, epsilon: Fraction, delta: float) -> bool:
    law = DiscreteGaussian(scale=Fraction(sigma).limit_denominator(10**9))
    return gaussian_delta(law, epsilon) <= delta


def count_error(mechanism: str, epsilon: Fraction, *, delta: float = DELTA) -> CountError:
    """The closed forms of one mechanism."""
    law = law_of(mechanism, epsilon, delta=delta)
    return CountError(
        mechanism=mechanism,
        epsilon=epsilon,
        scale=float(law.scale),
        variance=law.variance,
        mean_absolute=mean_absolute(law),
        within={f"{p:g}": _margin(law, p) for p in QUANTILES},
    )


def _margin(law: Noise, probability: float) -> float:
    """The least w with P(|Z| ≤ w) ≥ probability."""
    if isinstance(law, Laplace):
        return -log(1 - probability) * float(law.scale)
    return law.margin(probability)


def mean_absolute(law: Noise) -> float:
    """E|Z| = Σ over k ≥ 1 of P(|Z| ≥ k)."""
    if isinstance(law, Laplace):
        return float(law.scale)
    if isinstance(law, Geometric):
        return 2 * law.alpha / (-expm1(-2 * law.rate))
    if isinstance(law, RoundedLaplace):
        return exp(-law.rate / 2) / -expm1(-law.rate)
    reach = np.arange(int(40 * float(law.scale)) + 2)
    return float(2 * law.sf(reach).sum())


def histogram_error(
    mechanism: str,
    epsilon: Fraction,
    histogram: Sequence[float],
    *,
    draws: int,
    rng: np.random.Generator,
    delta: float = DELTA,
) -> HistogramError:
    """L1 and L2 distance from the histogram, and L1 with negative counts set to zero."""
    law = law_of(mechanism, epsilon, delta=delta)
    bins = np.asarray(histogram, dtype=np.float64)
    noise = draw_noise(law, (draws, len(bins)), rng=rng)
    l1, l2 = np.abs(noise).sum(axis=1), np.sqrt((noise**2).sum(axis=1))
    clipped = np.abs(np.maximum(bins + noise, 0) - bins).sum(axis=1)
    return HistogramError(
        mechanism=mechanism,
        epsilon=epsilon,
        l1=float(l1.mean()),
        l1_sd=_sd(l1),
        l2=float(l2.mean()),
        l2_sd=_sd(l2),
        l1_clipped=float(clipped.mean()),
    )


def _sd(values: FloatArray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def compare(
    epsilons: Sequence[Fraction],
    histogram: Sequence[float],
    *,
    draws: int,
    rng: np.random.Generator,
    delta: float = DELTA,
    tell: Tell = silent,
) -> list[tuple[CountError, HistogramError]]:
    """Every mechanism at every ε."""
    pairs = []
    for epsilon in epsilons:
        tell(f"epsilon {float(epsilon):g}")
        for mechanism in MECHANISMS:
            pairs.append(
                (
                    count_error(mechanism, epsilon, delta=delta),
                    histogram_error(
                        mechanism, epsilon, histogram, draws=draws, rng=rng, delta=delta
                    ),
                )
            )
    return pairs
