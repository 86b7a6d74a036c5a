"""The law of joint noise, node by node: what a plan can promise before anything is drawn.

As a function of the true counts the likelihood of joint noise is that of independent noise, so
under a flat prior the posterior of the counts around any measurement that adds up, far from zero,
is the law of the noise itself. That needs no data.
"""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.measured_nodes import seen_by
from countwise.sumproduct.priors import Uniform
from countwise.sumproduct.tree import solve
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

FAR = 10**6  # of scales from zero
MOST_VALUES = 10_000_000  # in the windows of all cells, about 90 scales each


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelNoise:
    """The noise of a level's nodes, taken together: P(|Z| = 0), P(|Z| = 1), …"""

    chances: FloatArray

    @property
    def variance(self) -> float:
        """E Z²."""
        return float(self.chances @ np.arange(len(self.chances), dtype=np.float64) ** 2)

    def margin(self, confidence: float) -> int:
        """The smallest w with P(|Z| ≤ w) ≥ confidence."""
        return int(np.searchsorted(np.cumsum(self.chances), confidence - 1e-12))


def joint_law(
    hierarchy: Hierarchy, laws: tuple[IntegerLaw, ...], exact: tuple[BoolArray, ...] | None = None
) -> list[LevelNoise] | None:
    """The law of each level's noise; None where the tree is too large to compute it."""
    if hierarchy.cells * 90 * laws[-1].scale > MOST_VALUES:
        return None
    centre = FAR * (1 + int(max(law.scale for law in laws)))
    noisy = hierarchy.sums(np.full(hierarchy.cells, centre))
    measured = Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy, exact=exact)
    solved = solve(seen_by([measured], Uniform()))
    levels = []
    for level, values in enumerate(noisy):
        chances, done = np.zeros(1), 0
        for part in solved.marginals(level):
            chances = _added(chances, part, values[done : done + part.nodes])
            done += part.nodes
        levels.append(LevelNoise(chances=chances / len(values)))
    return levels


def _added(chances: FloatArray, part: Laws, centres: IntArray) -> FloatArray:
    """The law of |Z| so far with that of some more nodes added."""
    size = np.abs(part.grid - centres[part.owners])
    mass = part.values / part.sums()[part.owners]
    more = np.asarray(np.bincount(size, mass, len(chances)), dtype=np.float64)
    more[: len(chances)] += chances
    return np.asarray(more)
