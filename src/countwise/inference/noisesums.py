"""Sums of independent noises that need not be alike."""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from countwise.adjust.likelihood import WIDEST_CONVOLUTION, LogConcave, SumLaw
from countwise.arrays import FloatArray
from countwise.privacy.laws import Exact, IntegerLaw
from countwise.sumproduct.noise import reach

TILTS = 64  # tried for a bound on a sum of noises


@dataclass(frozen=True, kw_only=True)
class MixedSum:
    """The sum of one draw of each law, by its log-ratios: as `SumLaw` of laws that differ."""

    laws: tuple[IntegerLaw, ...]

    def slope(self, k: npt.ArrayLike) -> FloatArray:
        """log P(k+1) - log P(k); beyond the table the last one continues."""
        k = np.asarray(k)
        table = _slopes(self.laws)
        place = np.minimum(np.where(k >= 0, k, -k - 1), len(table) - 1)
        return np.where(k >= 0, table[place], -table[place])


@lru_cache(maxsize=16)
def _slopes(laws: tuple[IntegerLaw, ...]) -> FloatArray:
    """Slopes of the law of the sum at 0, 1, 2, … up to twelve deviations."""
    variance = sum(law.variance for law in laws)
    far = int(12 * np.sqrt(variance)) + 2
    if 2 * far > WIDEST_CONVOLUTION:
        return np.asarray(-(np.arange(far) + 0.5) / variance)
    wide = max(far, *(int(law.isf(1e-30)) for law in laws))
    total = np.zeros(2 * wide + 1)
    total[wide] = 1.0
    for law in laws:
        total = np.convolve(total, law.pmf(np.arange(-wide, wide + 1)), mode="same")
    upper = total[wide:][: far + 1]
    return np.asarray(np.diff(np.log(upper[upper > 0])))


def sum_of(laws: tuple[IntegerLaw, ...]) -> LogConcave:
    """The law of the sum of one draw of each, those without noise left out."""
    noisy = tuple(law for law in laws if law.variance)
    if not noisy:
        return Exact()
    if len(set(noisy)) == 1:
        return SumLaw(law=noisy[0], terms=len(noisy))
    return MixedSum(laws=noisy)


@lru_cache(maxsize=64)
def noise_sum_reach(laws: tuple[IntegerLaw, ...], depth: float, *, below: bool = False) -> int:
    """A distance that a sum of noises passes with probability exp(-depth) at most, by Chernoff.

    `below`: of noises known to be zero or less.
    """
    kinds = Counter(law for law in laws if law.variance)
    if not kinds:
        return 0
    widest = max(law.variance for law in kinds)
    tilts = np.geomspace(1e-3, 10.0, TILTS)[:, None] / np.sqrt(widest)
    growth = np.zeros(TILTS)
    for law, terms in kinds.items():
        far = reach(law, 600.0)
        z = np.arange(0 if below else -far, far + 1)
        logs = law.logpmf(z)
        growth += terms * (logsumexp(tilts * z + logs, axis=1) - logsumexp(logs))
    return int(np.ceil(((growth + depth + np.log(2.0)) / tilts[:, 0]).min()))
