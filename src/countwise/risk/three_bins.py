"""Three bins under Laplace noise of scale 1: expected squared errors as integrals, enclosed.

- identity, clipped: a sum over bins.
- resized: given what the dropped bins lack, the bins that are kept are independent, so one
  integral is left for each set of kept bins.
- noisefirst, segmented: merging keeps the sum, so with s, t the differences of neighbouring
  noises the loss is that of the identity plus, by the runs chosen (d, e are the differences of
  neighbouring bins, p the price of a run):

      1|2|3   0                                     when it is cheapest, at 3p
      12|3    ½(d² - s²)                            at ½(s+d)² + 2p
      1|23    ½(e² - t²)                            at ½(t+e)² + 2p
      123     ⅔(d² + de + e²) - ⅔(s² + st + t²)     at ⅔((s+d)² + (s+d)(t+e) + (t+e)²) + p
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from itertools import pairwise

from flint import acb, arb

from countwise.errors import CountwiseError
from countwise.noise.laws import ball
from countwise.risk.plane import (
    Border,
    Region,
    integrate_line,
    integrate_plane,
    positive,
    separated,
)
from countwise.risk.two_bins import ONE, ZERO, run_price

VARIANCE = 2  # of Laplace noise of scale 1
HALF = Fraction(1, 2)  # as exact coefficient
Docked = Callable[[acb, arb], acb]


def three_bins(name: str, bins: Sequence[Fraction], *, window: arb, most: arb) -> arb:
    """The expected squared error where sums and differences of two noises are within window."""
    if name == "identity":
        return arb(3 * VARIANCE)
    if name == "clipped":
        return sum((_clipped_bin(ball(h), window=window) for h in bins), arb(0))
    if name == "resized":
        return _resized([ball(h) for h in bins], window=window, most=most)
    return 3 * VARIANCE + _merging_gain(name, bins, window=window, most=most)


def _clipped_bin(h: arb, *, window: arb) -> arb:
    """h² where the noise is below -h, its own square elsewhere."""
    kept = integrate_line(lambda z, _: z * z * (-z).exp() / 2, arb(0), window)
    low = -h if h < window else -window
    kept += integrate_line(lambda z, _: z * z * z.exp() / 2, low, arb(0))
    return kept + h * h * (-h).exp() / 2


def _merging_gain(name: str, bins: Sequence[Fraction], *, window: arb, most: arb) -> arb:
    """What merging adds to the loss."""
    d, e = bins[0] - bins[1], bins[1] - bins[2]
    price = run_price(name)
    third = Fraction(2, 3)
    none: tuple[Fraction, ...] | None = None
    first = (d * d / 2, ZERO, ZERO, -HALF, ZERO, ZERO)
    last = (e * e / 2, ZERO, ZERO, ZERO, ZERO, -HALF)
    whole = (third * (d * d + d * e + e * e), ZERO, ZERO, -third, -third, -third)

    def piece(s: arb, t: arb) -> Region | None:
        u, v = s + ball(d), t + ball(e)
        ways = [
            (3 * price, none),
            (u * u / 2 + 2 * price, first),
            (v * v / 2 + 2 * price, last),
            ((u * u + u * v + v * v) * 2 / 3 + price, whole),
        ]
        least, gain = min(ways, key=lambda way: way[0].mid())
        if not all(positive(cost - least) for cost, other in ways if other is not gain):
            raise CountwiseError("two segmentations cost the same away from any border.")
        return None if gain is None else Region(gain, _differences_density(s, t))

    return integrate_plane(
        _merging_borders(ball(d), ball(e), price),
        [arb(0), *(side * (2 * price).sqrt() - ball(d) for side in (-1, 1))],
        piece,
        window=window,
        most=most,
    )


def _merging_borders(d: arb, e: arb, price: arb) -> list[Border]:
    """Where two ways cost the same, and where the density has a kink: t = 0 and t = -s."""
    pair, triple = (2 * price).sqrt(), (price * 3 / 2).sqrt()
    borders = [Border(arb(0), ZERO), Border(arb(0), -ONE)]
    for side in (-1, 1):
        borders += [
            Border(side * pair - e, ZERO),
            Border(side * d - e, side * ONE),
            Border(side * triple - d / 2 - e, -HALF),
            Border(side * 2 * triple - 2 * d - e, -2 * ONE),
            Border(-d / 2 - e, -HALF, side, 3 * price, d),
        ]
    return borders


def _differences_density(s: arb, t: arb) -> tuple[tuple[Fraction, int, int], ...]:
    """The density of (Z₁-Z₂, Z₂-Z₃) around a point.

    ⅛∫ e^{-|z+s|-|z|-|z-t|} dz, with a ≤ b ≤ c the kinks -s, 0, t in order, is
    (2·e^{a-c} - ⅔·e^{2a-b-c} - ⅔·e^{a+b-2c})/8.
    """
    kinks = sorted([(-s, (-1, 0)), (arb(0), (0, 0)), (t, (0, 1))], key=lambda kink: kink[0].mid())
    terms = []
    for weight, rates in (
        (2, (1, 0, -1)),
        (Fraction(-2, 3), (2, -1, -1)),
        (Fraction(-2, 3), (1, 1, -2)),
    ):
        k = sum(rate * direction[0] for rate, (_, direction) in zip(rates, kinks, strict=True))
        m = sum(rate * direction[1] for rate, (_, direction) in zip(rates, kinks, strict=True))
        terms.append((Fraction(weight) / 8, k, m))
    return tuple(terms)


def _resized(bins: Sequence[arb], *, window: arb, most: arb) -> arb:
    """By the bins that are kept: all, two, one, none."""
    above = [[part.real for part in _kept(h, acb(0), arb(-1))] for h in bins]
    total = sum((h * h for h in bins), arb(0)) * _sum_tail(sum(bins, arb(0)))
    for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        total += above[i][1] * above[j][0] * above[k][0]
        for integrand in (_one_dropped, _one_kept):
            part = integrand(bins[i], (bins[j], bins[k]))
            total += _over_docks(part, bins, window=window, most=most)
    return total


def _kept(h: arb, dock: acb, where: arb) -> tuple[acb, acb]:
    """P and E[(z - dock)²] where h + z > dock, in the form that holds around a dock."""
    if positive(h - where):
        fall = (dock - h).exp() / 2
        return 1 - fall, VARIANCE + dock * dock - fall * (h * h + 2 * h + 2)
    fall = (h - dock).exp() / 2
    return fall, fall * (h * h - 2 * h + 2)


def _sum_tail(s: arb) -> arb:
    """P(Z₁ + Z₂ + Z₃ > s), s ≥ 0: its density is (3 + 3s + s²)·e^{-s}/16."""
    return (8 + s * (5 + s)) * (-s).exp() / 16


def _one_dropped(h: arb, others: tuple[arb, arb]) -> Docked:
    """The count that is dropped is -2r; both others are docked by r and stay positive."""

    def along(r: acb, where: arb) -> acb:
        (mass, square), (mass_2, square_2) = (_kept(other, r, where) for other in others)
        loss = h * h * mass * mass_2 + square * mass_2 + mass * square_2
        return (-2 * r - h).exp() * loss

    return along


def _one_kept(h: arb, others: tuple[arb, arb]) -> Docked:
    """The two others add up to -r and neither is above r; the count that is kept is docked by r.

    On the line x + y = -r the density is even where x < a and y < b, and falls outside.
    """
    a, b = others

    def along(r: acb, where: arb) -> acb:
        even = (-r - a - b).exp()
        weight = 3 * r * even
        for one, other in ((a, b), (b, a)):
            if positive(where - one):
                weight += (even - (-3 * r + one - other).exp()) / 2 - (r - one) * even
        mass, square = _kept(h, r, where)
        return weight / 4 * ((a * a + b * b) * mass + square)

    return along


def _over_docks(integrand: Docked, kinks: Sequence[arb], *, window: arb, most: arb) -> arb:
    """The integral over docks from 0 to window; the form changes where a dock equals a bin."""
    points, left_out = separated([arb(0), *kinks], window=window)
    total = arb(0, (left_out * most).upper())
    for low, high in pairwise(points[1:]):
        where = ((low + high) / 2).mid()
        total += integrate_line(partial(_at_dock, integrand, where), low, high)
    return total


def _at_dock(integrand: Docked, where: arb, dock: acb, _: bool) -> acb:
    return integrand(dock, where)
