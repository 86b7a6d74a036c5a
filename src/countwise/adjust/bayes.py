"""Empirical Bayes: posterior means under a prior learned from the noisy cells themselves.

Noise makes a table's cells look more spread than they are; what the cells say about each other
takes that back. The prior of the cells is fitted to the noisy cells (`learning`), the exact
posterior of the whole tree follows from all levels at once, and its means are rounded to the
nearest non-negative whole numbers that add up, from the root down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.learning import Learned, learn
from countwise.adjust.leastsquares import project_down
from countwise.adjust.topdown import floors_of
from countwise.arrays import FloatArray, IntArray
from countwise.privacy.measurements import Measurements
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.measured import seen_by
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.tree import Solved, solve

DEPTH = 30.0  # windows end where the likelihood is exp(-30) of its largest value
EDGE = 1e-10  # share of mass at the end of a window that calls for a wider one


@dataclass(frozen=True, kw_only=True)
class EmpiricalBayes:
    """Posterior means of all nodes, projected and rounded level by level.

    Cells learn from the cells with the same label of the level `pool`, or from all of them, unless
    what they `learned` is given.
    """

    name: ClassVar[str] = "bayes"
    tie_key: int | None
    pool: str = ""
    learned: Learned | None = None

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        learned = self.learned or learn(measurements, self.pool)
        means, variances = posterior_moments(solve_tree(measurements, learned.prior))
        return project_down(floors_of(measurements[0]), means, variances, tie_key=self.tie_key)


def solve_tree(measurements: Sequence[Measurements], prior: Prior) -> Solved:
    """The posterior of every node given all noisy counts of all levels, to the digits of a mean."""
    return solve(seen_by(measurements, prior, depth=DEPTH), edge=EDGE)


def posterior_moments(solved: Solved) -> tuple[list[FloatArray], list[FloatArray]]:
    """Mean and variance of every node, level by level."""
    means, variances = [], []
    for level in range(len(solved.hierarchy.sizes)):
        moments = [_moments(laws) for laws in solved.marginals(level)]
        means.append(np.concatenate([mean for mean, _ in moments]))
        variances.append(np.concatenate([variance for _, variance in moments]))
    return means, variances


def _moments(laws: Laws) -> tuple[FloatArray, FloatArray]:
    chances = laws.values / np.repeat(laws.sums(), laws.sizes)
    offset = (laws.grid - laws.lows[laws.owners]).astype(np.float64)
    mean = np.add.reduceat(chances * offset, laws.offsets[:-1])
    square = np.add.reduceat(chances * (offset - mean[laws.owners]) ** 2, laws.offsets[:-1])
    return np.asarray(laws.lows + mean, dtype=np.float64), square
