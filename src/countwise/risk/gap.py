"""The gap of a claim, left risk minus factor times right risk, with proven bounds on boxes.

Two bins a, b ≥ 0 under Laplace noise at ε = 1, real-valued: by scale that is every histogram at
every ε. Risks are symmetric, so b = a+d with d ≥ 0. A gap is a formula in a and d
(`terms.Terms`) plus, for estimators that merge, functions of d made of two pieces that meet at
the reach c. A box is an interval of a and one of d.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import inf, nextafter

from flint import arb, arb_poly

from countwise.noise.laws import ball
from countwise.risk.closed import PLAIN, price_factor
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.tails import laplace_tails
from countwise.risk.terms import A, B, D, Interval, TermSum, exponential, formula, hump

Box = tuple[Interval, Interval]
FORMULAS = laplace_tails(exponential)
POLYNOMIALS = laplace_tails(lambda _: 1)


@dataclass(frozen=True)
class Segment:
    """Σ polynomial(x)·e^{-rate·x}, x = d - origin, for d within bounds."""

    origin: arb
    parts: Sequence[tuple[arb_poly, int]]

    def range(self, over: Interval) -> arb:
        """A ball around every value for x in an interval."""
        total = arb(0)
        for polynomial, rate in self.parts:
            for power, value in enumerate(polynomial.coeffs()):
                total += value * hump(power, rate, over)
        return total

    @cached_property
    def slope(self) -> "Segment":
        """The derivative."""
        parts = [(p.derivative() - p * rate, rate) for p, rate in self.parts]
        return Segment(self.origin, parts)


class Merging:
    """The risk, less 4, of merging two bins whose noisy counts are within c of each other."""

    def __init__(self, name: str) -> None:
        c = (8 * arb(price_factor(name, lambda n: arb(n).log()))).sqrt()
        x = arb_poly([0, 1])
        self.reach = c
        above = _gain(x + 2 * c, x + c) * (-2 * c).exp()
        self.far = Segment(c, [((_gain(x, x + c) - above) * arb(0.5), 1)])
        fall = (-c).exp() * arb(-0.5)
        self.near = Segment(
            arb(0),
            [
                ((x * x - 4) * arb(0.5), 0),
                (_gain(c - x, x) * fall, -1),
                (_gain(c + x, x) * fall, 1),
            ],
        )

    def range(self, d: Interval) -> arb:
        """A ball around every value for d in an interval, which may be unbounded."""
        sides = [piece.range(over) for piece, over in self._cut(d)]
        natural = sides[0] if len(sides) == 1 else sides[0].union(sides[1])
        if d[1] == inf or d[0] == d[1]:
            return natural
        middle = (d[0] + d[1]) / 2
        slopes = [piece.slope.range(over) for piece, over in self._cut(d)]
        slope = slopes[0] if len(slopes) == 1 else slopes[0].union(slopes[1])
        return natural.intersection(self.range((middle, middle)) + slope * _around(d, middle))

    def _cut(self, d: Interval) -> list[tuple[Segment, Interval]]:
        """The pieces that an interval meets, each with the x it meets there, rounded outwards."""
        low, high = _below(self.reach), _above(self.reach)
        cut: list[tuple[Segment, Interval]] = []
        if d[0] <= high:
            cut.append((self.near, (d[0], min(d[1], high))))
        if d[1] >= low:
            start = max(_below(arb(d[0]) - self.reach), 0.0)
            stop = inf if d[1] == inf else max(_above(arb(d[1]) - self.reach), start)
            cut.append((self.far, (start, stop)))
        return cut


def _gain(h: arb_poly, d: arb_poly) -> arb_poly:
    """The polynomial of E[d²-V²; V > h], for the law of the sum of two noises."""
    mass, square = (POLYNOMIALS.at("pair", h, power=power) for power in (0, 2))
    return arb_poly(d * d * mass - square)


class Gap:
    """left - factor·right as a formula in a, d and multiples of merging risks."""

    def __init__(self, claim: EstimatorClaim) -> None:
        self.claim = claim
        self.plane = TermSum({})
        self.merging: list[tuple[arb, Merging]] = []
        for name, weight in ((claim.left, Fraction(1)), (claim.right, -claim.factor)):
            if name in PLAIN:
                self.plane += PLAIN[name](A, A + D, FORMULAS) * formula(weight)
            else:
                self.plane += formula(4 * weight)
                self.merging.append((ball(weight), Merging(name)))

    def in_bins(self) -> str:
        """The formula in a and b, for a gap without merging."""
        left, right = (PLAIN[name](A, B, FORMULAS) for name in self.claim.pair)
        return str(left - right * formula(self.claim.factor))

    @property
    def only_difference(self) -> bool:
        """True if the gap depends on d alone."""
        return all(not any(key[:2]) for key in self.plane.coefficients)

    @cached_property
    def slopes(self) -> tuple[TermSum, TermSum]:
        """The derivatives of the formula."""
        return self.plane.slope(0), self.plane.slope(1)

    def range(self, box: Box) -> arb:
        """A ball that contains the gap at every point of a box, which may be unbounded."""
        total = self._plane_range(box)
        for weight, merging in self.merging:
            total += weight * merging.range(box[1])
        return total

    def _plane_range(self, box: Box) -> arb:
        natural = self.plane.range(*box)
        if inf in (box[0][1], box[1][1]):
            return natural
        a, b = ((low + high) / 2 for low, high in box)
        centred = self.plane.range((a, a), (b, b))
        for slope, side, middle in zip(self.slopes, box, (a, b), strict=True):
            centred += slope.range(*box) * _around(side, middle)
        return natural.intersection(centred)


def _below(value: arb) -> float:
    """A double not above any point of a ball."""
    return nextafter(float(value.lower()), -inf)


def _above(value: arb) -> float:
    """A double not below any point of a ball."""
    return nextafter(float(value.upper()), inf)


def _around(side: Interval, middle: float) -> arb:
    """x - middle for x in an interval."""
    return (arb(side[0]) - middle).union(arb(side[1]) - middle)
