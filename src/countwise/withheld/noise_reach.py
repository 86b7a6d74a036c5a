"""How far sums of independent noises reach."""

from collections import Counter
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from countwise.negligible import SMALLEST
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.node_noise import reach

TILTS = 64  # tried for a bound on a sum of noises


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
        far = reach(law, SMALLEST)
        z = np.arange(0 if below else -far, far + 1)
        logs = law.logpmf(z)
        growth += terms * (logsumexp(tilts * z + logs, axis=1) - logsumexp(logs))
    return int(np.ceil(((growth + depth + np.log(2.0)) / tilts[:, 0]).min()))
