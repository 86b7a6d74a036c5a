"""Zero-concentrated differential privacy: the loss unit ρ of Gaussian noise.

Noise with P(z) ∝ exp(-z²/(2σ²)) on counts that one person moves by at most Δ in Euclidean
length costs ρ = Δ²/(2σ²), and losses add up (Bun & Steinke 2016; for the discrete Gaussian,
Canonne, Kamath & Steinke 2020).
"""

from fractions import Fraction
from math import isqrt, log, log1p

from scipy.optimize import minimize_scalar

DELTA = Fraction(1, 10**6)
GRAIN = 10**9


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
