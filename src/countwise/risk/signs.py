"""Where on a grid one estimator is worse than another, decided by proven signs.

A gap of two risks falls like e^-h in the distance from zero, or between the bins, while the risks
stay near 2σ²: far out, doubles drop it. So doubles decide only where the gap is a large share of
the risks; elsewhere the sign is that of a ball, at as many bits as it takes.

Why that ends: ε and the bins are rational, so by Lindemann's theorem a polynomial in e^-ε is zero
only if it is zero for every ε. The pairs for which it is are known beforehand (`form`).
"""

from collections.abc import Sequence
from fractions import Fraction
from math import floor, log, sqrt

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import CountwiseError
from countwise.noise.laws import Geometric, Laplace
from countwise.risk.closed import PRICES, enclosure, geometric_risk, laplace_risk, price_factor
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.gap import Gap

CLEAR = 1e-6  # a larger share of the risks is beyond any rounding of the closed forms
SPARE, DOUBLINGS = 192, 4  # bits beyond those by which a gap is smaller than the risks


def worse_on_grid(
    claim: EstimatorClaim, counts: Sequence[int], law: Laplace | Geometric
) -> tuple[BoolArray, FloatArray, FloatArray]:
    """Where the claim fails on pairs of counts, and the two risks in doubles."""
    line = np.asarray(counts, dtype=np.float64)
    a, b = np.meshgrid(line, line, indexing="ij")
    left, right = (_risks(name, a, b, law) for name in claim.pair)
    gap = left - right
    worse = gap > CLEAR * right
    if _never(claim, law):
        return np.zeros(worse.shape, dtype=np.bool_), left, right
    doubtful = np.flatnonzero(~worse & (gap > -CLEAR * right))
    keys = _keys(claim, np.asarray(counts, dtype=np.int64))[doubtful]
    base = max(counts) + 1
    alike, place = np.unique(keys, return_inverse=True)
    signs = [positive_gap(claim, (int(key // base), int(key % base)), law) for key in alike]
    worse.ravel()[doubtful] = np.array(signs, dtype=np.bool_)[place]
    return worse, left, right


def positive_gap(
    claim: EstimatorClaim, histogram: tuple[int, int], law: Laplace | Geometric
) -> bool:
    """Whether left has the larger risk there, decided in ball arithmetic."""
    bins = [Fraction(h) for h in histogram]
    precision = bits(histogram, law)
    for _ in range(DOUBLINGS):
        left, right = (enclosure(name, bins, law, precision=precision) for name in claim.pair)
        if left > right:
            return True
        if left < right:
            return False
        precision *= 2
    raise CountwiseError(f"no sign of {claim} at {histogram} with {precision // 2} bits.")


def bits(histogram: tuple[int, int], law: Laplace | Geometric) -> int:
    """Bits at which a gap as small as e^-(rate·(a+b)) stands out from risks near 2σ²."""
    return SPARE + floor(sum(histogram) / float(law.scale) / log(2))


def _keys(claim: EstimatorClaim, line: IntArray) -> IntArray:
    """A number for each point that is the same where the gap is: low·base + high of two bins.

    Risks are symmetric; of estimators that merge or leave counts alone they depend on |a-b|.
    """
    low, high = (side(line[:, None], line[None, :]) for side in (np.minimum, np.maximum))
    if all(name in PRICES or name == "identity" for name in claim.pair):
        low, high = np.zeros_like(low), high - low
    return np.asarray((low * (int(line.max()) + 1) + high).ravel())


def _never(claim: EstimatorClaim, law: Laplace | Geometric) -> bool:
    """Whether the claim holds everywhere: one estimator twice, or by the signs of a formula."""
    if len({form(name, law) for name in claim.pair}) == 1:
        return True
    gap = Gap(claim) if isinstance(law, Laplace) else None
    return gap is not None and not gap.merging and gap.plane.never_positive


def form(name: str, law: Laplace | Geometric) -> str | int:
    """What an estimator is on two bins: its name, or from which distance on it does not merge.

    Under geometric noise bins merge when their noisy counts are a whole number or less apart, the
    same number for several prices; merging equal noisy counts changes nothing.
    """
    if name not in PRICES or isinstance(law, Laplace):
        return name
    return floor(2 * sqrt(law.variance * price_factor(name, log))) or "identity"


def _risks(name: str, a: FloatArray, b: FloatArray, law: Laplace | Geometric) -> FloatArray:
    if isinstance(law, Geometric):
        return geometric_risk(name, a, b, law)
    scale = float(law.scale)
    return laplace_risk(name, a / scale, b / scale) * scale**2
