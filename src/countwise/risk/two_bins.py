"""Two bins under Laplace noise of scale 1 as pieces of the plane of their noises s and t."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb

from countwise.noise.laws import ball
from countwise.risk.closed import price_factor
from countwise.risk.plane import Border, Region, integrate_plane, positive

ZERO, ONE = Fraction(0), Fraction(1)  # as exact coefficients
Quadratic = tuple[Fraction, ...]
SQUARES: Quadratic = (ZERO, ZERO, ZERO, ONE, ZERO, ONE)  # s² + t²


def two_bins(name: str, bins: Sequence[Fraction], *, window: arb, most: arb) -> arb:
    """The expected squared error over |s| ≤ window."""
    first, second = (ball(h) for h in bins)
    form, borders = FORMS[name](bins)

    def piece(s: arb, t: arb) -> Region:
        k, m = (-1 if positive(each) else 1 for each in (s, t))
        return Region(form(s + first, t + second), ((Fraction(1, 4), k, m),))

    return integrate_plane(
        [Border(arb(0), ZERO), *borders], [arb(0), -first], piece, window=window, most=most
    )


Form = tuple[Callable[[arb, arb], Quadratic], list[Border]]


def _identity(_: Sequence[Fraction]) -> Form:
    return lambda *_: SQUARES, []


def _clipped(bins: Sequence[Fraction]) -> Form:
    a, b = bins

    def form(x: arb, y: arb) -> Quadratic:
        stands = [Fraction(positive(each)) for each in (x, y)]
        lost = (1 - stands[0]) * a * a + (1 - stands[1]) * b * b
        return lost, ZERO, ZERO, stands[0], ZERO, stands[1]

    return form, [Border(-ball(b), ZERO)]


def _resized(bins: Sequence[Fraction]) -> Form:
    a, b = bins

    def form(x: arb, y: arb) -> Quadratic:
        if not positive(x + y):
            return a * a + b * b, ZERO, ZERO, ZERO, ZERO, ZERO
        if positive(x) and positive(y):
            return SQUARES
        lost = b if positive(x) else a  # lost² + (s + t + lost)²
        return 2 * lost * lost, 2 * lost, 2 * lost, ONE, 2 * ONE, ONE

    return form, [Border(-ball(b), ZERO), Border(-ball(a + b), -ONE)]


def _merging(name: str) -> Callable[[Sequence[Fraction]], Form]:
    def forms(bins: Sequence[Fraction]) -> Form:
        price, apart = run_price(name), bins[0] - bins[1]
        half = ONE / 2

        def form(x: arb, y: arb) -> Quadratic:
            if positive((x - y) * (x - y) - 2 * price):
                return SQUARES
            return apart * apart * half, ZERO, ZERO, half, ONE, half

        reach = (2 * price).sqrt()
        return form, [Border(ball(apart) + side * reach, ONE) for side in (-1, 1)]

    return forms


def run_price(name: str) -> arb:
    """What a run of up to eight bins costs: 4, or 4·log 8."""
    return 4 * arb(price_factor(name, lambda n: arb(n).log()))


FORMS: dict[str, Callable[[Sequence[Fraction]], Form]] = {
    "identity": _identity,
    "clipped": _clipped,
    "resized": _resized,
    "noisefirst": _merging("noisefirst"),
    "segmented": _merging("segmented"),
}
