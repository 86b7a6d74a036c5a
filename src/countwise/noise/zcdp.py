"""Zero-concentrated differential privacy: the loss unit ρ of Gaussian noise.

Noise with P(z) ∝ exp(-z²/(2σ²)) on counts that one person moves by at most Δ in Euclidean
length costs ρ = Δ²/(2σ²), and losses add up (Bun & Steinke 2016; for discrete Gaussian noise:
Canonne, Kamath & Steinke 2020).

A loss in (ε, δ) means: any set of releases becomes at most e^ε times likelier, plus δ. From ρ
alone follows a bound that holds for all noise of that ρ (`epsilon_at`); from the noise itself,
which is known, a smaller ε (`epsilon_of_levels`).
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import isqrt, log, log1p

from scipy.optimize import minimize_scalar

from countwise.noise.lossdistribution import epsilon_of_noise

DELTA = Fraction(1, 10**6)  # one in a million, at which a loss in ρ is told in ε
GRAIN = 10**9  # σ is a whole number of billionths: exact, and never below what ρ asks

Level = tuple[Sequence[int], Fraction]
"""How far one person moves a level's counts, rows gathered in as few counts as can be, and σ."""


def gaussian_scale(rho: Fraction, *, squared_sensitivity: int) -> Fraction:
    """The smallest σ in billionths with Δ²/(2σ²) ≤ ρ; rounding up never costs privacy."""
    square = squared_sensitivity / (2 * rho) * GRAIN**2
    root = isqrt(square.numerator // square.denominator)
    while root * root < square:
        root += 1
    return Fraction(root, GRAIN)


def epsilon_at(rho: Fraction, *, delta: Fraction = DELTA) -> float:
    """The smallest known ε at which a loss of ρ is (ε, δ)-differential privacy.

    The minimum over α > 1 of αρ + log(1 - 1/α) + (log(1/δ) - log α)/(α - 1).
    Canonne, Kamath & Steinke 2020, proposition 12.
    """
    if not rho:
        return 0.0
    loss, tail = float(rho), -log(delta)

    def bound(log_order: float) -> float:
        order = 1 + 10**log_order
        return order * loss + log1p(-1 / order) + (tail - log(order)) / (order - 1)

    best = minimize_scalar(bound, bounds=(-4, 8), method="bounded", options={"xatol": 1e-10})
    return max(float(best.fun), 0.0)


def epsilon_of_levels(levels: Sequence[Level], *, delta: Fraction = DELTA) -> float:
    """The ε at δ of independent discrete Gaussian noise on the levels of a tree, or on tables.

    With rows of a person gathered in one node of every level, from the distribution of the loss.
    That is the worst case for one and two rows: with T the sum of two counts' noise, moving both
    by one tells as much as moving T by two, and T is the noise of one count with more added. Three
    rows or more that are not gathered everywhere are scattered in some level. The bound from the ρ
    they have left covers them: at least one row is elsewhere there, so r² becomes at most
    (r - 1)² + 1. In which level that is the least is not asked.
    """
    gathered = epsilon_of_noise([(m, sigma) for moves, sigma in levels for m in moves], delta=delta)
    whole = _rho(levels)
    scattered = [
        epsilon_at(whole - _rho([(moves, sigma)]) + _rho([(_scattered(moves), sigma)]), delta=delta)
        for moves, sigma in levels
        if max(moves, default=0) > 2
    ]
    return min(max(gathered, *scattered, 0.0), epsilon_at(whole, delta=delta))


def _rho(levels: Sequence[Level]) -> Fraction:
    return sum((m * m / (2 * s * s) for moves, s in levels for m in moves), Fraction(0))


def _scattered(moves: Sequence[int]) -> list[int]:
    """Moves of the largest squared length with one row away from the others of its person."""
    return [max(moves) - 1, 1, *list(moves)[1:]]


def rounded_up(value: float, digits: int = 4) -> str:
    """A positive number as text of so many digits, never below it."""
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal(Decimal(value)):f}"
