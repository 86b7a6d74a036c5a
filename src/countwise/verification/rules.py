"""The rules of the verdict, and whether any answer could ever meet them."""

from fractions import Fraction

import numpy as np

from countwise.arrays import FloatArray
from countwise.errors import RequestError
from countwise.verification.posterior import Posterior

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "not decided at this ε"
SURE = 0.95
RULES = (
    f"A claim is supported if Pr(r > 1/2) is at least {SURE:g}. It is contradicted if it is about "
    f"one threshold and Pr(r < 1/2) is at least {SURE:g}. Otherwise it is not decided at this ε; "
    "nor is it if the share of partitions that can not be fitted is more likely above one half "
    "than below."
)


def verdict(above_half: float, error_rate: float | None, *, one_sided: bool) -> str:
    """The verdict on a share.

    If a claim about one threshold fails in most partitions, it fails in the whole data. A claim
    with two ends, or several parts, can fail in most partitions and be true of the whole.
    """
    if error_rate is not None and error_rate > 0.5:
        return UNDECIDED
    if above_half >= SURE:
        return SUPPORTED
    return CONTRADICTED if 1 - above_half >= SURE and one_sided else UNDECIDED


def best_case(*, partitions: int, epsilon: Fraction, alpha: FloatArray) -> float:
    """The largest Pr(r > 1/2) that any noisy counts could give.

    Counts beyond the range say no more than its ends, so the best have M for the first outcome,
    0 for the second, and something in between for the others.
    """
    best = 0.0
    spare = len(alpha) - 2
    for error in np.unique(np.linspace(0, partitions, 9).round()) if spare else [0.0]:
        noisy = np.array([partitions, 0.0, *([0.0] * max(spare - 1, 0)), error][: len(alpha)])
        posterior = Posterior(noisy=noisy, partitions=partitions, epsilon=epsilon, alpha=alpha)
        fitted = range(len(alpha) - 1) if spare else range(2)
        best = max(best, posterior.share([0], fitted).above(0.5))
    return best


def refuse_hopeless(*, partitions: int, epsilon: Fraction, alpha: FloatArray) -> None:
    """A request whose verdict can not be given by any answer is not worth its privacy."""
    best = best_case(partitions=partitions, epsilon=epsilon, alpha=alpha)
    if best < SURE:
        raise RequestError(
            f"with {partitions} partitions at epsilon={float(epsilon):g} no verdict can ever be "
            f"given: Pr(r > 1/2) stays below {best:.3f}, and {SURE:g} is needed. To fix, choose "
            "more partitions or a larger epsilon."
        )
