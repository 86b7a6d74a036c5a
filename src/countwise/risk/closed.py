"""Expected squared error of one or two bins in closed form: Laplace and geometric noise.

Bins a, b with noise X, Y; s = a+b, d = |a-b|. V = X-Y has the law of X+Y.

- identity: 2σ².
- clipped: a bin h errs by X, or by -h when X < -h.
- resized: both noisy counts stand if neither is negative; if only the first is, it becomes 0 and
  the second takes the sum, so the errors are -a and R; if the sum is negative both become 0.
- noisefirst, segmented: both become their mean when |a-b+V| ≤ c, and the error of the difference,
  V²/2, becomes d²/2. The error of the sum is the same either way.

For Laplace noise only h·ε matters; the squared error is then in units of 1/ε².
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import exp, floor, log, sqrt

import numpy as np
from flint import arb, ctx

from countwise.arrays import FloatArray
from countwise.errors import CountwiseError, InputError
from countwise.noise.laws import Geometric, Laplace, ball
from countwise.risk.tails import (
    Scalar,
    Tails,
    geometric_balls,
    geometric_floats,
    laplace_balls,
    laplace_tails,
)

PRECISION = 192  # bits: three times those of doubles, for what cancels
LAPLACE = laplace_tails(np.exp)
LAPLACE_POINT = laplace_tails(exp)
Law = Laplace | Geometric


def identity(a: Scalar, b: Scalar, tails: Tails) -> Scalar:
    """2σ²."""
    return 2 * tails.variance + 0 * (a + b)


def clipped(a: Scalar, b: Scalar, tails: Tails) -> Scalar:
    """One bin and the other."""
    return clipped_bin(a, tails) + clipped_bin(b, tails)


def clipped_bin(h: Scalar, tails: Tails) -> Scalar:
    """σ² - E[X²-h²; X > h]."""
    beyond = [tails.beyond("noise", h, power=power) for power in (0, 2)]
    return tails.variance - beyond[1] + h * h * beyond[0]


def resized(a: Scalar, b: Scalar, tails: Tails) -> Scalar:
    """Both stand, one is negative, or the sum is."""

    def stands(h: Scalar) -> Scalar:
        return 1 - tails.beyond("noise", h, power=0)

    def square(h: Scalar) -> Scalar:
        return tails.variance - tails.beyond("noise", h, power=2)

    def first_negative(h: Scalar, other: Scalar) -> Scalar:
        below = [tails.beyond("overshoot", other, power=power) for power in (0, 2)]
        left = h * h * (1 - below[0]) + tails.variance + tails.overshoot_square - below[1]
        return tails.beyond("noise", h, power=0) * left

    both = square(a) * stands(b) + square(b) * stands(a)
    none = (a * a + b * b) * tails.beyond("pair", a + b, power=0)
    return both + first_negative(a, b) + first_negative(b, a) + none


def merging(d: Scalar, reach: Scalar, tails: Tails, *, apart: bool) -> Scalar:
    """2σ² + ½E[d²-V²; d-c ≤ V ≤ d+c] for d ≥ 0; `apart` says that d ≥ c."""

    def gain(h: Scalar) -> Scalar:
        mass, square = (tails.at("pair", h, power=power) for power in (0, 2))
        return d * d * mass - square

    above = gain(d + reach + tails.step)
    if apart:
        inside = gain(d - reach) - above
    else:
        inside = d * d - 2 * tails.variance - gain(reach - d + tails.step) - above
    return 2 * tails.variance + inside / 2


PLAIN: dict[str, Callable[[Scalar, Scalar, Tails], Scalar]] = {
    "identity": identity,
    "clipped": clipped,
    "resized": resized,
}
# c² = 4σ² times this: two bins merge when ½(x₁-x₂)² is at most the price of a run.
PRICES = {"noisefirst": 1, "segmented": 8}
CLOSED = (*PLAIN, *PRICES)


def price_factor(name: str, logarithm: Callable[[int], Scalar]) -> Scalar:
    """The price of a run of two bins in units of 2σ²: 1, or log 8."""
    return 1 if PRICES[name] == 1 else logarithm(PRICES[name])


def laplace_risk(name: str, a: FloatArray, b: FloatArray) -> FloatArray:
    """Expected squared error at ε = 1, for arrays of real bins a, b ≥ 0."""
    if name in PLAIN:
        return np.asarray(PLAIN[name](a, b, LAPLACE))
    return _merging_floats(np.abs(a - b), sqrt(8 * price_factor(name, log)), LAPLACE)


def geometric_risk(name: str, a: FloatArray, b: FloatArray, law: Geometric) -> FloatArray:
    """Expected squared error, for arrays of whole bins a, b ≥ 0."""
    tails = geometric_floats(law, np.exp)
    if name in PLAIN:
        return np.asarray(PLAIN[name](a, b, tails))
    reach = np.floor(2 * sqrt(law.variance * price_factor(name, log)))
    return _merging_floats(np.abs(a - b), float(reach), tails)


def _merging_floats(d: FloatArray, reach: float, tails: Tails) -> FloatArray:
    near = merging(np.minimum(d, reach), reach, tails, apart=False)
    far = merging(np.maximum(d, reach), reach, tails, apart=True)
    return np.asarray(np.where(d < reach, near, far), dtype=np.float64)


def risk(name: str, bins: Sequence[Fraction], law: Law) -> float:
    """Expected squared error of one histogram of one or two bins, in doubles."""
    if isinstance(law, Geometric):
        tails, scale = geometric_floats(law, exp), 1.0
    else:
        tails, scale = LAPLACE_POINT, float(law.scale)
    value = _point(name, [float(h) / scale for h in bins], tails, root=sqrt, logarithm=log)
    return float(value) * scale**2


def enclosure(name: str, bins: Sequence[Fraction], law: Law, *, precision: int = PRECISION) -> arb:
    """The same as a ball that contains the true value."""
    with ctx.workprec(precision):
        if isinstance(law, Geometric):
            whole_bins(bins)
            tails, scale = geometric_balls(law.scale), Fraction(1)
        else:
            tails, scale = laplace_balls(), law.scale
        balls = [ball(h / scale) for h in bins]
        value = _point(name, balls, tails, root=arb.sqrt, logarithm=lambda n: arb(n).log())
        return arb(value) * ball(scale * scale)


def _point(
    name: str,
    bins: Sequence[Scalar],
    tails: Tails,
    *,
    root: Callable[[Scalar], Scalar],
    logarithm: Callable[[int], Scalar],
) -> Scalar:
    """One histogram. A lone count is clipped, or left as it is."""
    if len(bins) == 1:
        alone = name in ("clipped", "resized")
        return clipped_bin(bins[0], tails) if alone else tails.variance
    a, b = bins
    if name in PLAIN:
        return PLAIN[name](a, b, tails)
    reach = 2 * root((tails.variance + 0 * a) * price_factor(name, logarithm))
    if tails.step:
        reach = arb(reach.floor().unique_fmpz()) if isinstance(reach, arb) else floor(reach)
    d = abs(a - b)
    apart = bool(d >= reach)
    # For exact bins d and c are both whole, or d is rational and c is not: one comparison holds.
    if not apart and not d < reach:
        raise CountwiseError("the working precision does not tell |a-b| from the merging distance.")
    return merging(d, reach, tails, apart=apart)


def whole_bins(bins: Sequence[Fraction]) -> None:
    """Refuse fractions."""
    if any(h.denominator != 1 for h in bins):
        raise InputError("geometric noise lives on whole numbers: the histogram must be whole.")
