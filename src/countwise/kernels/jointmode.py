"""A vector of largest joint weight, by sums of losses instead of products of weights."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner
from countwise.kernels.sumtree import Tree, planted
from countwise.kernels.tilting import CoupledProblem, Tilted, prepare, rebased


@compiled
def find_mode(problem: CoupledProblem) -> IntArray:
    """A vector of largest joint weight.

    The loss of a vector is how far its log weight is below the sum of the separate maxima. A
    vector found with loss L bounds the search: values whose own loss exceeds L can not be part
    of a better one, so one more search within L is exact.
    """
    tilted = prepare(problem)
    tree, active = planted(tilted)
    totals = np.zeros(2 * active.size - 1, np.int64)
    bound, found = 32.0, np.inf
    while found > bound:
        bound = found * (1.0 + 1e-9) if found < np.inf else bound
        found = least(tree, tilted.problem, bound, totals)
        if found == np.inf:
            bound = 16.0 * bound
    return totals[active.size - 1 :] + tilted.bases


@compiled
def losses_by_sum(problem: CoupledProblem, bound: float) -> FloatArray:
    """The least loss of a vector for each sum in the window of T; T itself does not count.

    A vector's loss counts from the sum of the separate maxima; beyond the bound it is inf.
    """
    shifted, bases = rebased(problem)
    for s in range(bases.size):
        here = slice(shifted.offsets[s], shifted.offsets[s + 1])
        shifted.weights[here] /= shifted.weights[here].max()
    tree, _ = planted(Tilted(shifted, bases, 0.0, np.zeros(bases.size), 0.0))
    fill_least(tree, shifted, bound)
    result = np.full(problem.coupling.size, np.inf)
    for i in range(tree.lengths[0]):
        at = tree.lows[0] + i - shifted.coupling_low
        if 0 <= at < result.size:
            result[at] = tree.values[i]
    return result


@inner
def fill_least(tree: Tree, problem: CoupledProblem, bound: float) -> None:
    """The least loss of each sum at every node of the tree."""
    leaves = problem.lows.size
    for s in range(leaves):
        weights = problem.weights[problem.offsets[s] : problem.offsets[s + 1]]
        tree.values[tree.starts[leaves - 1 + s] :][: weights.size] = minus_log(weights)
        keep(tree, leaves - 1 + s, 0, weights.size, bound)
    for p in range(leaves - 2, -1, -1):
        pull_least(tree, p, bound)


@inner
def least(tree: Tree, problem: CoupledProblem, bound: float, totals: IntArray) -> float:
    """Fill totals with a vector of least loss among those within the bound; returns its loss."""
    fill_least(tree, problem, bound)
    loss = tree.values[: tree.lengths[0]].copy()
    coupling = minus_log(problem.coupling)
    for i in range(loss.size):
        j = tree.lows[0] + i - problem.coupling_low
        loss[i] += coupling[j] if 0 <= j < coupling.size else np.inf
    totals[0] = tree.lows[0] + loss.argmin()
    for p in range(problem.lows.size - 1):
        halve(tree, p, totals)
    return float(loss.min())


@inner
def pull_least(tree: Tree, p: int, bound: float) -> None:
    """Smallest loss of each sum below node p, kept where some loss is within the bound."""
    a, b = 2 * p + 1, 2 * p + 2
    size = tree.lengths[a] + tree.lengths[b] - 1
    loss = tree.values[tree.starts[p] :][:size]
    loss[:] = np.inf
    loss_b = tree.values[tree.starts[b] :][: tree.lengths[b]]
    for i in range(tree.lengths[a]):
        loss_a, target = tree.values[tree.starts[a] + i], loss[i : i + loss_b.size]
        for j in range(loss_b.size):
            candidate = loss_a + loss_b[j]
            target[j] = candidate if candidate < target[j] else target[j]
    keep(tree, p, tree.lows[a] + tree.lows[b], size, bound)


@inner
def keep(tree: Tree, p: int, low: int, size: int, bound: float) -> None:
    """Narrow a node of the given low and size to its first and last loss within the bound."""
    loss = tree.values[tree.starts[p] :][:size]
    within = np.nonzero(loss <= bound)[0]
    first, last = within[0], within[-1]
    for i in range(last - first + 1):
        loss[i] = loss[first + i]
    tree.lows[p], tree.lengths[p] = low + first, last - first + 1


@inner
def minus_log(weights: FloatArray) -> FloatArray:
    """-log of the weights, inf for zero."""
    result = np.full(weights.size, np.inf)
    for i in range(weights.size):
        if weights[i] > 0.0:
            result[i] = -np.log(weights[i])
    return result


@inner
def halve(tree: Tree, p: int, totals: IntArray) -> None:
    """Split the total of node p between its children at least loss."""
    a, b = 2 * p + 1, 2 * p + 2
    best = np.inf
    totals[a] = tree.lows[a]
    for i in range(tree.lengths[a]):
        j = totals[p] - tree.lows[a] - i - tree.lows[b]
        if 0 <= j < tree.lengths[b]:
            loss = tree.values[tree.starts[a] + i] + tree.values[tree.starts[b] + j]
            if loss < best:
                best, totals[a] = loss, tree.lows[a] + i
    totals[b] = totals[p] - totals[a]
