"""Ways to make noisy counts add up, each in its best form and all fed the same noisy counts.

`Webster`, `Hamilton` and `OSQP` share each parent's count from the root down, and what they share
are the best linear estimates from below, not the noisy counts alone: from noisy counts alone, as in
the first pass of the 2020 census, they are never better above the cells. `NNLS` solves the whole
tree at once. All release whole numbers; rests go by largest remainders, ties by lot.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import osqp
from scipy import sparse

from countwise.adjust.mode import Mode
from countwise.tables.measurements import Measurements
from families import nearest, owners, rounded, sums
from negative_binomial import negative_binomial
from shrinkage import from_the_root, james_stein, normal_bayes
from whole_tree import from_below, nonnegative_whole

Counts = tuple[np.ndarray, ...]
Method = Callable[[Measurements], Counts]
Share = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def weighted(estimates: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Clipped estimates; ones where a parent has none above zero."""
    weights = np.maximum(estimates, 0.0)
    return np.where(sums(weights, offsets)[owners(offsets)] > 0, weights, 1.0)


def hamilton(
    estimates: np.ndarray, totals: np.ndarray, offsets: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """Shares of the clipped estimates, rounded by largest remainders."""
    weights = weighted(estimates, offsets)
    shares = weights * (totals / sums(weights, offsets))[owners(offsets)]
    return rounded(shares, totals, offsets, rng=rng)


def webster(
    estimates: np.ndarray, totals: np.ndarray, offsets: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """The divisor method that rounds at one half, by bisection on every parent's divisor."""
    weights, parents = weighted(estimates, offsets), owners(offsets)
    low = np.zeros(len(totals))
    high = 2 * (totals + np.diff(offsets)) / sums(weights, offsets)
    for _ in range(60):
        middle = (low + high) / 2
        under = sums(np.floor(middle[parents] * weights + 0.5), offsets) <= totals
        low, high = np.where(under, middle, low), np.where(under, high, middle)
    counts = np.floor(low[parents] * weights + 0.5).astype(np.int64)
    waiting = np.where(weights > 0, (counts + 0.5) / np.maximum(weights, 1e-300), np.inf)
    order = np.lexsort((rng.random(len(counts)), waiting, parents))
    rank = np.empty(len(counts), dtype=np.int64)
    rank[order] = np.arange(len(counts)) - offsets[:-1][parents]
    return counts + (rank < (totals - sums(counts, offsets))[parents])


PROBLEMS: dict[Any, osqp.OSQP] = {}


def projector(offsets: np.ndarray) -> osqp.OSQP:
    """Least squares of all families of a level, set up once; counts and totals are told later."""
    key = offsets.tobytes()
    if key not in PROBLEMS:
        size, families = offsets[-1], len(offsets) - 1
        adding = sparse.csc_matrix((np.ones(size), (owners(offsets), np.arange(size))))
        PROBLEMS[key] = osqp.OSQP()
        PROBLEMS[key].setup(
            P=sparse.eye(size, format="csc"),
            q=np.zeros(size),
            A=sparse.vstack([adding, sparse.eye(size)], format="csc"),
            l=np.zeros(families + size),
            u=np.concatenate([np.zeros(families), np.full(size, np.inf)]),
            eps_abs=1e-6,
            eps_rel=1e-8,
            max_iter=20_000,
            warm_starting=False,
            verbose=False,
        )
    return PROBLEMS[key]


def solver(
    estimates: np.ndarray, totals: np.ndarray, offsets: np.ndarray, *, rng: np.random.Generator
) -> np.ndarray:
    """Least squares to the totals by OSQP, its last digits set right, by largest remainders."""
    problem, size = projector(offsets), len(estimates)
    problem.update(
        q=-estimates,
        l=np.concatenate([totals, np.zeros(size)]),
        u=np.concatenate([totals, np.full(size, np.inf)]),
    )
    found = nearest(problem.solve(raise_error=True).x, np.ones(size), totals, offsets)
    return rounded(found, totals, offsets, rng=rng)


def top_down(measured: Measurements, *, share: Share) -> Counts:
    """Totals shared from the root down."""
    estimates, _ = from_below(measured)
    counts = [np.maximum(np.rint(estimates[0]), 0).astype(np.int64)]
    for level, offsets in enumerate(measured.hierarchy.offsets, start=1):
        counts.append(share(estimates[level], counts[-1], offsets))
    return tuple(counts)


def competitors(rng: np.random.Generator) -> dict[str, Method]:
    """Every competitor by its name; `rng` draws lots among equal remainders."""
    return {
        "mode": lambda each: Mode(tie_key=int(rng.integers(2**62)))([each]),
        "Webster": partial(top_down, share=partial(webster, rng=rng)),
        "Hamilton": partial(top_down, share=partial(hamilton, rng=rng)),
        "OSQP": partial(top_down, share=partial(solver, rng=rng)),
        "NNLS": lambda each: tuple(nonnegative_whole(each, rng=rng)),
        "James–Stein": lambda each: tuple(from_the_root(each, james_stein, rng=rng)),
        "normal EB": lambda each: tuple(from_the_root(each, normal_bayes, rng=rng)),
        "neg. binomial EB": lambda each: tuple(negative_binomial(each, rng=rng)),
    }
