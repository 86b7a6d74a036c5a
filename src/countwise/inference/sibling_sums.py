"""Laws of sums of siblings, step by step: lowest value, law, and log of its mass."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels import coupled
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.step_mixture import Steps

SMALL = 4_096  # values of pieces that are added up without cutting tails
Sum = tuple[int, FloatArray, float]
NOTHING: Sum = (0, np.ones(1), 0.0)


def step_laws(steps: Steps, children: Laws, groups: list[IntArray]) -> list[list[Sum]]:
    """For each step, the law of the sum of each group; computed again only if it changed."""
    weights = steps.weights(children)
    which = np.empty(children.nodes, np.int64)
    for number, group in enumerate(groups):
        which[group] = number
    active = np.zeros(children.nodes, np.int64)
    current: list[Sum] = [NOTHING] * len(groups)
    result = []
    for step in range(len(steps.bounds) - 1):
        pieces = np.arange(steps.bounds[step], steps.bounds[step + 1])
        active[steps.components[pieces]] = pieces
        for number in np.unique(which[steps.components[pieces]]):
            current[number] = _sum_law(steps, weights, active[groups[number]])
        result.append(list(current))
    return result


def _sum_law(steps: Steps, weights: FloatArray, pieces: IntArray) -> Sum:
    """The law of the sum of some pieces: lowest value, law, log of its mass."""
    parts = [weights[steps.offsets[q] : steps.offsets[q + 1]] for q in pieces]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    return coupled.sum_law(
        np.concatenate(parts), offsets, lows=steps.lows[pieces], tails=int(offsets[-1]) <= SMALL
    )
