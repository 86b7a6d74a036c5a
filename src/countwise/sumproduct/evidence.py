"""What a published value says about the true count it was made from."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.negligible import WINDOW
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.node_noise import Noise, reach

How = Literal["noisy", "clipped", "redrawn"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """One value of each node of a level, and how it was made from the true count N.

    `noisy`: N + Z. `clipped`: max(N + Z, 0). `redrawn`: a draw of a count from its posterior
    given N + Z under a flat prior on 0, 1, …, as in Algorithm 1 of Wang 2020, 3.1.1.
    """

    noise: Noise
    values: IntArray
    how: How = "noisy"

    def logs(self, nodes: IntArray, x: IntArray) -> FloatArray:
        """log P(value of the node | N = x)."""
        value = self.values[nodes]
        if self.how == "redrawn":
            return self._redrawn(nodes, value, x)
        logs = self.noise.logpmf(nodes, value - x)
        if self.how == "clipped" and bool((value == 0).any()):
            logs = np.where(value == 0, self.noise.log_at_most(nodes, -x), logs)
        return logs

    def _redrawn(self, nodes: IntArray, value: IntArray, x: IntArray) -> FloatArray:
        result = np.empty(len(x))
        for node in np.unique(nodes):
            at = nodes == node
            law = self.noise.laws[self.noise.which[node]]
            grid = x[at]
            low, high = int(value[at][0]), int(value[at][0])
            chances = redrawn(law, int(grid.min()), int(grid.max()), low, high)
            with np.errstate(divide="ignore"):
                result[at] = np.log(chances[grid - grid.min(), 0])
        return result

    def window(self, depth: FloatArray, lower: int | None = 0) -> tuple[IntArray, IntArray]:
        """Where the likelihood of each node is within a factor exp(-depth) of its largest."""
        far = self.noise.reach(depth) * (2 if self.how == "redrawn" else 1)
        if lower is None:
            return self.values - far, self.values + far
        return np.maximum(self.values - far, 0), np.maximum(self.values, 0) + far


@lru_cache(maxsize=64)
def redrawn(law: IntegerLaw, low: int, high: int, first: int, last: int) -> FloatArray:
    """P(v | N) for N = low..high (rows) and redrawn counts v = first..last (columns).

    Σ_n P(n | N)·P(v | n), where P(v | n) is the noise law around n cut to v ≥ 0.
    """
    far = reach(law, WINDOW)
    noisy = np.arange(low - far, high + far + 1)
    to_noisy = law.pmf(noisy - np.arange(low, high + 1)[:, None])
    to_count = law.pmf(np.arange(first, last + 1) - noisy[:, None])
    return np.asarray(to_noisy @ (to_count / law.sf(-noisy - 1)[:, None]))
