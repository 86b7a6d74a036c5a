"""How a loss is best divided among the levels of a tree, from its public shape alone.

After least squares every variance is a closed form in the variances of the noise. The shares
minimise the geometric mean over levels of the mean variance, so that no level is forgotten: a
level's error may double where another's halves.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.optimize import minimize

from countwise.arrays import FloatArray
from countwise.noise.count_noise import MECHANISMS

LEAST_SHARE = 0.02  # every level keeps a noisy count of its own that is of some use
GRAIN = 1000  # shares are whole numbers of thousandths

NOTHING = 1e-300  # stands for a variance of zero


def fitted_variances(sizes: Sequence[int], noise: Sequence[float]) -> FloatArray:
    """Mean variance of each level's counts after least squares, on a tree of even fan-outs.

    Upwards a node's own noisy count is averaged with the sum of its children's estimates,
    downwards each child takes an equal share of what its parent has more than they.
    """
    fan_outs = [below / above for above, below in pairwise(sizes)]
    upward = [noise[-1]]
    for own, children in zip(reversed(noise[:-1]), reversed(fan_outs), strict=True):
        below = children * upward[-1]
        upward.append(own * below / (own + below) if own else 0.0)
    fitted = [upward[-1]]
    for mine, children in zip(reversed(upward[:-1]), fan_outs, strict=True):
        fitted.append(mine * (1 - 1 / children) + fitted[-1] / children**2)
    return np.array(fitted)


@lru_cache(maxsize=64)
def best_shares(
    sizes: tuple[int, ...], reach: tuple[int, ...], *, loss: float, mechanism: str
) -> tuple[Fraction, ...]:
    """Shares of a loss for the levels from the root to the cells; none where `reach` is zero.

    `reach` is how far one person moves a level, in the measure of the mechanism's scale. Under
    joint noise the least-squares variances of independent noise stand for those of the noise:
    were both normal, they would be the same.
    """
    spending, drawn = np.flatnonzero(reach), MECHANISMS[mechanism]
    spread = 1 - LEAST_SHARE * len(spending)

    def shares_of(logs: FloatArray) -> FloatArray:
        weights = np.exp(logs - logs.max())
        return np.asarray(LEAST_SHARE + spread * weights / weights.sum())

    def objective(logs: FloatArray) -> float:
        noise = np.zeros(len(sizes))
        for level, share in zip(spending, shares_of(logs), strict=True):
            noise[level] = drawn.variance(drawn.scale(reach[level], loss * share))
        fitted = np.maximum(fitted_variances(sizes, noise.tolist())[spending], NOTHING)
        return float(np.log(fitted).mean())

    # From even shares and from each level favoured: where one should be left out, the way there
    # is flat.
    starts = [np.zeros(len(spending)), *(2 * np.eye(len(spending)))]
    found = min(
        (minimize(objective, start, method="L-BFGS-B") for start in starts),
        key=lambda each: float(each.fun),
    )
    shares = [Fraction(0)] * len(sizes)
    for level, share in zip(spending, shares_of(found.x), strict=True):
        shares[level] = Fraction(max(round(float(share) * GRAIN), 1), GRAIN)
    return tuple(shares)
