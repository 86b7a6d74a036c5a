"""Empirical Bayes: posterior means under a prior learned from the noisy cells themselves.

Noise makes a table's cells look more spread than they are; what the cells say about each other
takes that back. The prior of the cells is fitted to the noisy cells (`cellprior`), the exact
posterior of the whole tree follows from all levels at once, and its means are rounded to the
nearest non-negative whole numbers that add up, from the root down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.adjust.cellprior import CellPrior, fit_prior
from countwise.adjust.leastsquares import project_down
from countwise.adjust.topdown import floors_of
from countwise.arrays import FloatArray, IntArray
from countwise.privacy.measurements import Measurements
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.measured import seen_by
from countwise.sumproduct.priors import Independent
from countwise.sumproduct.tree import Solved, solve
from countwise.tables.hierarchy import Hierarchy

FEWEST_CELLS = 30  # a pool smaller than this learns from all cells instead


@dataclass(frozen=True, kw_only=True)
class EmpiricalBayes:
    """Posterior means of all nodes, projected and rounded level by level.

    Cells learn from the cells with the same label of the level `pool`, or from all of them.
    """

    name: ClassVar[str] = "bayes"
    tie_key: int | None
    pool: str = ""

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        prior = pooled_prior(measurements, self.pool)
        means, variances = posterior_moments(solve_tree(measurements, prior))
        return project_down(floors_of(measurements[0]), means, variances, tie_key=self.tie_key)


@dataclass(frozen=True, kw_only=True)
class PooledPrior(Independent):
    """A fitted prior for each pool of cells; `members` says which pool a cell is in."""

    names: tuple[str, ...]
    pools: tuple[CellPrior, ...]
    members: IntArray

    def log_cells(self, cells: IntArray, x: IntArray) -> FloatArray:
        """log P(N = x) in the pool of each cell."""
        logs = np.empty(len(x))
        pools = self.members[cells]
        for i, prior in enumerate(self.pools):
            table, mine = prior.log_table(), pools == i
            logs[mine] = table[np.minimum(x[mine], len(table) - 1)]
        return logs

    def words(self) -> str:
        """How many pools there are."""
        return f"fitted to the noisy cells in {len(self.pools)} pool(s)"


def pooled_prior(measurements: Sequence[Measurements], pool: str) -> PooledPrior:
    """One prior for each label of a level, fitted to the most precise noisy cells."""
    hierarchy = measurements[0].hierarchy
    sharpest = min(measurements, key=lambda each: each.laws[-1].variance)
    noisy, law = sharpest.noisy[-1], sharpest.laws[-1]
    members, names = _members(hierarchy, pool)
    everyone = fit_prior(noisy, law)
    large = np.bincount(members, minlength=len(names)) >= FEWEST_CELLS
    pools = tuple(
        fit_prior(noisy[members == i], law) if large[i] else everyone for i in range(len(names))
    )
    return PooledPrior(names=names, pools=pools, members=members)


def _members(hierarchy: Hierarchy, pool: str) -> tuple[IntArray, tuple[str, ...]]:
    if not pool:
        return np.zeros(hierarchy.cells, dtype=np.int64), ("all",)
    level = hierarchy.by.index(pool)
    codes = hierarchy.path_codes(len(hierarchy.by))[level]
    return codes.astype(np.int64), hierarchy.labels[level]


def solve_tree(measurements: Sequence[Measurements], prior: PooledPrior) -> Solved:
    """The exact posterior of every node given all noisy counts of all levels."""
    return solve(seen_by(measurements, prior))


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
