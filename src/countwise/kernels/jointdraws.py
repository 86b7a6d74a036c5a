"""Joint draws given their sums: a sum is split at every node of the tree, down to the leaves."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import compiled, inner
from countwise.kernels.solution import TAIL
from countwise.kernels.sumtree import Tree, advance, planted
from countwise.kernels.tilting import CoupledProblem, Tilted, prepare

TRIES = 100  # a split that meets a rounding error is drawn again this often
NEGLIGIBLE = 1e-6  # share of a sum's weight that the tails which were cut may have had


@inner
def split(a: FloatArray, b: FloatArray, total: int, uniform: float) -> int:
    """Index i with probability proportional to a[i]·b[total - i]; -1 when all of these are 0."""
    first, last = max(0, total - b.size + 1), min(a.size - 1, total)
    mass = 0.0
    for i in range(first, last + 1):
        mass += a[i] * b[total - i]
    rest = mass * uniform
    chosen = -1
    for i in range(first, last + 1):
        weight = a[i] * b[total - i]
        if weight > 0.0:
            chosen = i
            rest -= weight
            if rest < 0.0:
                break
    return chosen


@inner
def draw(tree: Tree, totals: IntArray, rng: np.random.Generator) -> bool:
    """Split the total at the root down to the leaves; False if a rounding error is met."""
    for p in range(totals.size // 2):
        a, b = 2 * p + 1, 2 * p + 2
        i = split(
            tree.values[tree.starts[a] :][: tree.lengths[a]],
            tree.values[tree.starts[b] :][: tree.lengths[b]],
            totals[p] - tree.lows[a] - tree.lows[b],
            rng.random(),
        )
        if i < 0:
            return False
        totals[a] = tree.lows[a] + i
        totals[b] = totals[p] - totals[a]
    return True


@inner
def choose_steps(tilted: Tilted, tail: float, sums: IntArray, rng: np.random.Generator) -> IntArray:
    """A step for each sum, with the probability of the step given the sum.

    It is -1 where there is none, and where what was cut from the tails of all steps together is
    not negligible beside the weight of the sum.

    One pass keeps the choice among the steps so far: step c replaces it with the probability
    that its weight has in the weight of all steps up to c.
    """
    tree, active = planted(tilted)
    scales = np.full(tilted.problem.lows.size, -np.inf)
    low = sums.min()
    reached, largest, whole = np.zeros(sums.max() - low + 1), -np.inf, 0.0
    steps = np.full(sums.size, -1)
    for step in range(tilted.problem.bounds.size - 1):
        advance(tree, tilted, step, active, np.empty(0), scales, tail)
        if tree.lengths[0] == 0:
            continue
        if tree.scales[0] > largest:
            reached *= np.exp(largest - tree.scales[0])
            whole *= np.exp(largest - tree.scales[0])
            largest = tree.scales[0]
        law = tree.values[: tree.lengths[0]] * np.exp(tree.scales[0] - largest)
        whole += np.exp(tree.scales[0] - largest)
        for t in range(max(low, tree.lows[0]), min(low + reached.size, tree.lows[0] + law.size)):
            reached[t - low] += law[t - tree.lows[0]]
        for i in range(sums.size):
            at = sums[i] - tree.lows[0]
            if 0 <= at < law.size and rng.random() * reached[sums[i] - low] < law[at]:
                steps[i] = step
    for i in range(sums.size):
        if tail * whole > NEGLIGIBLE * reached[sums[i] - low]:
            steps[i] = -1
    return steps


@compiled
def split_sums(
    problem: CoupledProblem, tail: float, sums: IntArray, rng: np.random.Generator
) -> tuple[IntArray, bool]:
    """A joint draw for each sum, one a row, and whether all of them could be drawn."""
    tilted = prepare(problem)
    relative = sums - tilted.bases.sum()
    steps = choose_steps(tilted, tail, relative, rng)
    rows = np.empty((sums.size, tilted.bases.size), np.int64)
    tree, active = planted(tilted)
    scales = np.full(problem.lows.size, -np.inf)
    totals = np.empty(2 * active.size - 1, np.int64)
    order, row = np.argsort(steps, kind="mergesort"), 0
    if steps[order[0]] < 0:
        return rows, False
    for step in range(problem.bounds.size - 1):
        advance(tree, tilted, step, active, np.empty(0), scales, tail)
        while row < order.size and steps[order[row]] == step:
            drawn, tries = False, 0
            while not drawn:
                totals[0] = relative[order[row]]
                drawn = draw(tree, totals, rng)
                tries += 1
                if tries > TRIES:
                    return rows, False
            rows[order[row]] = totals[active.size - 1 :] + tilted.bases
            row += 1
    return rows, True


def sample(problem: CoupledProblem, sums: IntArray, rng: np.random.Generator) -> IntArray:
    """A joint draw for each sum, one a row; T is not used except to place the tilt.

    Sums in tails that were cut, or lost to rounding, are split again with every tail kept.
    """
    if sums.size == 0:
        return np.empty((0, int(problem.bounds[1])), np.int64)
    rows, whole = split_sums(problem, TAIL, sums, rng)
    if not whole:
        rows, whole = split_sums(problem, 0.0, sums, rng)
    if not whole:
        raise InputError("some vector must have positive joint weight for each sum, got none")
    return rows
