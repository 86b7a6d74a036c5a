"""Least squares level by level, as the 2020 census made its tables (TopDown; Abowd et al. 2022).

From the root of the first variable to its leaves: the tables of the children of a node are the
non-negative ones nearest to all noisy margins of their level, with the table of their parent as
their sum (OSQP), and then whole ones next to them with the same sum (HiGHS).
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import osqp
from scipy import sparse
from scipy.optimize import linprog

from countwise.margins.measurement import Measurement
from countwise.tables.workload import Margin, Workload


def top_down(workload: Workload, measured: Sequence[Measurement]) -> np.ndarray:
    """Whole cells; every level of the first variable must have a margin of the finest others."""
    spine, *others = workload.variables
    width = int(np.prod([each.leaves for each in others]))
    above: np.ndarray | None = None
    for level, nodes in enumerate(spine.sizes):
        here = [each for each in measured if each.margin.levels[0] == level]
        parts = [_sums(workload, each.margin, width) for each in here]
        noisy = [each.noisy.reshape(nodes, -1) for each in here]
        weights = [1.0 / each.law.variance for each in here]
        found = np.zeros((nodes, width), np.int64)
        starts = np.append(spine.starts(level - 1, within=level), nodes) if level else [0, nodes]
        for parent, (first, last) in enumerate(pairwise(starts)):
            rows = [each[first:last] for each in noisy]
            fixed = None if above is None else above[parent]
            real = _nearest(parts, rows, weights, fixed)
            found[first:last] = _whole(real, fixed)
        above = found
    assert above is not None
    return above.reshape(workload.shape)


def _sums(workload: Workload, margin: Margin, width: int) -> sparse.csr_matrix:
    """From the cells of one node of the first variable to its counts of a margin."""
    shape = tuple(each.leaves for each in workload.variables[1:])
    places = np.zeros(shape, np.int64)
    for axis, (variable, level) in enumerate(
        zip(workload.variables[1:], margin.levels[1:], strict=True)
    ):
        own = variable.parents(len(variable.levels), of=level) if level else np.zeros(shape[axis])
        side = [1] * len(shape)
        side[axis] = shape[axis]
        places = places * variable.sizes[level] + np.asarray(own, np.int64).reshape(side)
    ones = np.ones(width)
    return sparse.csr_matrix((ones, (places.reshape(-1), np.arange(width))))


def _nearest(
    parts: Sequence[sparse.csr_matrix],
    noisy: Sequence[np.ndarray],
    weights: Sequence[float],
    fixed: np.ndarray | None,
) -> np.ndarray:
    """Non-negative tables of siblings nearest to their noisy counts, with a given sum.

    Solved for the difference to a start, because the solver's tolerance grows with what it solves
    for: the estimates of each child alone, without negative counts.
    """
    children, width = len(noisy[0]), parts[0].shape[1]
    gram = sum(w * (part.T @ part) for part, w in zip(parts, weights, strict=True))
    right = sum(w * (rows @ part) for part, rows, w in zip(parts, noisy, weights, strict=True))
    start = np.maximum(np.linalg.solve(gram.toarray(), np.asarray(right).T).T, 0.0)
    slope = start @ gram.toarray() - np.asarray(right)
    one = sparse.identity(children, format="csc")
    quadratic = sparse.kron(one, gram, format="csc")
    bounds = [sparse.identity(children * width, format="csc")]
    low, high = [-start.reshape(-1)], [np.full(children * width, np.inf)]
    if fixed is not None:
        bounds.append(sparse.kron(np.ones((1, children)), sparse.identity(width), format="csc"))
        low.append(fixed - start.sum(axis=0))
        high.append(fixed - start.sum(axis=0))
    problem = osqp.OSQP()
    problem.setup(
        sparse.triu(quadratic, format="csc"),
        slope.reshape(-1),
        sparse.vstack(bounds, format="csc"),
        np.concatenate(low),
        np.concatenate(high),
        verbose=False,
        eps_abs=1e-4,
        eps_rel=1e-6,
        max_iter=20_000,
    )
    moved = problem.solve(raise_error=False).x.reshape(children, width)
    return np.maximum(start + moved, 0.0)


def _whole(real: np.ndarray, fixed: np.ndarray | None) -> np.ndarray:
    """Each count next to its real one, with the same sums by cell and nearly those by child.

    A transport problem, whose corners are whole; a count goes up or, where the real sums are off
    by what the solver leaves, down.
    """
    children, width = real.shape
    if fixed is None:
        return np.rint(real).astype(np.int64)
    low = np.floor(real + 1e-7).astype(np.int64)
    rest = np.clip(real - low, 0.0, 1.0).reshape(-1)
    wanted = (fixed - low.sum(axis=0)).astype(float)
    columns = sparse.kron(np.ones((1, children)), sparse.identity(width), format="csr")
    rows = sparse.kron(sparse.identity(children), np.ones((1, width)), format="csr")
    totals = rest.reshape(children, width).sum(axis=1)
    most = max(1.0, float(np.ceil(np.abs(wanted).max() / children)))
    ends = [(0.0, most)] * rest.size + [(0.0, float(each)) for each in low.reshape(-1)]
    ask = {
        "c": np.concatenate([1.0 - 2.0 * rest, 1.0 + 2.0 * rest]),
        "A_eq": sparse.hstack([columns, -columns]),
        "b_eq": wanted,
        "bounds": ends,
        "method": "highs-ds",
    }
    sides = sparse.vstack([sparse.hstack([rows, -rows]), sparse.hstack([-rows, rows])])
    near = np.concatenate([np.ceil(totals), -np.floor(totals)])
    found = linprog(**ask, A_ub=sides, b_ub=near)
    if found.x is None:
        found = linprog(**ask)
    up, down = np.rint(found.x).astype(np.int64).reshape(2, children, width)
    return low + up - down
