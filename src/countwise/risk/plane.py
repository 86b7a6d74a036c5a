"""Proven integrals over the plane of quadratics times exponentials, pieced together at borders.

A function of (s, t) is, between borders t = b(s), one quadratic times a sum of exponentials.
Its integral along t is then exact. The result is analytic in s between the points where borders
meet, and there `acb.integral` of python-flint encloses its integral: complex balls around the
path bound the remainder of each Gauss rule (Johansson 2018). Numbers are balls, so rounding is
part of the enclosure.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, pairwise

from flint import acb, arb

from countwise.errors import CountwiseError
from countwise.noise.laws import ball

PRECISION = 400  # bits; far more than the answer has, so that borders are told apart
NARROW = arb(2) ** -150  # points closer than this are one point
GOAL = arb(2) ** -64  # below the precision of a double
NONE = arb(0)  # the height or shift of a piece that has none
Integrand = Callable[[acb, bool], acb]


@dataclass(frozen=True)
class Border:
    """t = start + slope·s, or with a bend ± a root beside it: ±√(height - ¾(s+shift)²)."""

    start: arb
    slope: Fraction
    bend: int = 0
    height: arb = NONE
    shift: arb = NONE

    def __call__(self, s: acb, *, analytic: bool = False) -> acb:
        """t at s."""
        straight = self.start + ball(self.slope) * s
        if not self.bend:
            return straight
        return straight + self.bend * acb(self.under_root(s)).sqrt(analytic=analytic)

    def under_root(self, s: acb) -> acb:
        """What the root is taken of."""
        off = s + self.shift
        return self.height - off * off * 3 / 4

    def ends(self) -> list[arb]:
        """The s between which a bent border exists."""
        reach = (self.height * 4 / 3).sqrt()
        return [-self.shift - reach, -self.shift + reach] if self.bend else []


@dataclass(frozen=True)
class Region:
    """(c₀ + c₁s + c₂t + c₃s² + c₄st + c₅t²) · Σ w·e^{ks+lt}, the terms as (w, k, l)."""

    quadratic: tuple[Fraction, ...]
    terms: tuple[tuple[Fraction, int, int], ...]

    @cached_property
    def _balls(self) -> list[arb]:
        return [ball(value) for value in self.quadratic]

    def along_t(self, s: acb, low: acb | None, high: acb | None) -> acb:
        """The integral over t from low to high; None is infinity, where the piece must fall."""
        c0, c1, c2, c3, c4, c5 = self._balls
        coefficients = c0 + s * (c1 + s * c3), c2 + s * c4, acb(c5)
        total = acb(0)
        for weight, k, rate in self.terms:
            ends = [_primitive(coefficients, rate, t) for t in (low, high) if t is not None]
            inside = ends[1] - ends[0] if len(ends) == 2 else ends[0] * (1 if low is None else -1)
            total += inside * (k * s).exp() * ball(weight)
        return total


def _primitive(coefficients: tuple[acb, acb, acb], rate: int, t: acb) -> acb:
    """∫ (q₀ + q₁t + q₂t²)·e^{rate·t} dt."""
    q0, q1, q2 = coefficients
    if rate == 0:
        return t * (q0 + t * (q1 / 2 + t * q2 / 3))
    value, slope = q0 + t * (q1 + t * q2), q1 + 2 * t * q2
    return (rate * t).exp() * (value - (slope - 2 * q2 / rate) / rate) / rate


Strip = tuple[Border | None, Border | None, Region]
Chooser = Callable[[arb, arb], Region | None]


def integrate_plane(
    borders: Sequence[Border], kinks: Sequence[arb], piece: Chooser, *, window: arb, most: arb
) -> arb:
    """The integral over |s| ≤ window.

    `piece(s, t)` is the piece around a point inside, None where the function is zero; `kinks` are
    s at which it changes for all t. Integrals along lines, over s or over t, of the absolute value
    are at most `most`.
    """
    meetings = [s for pair in combinations(borders, 2) for s in _meetings(*pair)]
    ends = [s for border in borders for s in border.ends()]
    points, left_out = separated([*kinks, *meetings, *ends], window=window)
    total = arb(0)
    start, current = points[0], None
    for low, high in pairwise(points):
        strips, lost = _strips(borders, piece, ((low + high) / 2).mid())
        left_out += lost
        if strips != current:
            total += _integral(current or (), start, low)
            start, current = low, strips
    total += _integral(current or (), start, points[-1])
    return total + arb(0, (left_out * most).upper())


def separated(points: Iterable[arb], *, window: arb) -> tuple[list[arb], arb]:
    """Points within ±window and its ends, in order, those too close to tell taken as one ball.

    Also the length that this leaves out.
    """
    inside = [-window, window, *(s for s in points if not abs(s) > window)]
    inside.sort(key=lambda s: s.mid())
    clusters = [inside[0]]
    for point in inside[1:]:
        if abs(point - clusters[-1]).upper() < NARROW:
            clusters[-1] = clusters[-1].union(point)
        elif positive(point - clusters[-1]):
            clusters.append(point)
    return clusters, sum((2 * s.rad() for s in clusters), arb(0))


def integrate_line(integrand: Integrand, low: arb, high: arb) -> arb:
    """An enclosure of the integral of a real function analytic between the ends."""
    return acb.integral(integrand, low, high, rel_tol=GOAL, abs_tol=GOAL).real


def positive(value: arb) -> bool:
    """Whether a number that is not zero is above it; refused where the ball does not tell."""
    if not value > 0 and not value < 0:
        raise CountwiseError("the working precision does not tell two borders apart.")
    return bool(value > 0)


def _integral(strips: Sequence[Strip], start: arb, stop: arb) -> arb:
    if not strips:
        return arb(0)

    def along(s: acb, analytic: bool) -> acb:
        total = acb(0)
        for lower, upper, piece in strips:
            low, high = (None if b is None else b(s, analytic=analytic) for b in (lower, upper))
            total += piece.along_t(s, low, high)
        return total

    return integrate_line(along, start, stop)


def _strips(borders: Sequence[Border], piece: Chooser, s: arb) -> tuple[tuple[Strip, ...], arb]:
    """The pieces from bottom to top at s, and the width of what lies between equal borders."""
    here = [(b(acb(s)).real, b) for b in borders if not b.bend or b.under_root(acb(s)).real > 0]
    here.sort(key=lambda entry: entry[0].mid())
    lost = arb(0)
    told = here[:1]
    for value, border in here[1:]:
        gap, last = value - told[-1][0], told[-1][1]
        if border.slope == last.slope and border.bend == last.bend == 0 and not gap > 0:
            lost += gap.abs_upper()
        elif positive(gap):
            told.append((value, border))
    inside = [
        told[0][0].mid() - 1,
        *(((low + high) / 2).mid() for (low, _), (high, _) in pairwise(told)),
        told[-1][0].mid() + 1,
    ]
    edges = [None, *(border for _, border in told), None]
    strips: list[Strip] = []
    for t, (lower, upper) in zip(inside, pairwise(edges), strict=True):
        found = piece(s, t)
        if found is None:
            continue
        if strips and strips[-1][2] == found and strips[-1][1] is lower:
            strips[-1] = (strips[-1][0], upper, found)
        else:
            strips.append((lower, upper, found))
    return tuple(strips), lost


def _meetings(one: Border, other: Border) -> list[arb]:
    """The s at which two borders meet, or more."""
    if one.bend and other.bend:
        return []  # two halves of one arc, which meet at its ends
    bent, line = (one, other) if one.bend else (other, one)
    gap, slope = line.start - bent.start, ball(line.slope - bent.slope)
    if not bent.bend:
        return [] if line.slope == bent.slope else [-gap / slope]
    # (gap + slope·s)² = height - ¾(s+shift)²
    square = slope * slope + arb(3) / 4
    half = slope * gap + bent.shift * 3 / 4
    rest = gap * gap + bent.shift * bent.shift * 3 / 4 - bent.height
    root = half * half - square * rest
    if root < 0:
        return []
    spread = root.sqrt() if root > 0 else arb(0, root.abs_upper().sqrt().upper())
    return [(-half - spread) / square, (-half + spread) / square]
