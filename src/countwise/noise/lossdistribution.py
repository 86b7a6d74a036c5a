"""The privacy-loss distribution of discrete Gaussian noise, composed with rounding towards safety.

One person moves a count by m. Noise z with P(z) ∝ exp(-z²/(2σ²)) then has the privacy loss

    L(z) = log P(z) - log P(z + m) = (2mz + m²) / (2σ²)

and m and -m have the same law of L, because z and -z are as likely. Losses of independent noises
add up, so the law of the whole loss is a convolution, and a release is (ε, δ)-differentially
private exactly when δ ≥ E max(0, 1 - exp(ε - L)) (Dwork & Rothblum 2016; Balle & Wang 2018).

Losses are moved to multiples of a step, where they can be convolved. The mass p at a loss between
two multiples goes to both of them in the one proportion that keeps its probability under either
table, p and p·exp(-L). That makes the two tables easier to tell apart, whatever is measured
beside it, so the δ of the moved law is never below the true one (Doroshenko, Ghazi, Kamath, Kumar
& Manurangsi 2022, "connect the dots"). Tails that are cut off, and an allowance for rounding,
count as infinite loss.
"""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import ceil, inf, sqrt

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from countwise.arrays import FloatArray

STEPS = 1000
"""Multiples of the step in the standard deviation of the whole loss: ε is then within about a
millionth of its limit for three levels, and within a hundred-thousandth for forty."""
REACH = 7.5
"""Standard deviations of noise beyond which a tail counts as infinite loss: 6.4e-14 a count."""
ROUNDING = 1e-11
"""Probability set aside for the rounding of floating-point transforms, as infinite loss."""
LARGEST_SIGMA = 10**5
LARGEST_GRID = 1 << 22
"""Noise wider than the first, and more counts than fit the second, are left to bounds."""

Part = tuple[int, Fraction]
"""How far a count moves, and the σ of its noise."""


def epsilon_of_noise(parts: Sequence[Part], *, delta: Fraction) -> float:
    """The least ε at which independent discrete Gaussian noises are (ε, δ)-private together.

    Never below the truth; infinite where noise is too wide, or δ too small, for this computation.
    """
    parts = [(abs(move), sigma) for move, sigma in parts if move]
    if not parts:
        return 0.0
    if delta < 100 * ROUNDING or max(sigma for _, sigma in parts) > LARGEST_SIGMA:
        return inf
    spread = sqrt(sum(float(move / sigma) ** 2 for move, sigma in parts))
    step = spread / STEPS
    if 2 * sum(_reach(*part) for part in parts) / step > LARGEST_GRID:
        return inf
    lowest, masses, infinite = _composed(parts, step)
    losses = step * (lowest + np.arange(len(masses), dtype=np.float64))
    return _smallest_epsilon(losses, masses, infinite, float(delta))


def _reach(move: int, sigma: Fraction) -> float:
    """The largest loss that is kept."""
    ratio = float(move / sigma)
    return ratio * (_last(sigma) / float(sigma)) + ratio**2 / 2


def _last(sigma: Fraction) -> int:
    """The largest noise that is kept; beyond it lies less than exp(-REACH²/2)."""
    return ceil(REACH * float(sigma)) + 1


def _composed(parts: Sequence[Part], step: float) -> tuple[int, FloatArray, float]:
    """The law of the summed loss on multiples of the step: the lowest, masses, infinite mass."""
    counted = Counter(parts)
    laws = {part: _one(*part, step) for part in counted}
    lowest = sum(times * laws[part][0] for part, times in counted.items())
    length = 1 + sum(times * (len(laws[part][1]) - 1) for part, times in counted.items())
    size = next_fast_len(length, real=True)
    product = np.ones(size // 2 + 1, dtype=np.complex128)
    for part, times in counted.items():
        product *= rfft(laws[part][1], size) ** times
    infinite = ROUNDING + sum(times * laws[part][2] for part, times in counted.items())
    return lowest, np.maximum(irfft(product, size)[:length], 0.0), infinite


def _one(move: int, sigma: Fraction, step: float) -> tuple[int, FloatArray, float]:
    """The law of one count's loss on multiples of the step."""
    last, width = _last(sigma), float(sigma)
    noise = np.arange(-last, last + 1, dtype=np.float64)
    weights = np.exp(-0.5 * (noise / width) ** 2)
    beyond = 2 * np.exp(-0.5 * ((last + 1) / width) ** 2) / -np.expm1(-(last + 1) / width**2)
    loss = (noise + move / 2) * (move / width) / width / step
    below = np.floor(loss)
    above = np.expm1((below - loss) * step) / np.expm1(-step)
    lowest = int(below[0])
    places = (below - lowest).astype(np.int64)
    masses = weights / weights.sum()
    length = int(places[-1]) + 2
    law = np.zeros(length)
    law += np.bincount(places, masses * (1 - above), minlength=length)
    law += np.bincount(places + 1, masses * above, minlength=length)
    return lowest, law, float(beyond / weights.sum())


def _smallest_epsilon(
    losses: FloatArray, masses: FloatArray, infinite: float, delta: float
) -> float:
    """The upper end of a bisection: the δ of ε, Σ p·max(0, 1 - exp(ε - loss)) + infinite, falls."""

    def enough(epsilon: float) -> bool:
        over = losses > epsilon
        return infinite - float(masses[over] @ np.expm1(epsilon - losses[over])) <= delta

    if enough(0.0):
        return 0.0
    low, high = 0.0, float(losses[-1])
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
