"""The rules of the verdict, and whether any answer could ever meet them.

Two kinds of verdict. *Holds* or *fails in most partitions* is about r itself. *Supported* and
*contradicted* are about the whole data, and need a border (`countwise.verification.border`).
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from countwise.arrays import FloatArray
from countwise.errors import RequestError
from countwise.verification.proportion_posterior import ProportionPosterior

SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "not decided at this ε"
MOSTLY_HOLDS, MOSTLY_FAILS = "holds in most partitions", "fails in most partitions"
VERDICTS = (SUPPORTED, MOSTLY_HOLDS, UNDECIDED, MOSTLY_FAILS, CONTRADICTED)
SURE = 0.95  # probability of a verdict; part of the published rules
RULES = (
    f"A claim holds in most partitions if Pr(r > 1/2) is at least {SURE:g}, and fails in most if "
    f"it is about one threshold and Pr(r < 1/2) is at least {SURE:g}. More is said where a border "
    "b is stated: a claim just at its threshold in the whole data holds in a share between b and "
    f"1 - b of partitions. Then a claim is supported if Pr(r > 1 - b) is at least {SURE:g}, and "
    f"contradicted if it is about one threshold and Pr(r < b) is at least {SURE:g}. Otherwise it "
    "is not decided at this ε; nor is it if the share of partitions that can not be fitted is more "
    "likely above one half than below."
)


def verdict(
    above: Callable[[float], float],
    error_rate: float | None,
    *,
    one_sided: bool,
    border: float | None,
) -> str:
    """The verdict on a share, given Pr(share > t).

    A claim with two ends, or several parts, can fail in most partitions and be true of the whole.
    """
    if error_rate is not None and error_rate > 0.5:
        return UNDECIDED
    if border is not None and above(1 - border) >= SURE:
        return SUPPORTED
    if border is not None and one_sided and 1 - above(border) >= SURE:
        return CONTRADICTED
    if above(0.5) >= SURE:
        return MOSTLY_HOLDS
    return MOSTLY_FAILS if one_sided and 1 - above(0.5) >= SURE else UNDECIDED


def best_case(*, partitions: int, epsilon: Fraction, alpha: FloatArray) -> float:
    """The largest Pr(r > 1/2) that any noisy counts could give.

    Counts beyond the range say no more than its ends, so the best have M for the first outcome,
    0 for the second, and something in between for the others.
    """
    best = 0.0
    spare = len(alpha) - 2
    for error in np.unique(np.linspace(0, partitions, 9).round()) if spare else [0.0]:
        noisy = np.array([partitions, 0.0, *([0.0] * max(spare - 1, 0)), error][: len(alpha)])
        posterior = ProportionPosterior(
            noisy=noisy, partitions=partitions, epsilon=epsilon, alpha=alpha
        )
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
