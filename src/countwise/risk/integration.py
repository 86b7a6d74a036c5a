"""Expected squared error of two or three bins by integration, with a proven bound on its error.

Laplace noise: integrals over the plane or a line, enclosed in balls (`plane`, `pairs`,
`triples`). Geometric noise: sums over the lattice (`lattice`). Both are cut off at a window, with
a bound for what lies outside (`tails.outside`).
"""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, log, nextafter

from flint import arb, ctx

from countwise.errors import InputError
from countwise.noise.laws import Geometric, Laplace, ball
from countwise.risk.lattice import MOST_POINTS, lattice_sum, points
from countwise.risk.plane import PRECISION
from countwise.risk.tails import laplace_balls, outside
from countwise.risk.three_bins import three_bins
from countwise.risk.two_bins import two_bins

INTEGRATED = {2: two_bins, 3: three_bins}


def integrate(name: str, bins: Sequence[Fraction], law: Laplace | Geometric) -> tuple[float, float]:
    """The expected squared error of one histogram, and a bound on how far off that may be."""
    if len(bins) not in INTEGRATED:
        raise InputError(f"integration is for two or three bins, got {len(bins)}; simulate it.")
    with ctx.workprec(PRECISION):
        if isinstance(law, Geometric):
            value, error = lattice_sum(name, bins, law)
            return value, nextafter(float(error.upper()), inf)
        scaled = [h / law.scale for h in bins]
        found = _enclosed(name, scaled) * ball(law.scale * law.scale)
        value = float(found.mid())
        return value, nextafter(float(abs(found - arb(value)).upper()), inf)


def integrable(name: str, bins: int, law: Laplace | Geometric) -> bool:
    """Whether `integrate` takes it, in a few seconds."""
    if bins not in INTEGRATED:
        return False
    return isinstance(law, Laplace) or points(name, bins, law) <= MOST_POINTS


def _enclosed(name: str, bins: Sequence[Fraction]) -> arb:
    """A ball around the expected squared error under Laplace noise of scale 1."""
    squares = ball(sum((h * h for h in bins), Fraction(0)))
    reach = arb(60 + 2 * int(log(1 + max(bins))))
    # Along a line the density of the noise, or of two added up, falls as e^-|s|/2, so there the
    # loss weighs at most 5 + ‖h‖². A noise or a sum of two beyond 2·reach has one beyond reach.
    inside = INTEGRATED[len(bins)](name, bins, window=2 * reach, most=5 + squares)
    return inside + arb(0, outside(bins, laplace_balls(), reach).upper())
