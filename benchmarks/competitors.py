"""Ways to make noisy counts add up that others use, one level at a time from the root down.

Webster's divisor method, Hamilton's largest remainders, and least squares to the parent's count by
the quadratic solver OSQP with largest-remainder rounding, as in the 2020 census.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import osqp
from scipy import sparse

from countwise.adjust.mode import Mode
from countwise.privacy.measurements import Measurements

RNG = np.random.default_rng()

Share = Callable[[np.ndarray, int], np.ndarray]


def largest_remainders(shares: np.ndarray, total: int) -> np.ndarray:
    """Whole shares, the rest to the largest remainders, ties among them by lot.

    Noisy counts are integers, so a projection leaves equal remainders: a solver's last digits must
    not decide who gets the rest, so they are dropped.
    """
    shares = np.round(shares, 5)
    counts = np.floor(shares).astype(np.int64)
    order = np.lexsort((RNG.random(len(shares)), counts - shares))
    counts[order[: max(total - int(counts.sum()), 0)]] += 1
    return counts


def hamilton(noisy: np.ndarray, total: int) -> np.ndarray:
    """Shares of the clipped noisy counts, rounded by largest remainders."""
    weights = np.maximum(noisy, 0)
    weights = weights if weights.any() else np.ones_like(weights)
    return largest_remainders(total * weights / weights.sum(), total)


def webster(noisy: np.ndarray, total: int) -> np.ndarray:
    """The divisor method that rounds at one half, by bisection on the divisor."""
    weights = np.maximum(noisy, 0)
    weights = weights if weights.any() else np.ones_like(weights)
    low, high = 0.0, 2 * (total + len(weights)) / weights.sum()
    given = -1.0
    for _ in range(100):
        if given == total:
            break
        middle = (low + high) / 2
        given = np.rint(middle * weights).sum()
        low, high = (middle, high) if given <= total else (low, middle)
    counts = np.floor(low * weights + 0.5).astype(np.int64)
    quotients = np.where(weights > 0, weights / (counts + 0.5), -1.0)
    counts[np.argsort(-quotients, kind="stable")[: max(total - int(counts.sum()), 0)]] += 1
    return counts


@cache
def projector(size: int) -> osqp.OSQP:
    """Least squares of this many parts, set up once; their counts and total are told later."""
    problem = osqp.OSQP()
    problem.setup(
        P=sparse.eye(size, format="csc"),
        q=np.zeros(size),
        A=sparse.vstack([np.ones((1, size)), sparse.eye(size)], format="csc"),
        l=np.zeros(size + 1),
        u=np.concatenate([[0], np.full(size, np.inf)]),
        eps_abs=1e-6,
        eps_rel=1e-8,
        max_iter=20_000,
        warm_starting=False,
        verbose=False,
    )
    return problem


def solver(noisy: np.ndarray, total: int) -> np.ndarray:
    """Least squares to the total by OSQP, rounded by largest remainders."""
    size = len(noisy)
    problem = projector(size)
    problem.update(
        q=-noisy.astype(float),
        l=np.concatenate([[total], np.zeros(size)]),
        u=np.concatenate([[total], np.full(size, np.inf)]),
    )
    return largest_remainders(np.maximum(problem.solve().x, 0), total)


@dataclass(frozen=True)
class TopDown:
    """A way to share a total, used from the root down."""

    share: Share

    def __call__(self, measurements: list[Measurements]) -> tuple[np.ndarray, ...]:
        each = measurements[0]
        counts = [np.maximum(each.noisy[0], 0)]
        for level, offsets in enumerate(each.hierarchy.offsets):
            out = np.empty_like(each.noisy[level + 1])
            for i, (start, stop) in enumerate(pairwise(offsets)):
                out[start:stop] = self.share(each.noisy[level + 1][start:stop], int(counts[-1][i]))
            counts.append(out)
        return tuple(counts)


COMPETITORS = {
    "mode": Mode(tie_key=1),
    "Webster": TopDown(webster),
    "Hamilton": TopDown(hamilton),
    "OSQP": TopDown(solver),
}
