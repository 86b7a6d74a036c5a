"""Exact draws of privacy noise.

Small scales come from one table of the whole law. Memoryless laws of large scale are put
together from parts that are independent: the sign (or zero), and the digits of the magnitude
beyond one, because the digits of a geometric variable in any base are independent.
"""

from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb

from countwise.arrays import FloatArray, IntArray
from countwise.errors import PlanError
from countwise.noise.laws import Exact, Geometric, IntegerLaw, Laplace, ball
from countwise.noise.thresholds import BITS, Table, rising_table, symmetric_table

LARGEST_TABLED_SCALE = 200  # about 18,000 thresholds at 64 bits
LARGEST_GAUSSIAN_SCALE = 100_000  # a table has about twenty thresholds a unit of scale
BASE = 4096  # digits of a magnitude: tables of one digit stay in the cache
GRID_BITS = 24  # noise is a multiple of 2^-24


def sample(law: IntegerLaw, size: int, *, bits: int = BITS) -> IntArray:
    """`size` independent exact draws of the law; `bits` is the width of the threshold table."""
    if isinstance(law, Exact):
        return np.zeros(size, dtype=np.int64)
    if law.scale <= LARGEST_TABLED_SCALE or not law.memoryless:
        return _whole(law, bits).draw(size)
    noise = _sign(law, bits).draw(size)
    moved = np.flatnonzero(noise)
    noise[moved] *= 1 + sample_magnitude(law.scale, len(moved), bits)
    return noise


def sample_laplace(law: Laplace, size: int) -> FloatArray:
    """Laplace noise on the grid of multiples of 2^-24, where it is a geometric variable.

    Added to integers it gives exactly the privacy of the continuous law, and no floating-point
    rounding ever depends on the number it protects.
    """
    steps = sample(Geometric(scale=law.scale * 2**GRID_BITS), size)
    return np.asarray(steps / float(2**GRID_BITS))


def refuse_too_wide(law: IntegerLaw) -> None:
    """Refuse a law that is drawn from a table of the whole of it and is too wide for one."""
    if not law.memoryless and law.scale > LARGEST_GAUSSIAN_SCALE:
        raise PlanError(
            f"discrete Gaussian noise is tabled up to a scale of {LARGEST_GAUSSIAN_SCALE:,}, "
            f"got {float(law.scale):g}. To fix, spend more on the level, or use --noise opendp."
        )


@lru_cache(maxsize=64)
def _whole(law: IntegerLaw, bits: int) -> Table:
    refuse_too_wide(law)
    return symmetric_table(law.cdf_ball, bits=bits)


@lru_cache(maxsize=64)
def _sign(law: IntegerLaw, bits: int) -> Table:
    """-1, 0 or 1: the sign of the noise."""
    return rising_table(law.cdf_ball, -1, most=1, bits=bits)


def sample_magnitude(scale: Fraction, size: int, bits: int = BITS) -> IntArray:
    """Exact draws of G ≥ 0 with P(G ≥ g) = exp(-g/scale): a low digit, the rest by recursion."""
    low = _digit(scale, bits).draw(size)
    if scale <= LARGEST_TABLED_SCALE:
        return low
    return low + BASE * sample_magnitude(scale / BASE, size, bits)


@lru_cache(maxsize=64)
def _digit(scale: Fraction, bits: int) -> Table:
    """G itself where the scale is small, else G modulo BASE."""
    step = -1 / scale
    if scale <= LARGEST_TABLED_SCALE:
        return rising_table(lambda d: 1 - ball(step * (d + 1)).exp(), 0, bits=bits)

    def cdf(d: int) -> arb:
        return (1 - ball(step * (d + 1)).exp()) / (1 - ball(step * BASE).exp())

    return rising_table(cdf, 0, most=BASE - 1, bits=bits)
