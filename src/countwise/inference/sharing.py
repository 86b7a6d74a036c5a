"""How parents' counts are shared among children, told to the Gibbs sampler: mode and draws."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import xlogy

from countwise.adjust.draw import posterior_draws
from countwise.adjust.topdown import share_among_children
from countwise.arrays import FloatArray, IntArray
from countwise.inference.makings import FromRoot
from countwise.kernels.cuts import is_equal_split
from countwise.privacy.laws import IntegerLaw
from countwise.sumproduct.evidence import redrawn
from countwise.sumproduct.noise import reach


@dataclass(frozen=True, kw_only=True)
class ByMode(FromRoot):
    """Apportioned: the last unit of each must come before the next unit of every other."""

    def log_whole(
        self, v: IntArray, level: int, parent: int, siblings: tuple[int, int]
    ) -> FloatArray:
        """Zero where v is apportioned to the counts, -inf elsewhere."""
        here, size = slice(*siblings), v.shape[1]
        parents = np.full(len(v), self.counts[level][parent])
        offsets = np.arange(0, v.size + 1, size)
        order = np.tile(self.order[level + 1][here], len(v)).astype(np.uint64)
        found = share_among_children(offsets, parents, v.ravel(), order).reshape(v.shape)
        same = (found == self.counts[level + 1][here]).all(axis=1)
        return np.where(same, 0.0, -np.inf)

    def log_shared(
        self,
        noisy: list[IntArray],
        level: int,
        node: int,
        siblings: tuple[int, int],
        total: int,
        grid: IntArray,
    ) -> FloatArray:
        """Zero inside the window that the siblings leave, -inf outside."""
        if total == 0:
            return np.zeros(grid.shape)
        others = [i for i in range(*siblings) if i != node]
        k, own = self.counts[level][others], int(self.counts[level][node])
        before = self.order[level][others] < self.order[level][node]
        v, x = np.maximum(noisy[level][:, others], 0), np.maximum(grid, 0)
        least = -(-v * own // (k + 1))
        least = np.where(before, v * own // (k + 1) + 1, least).max(axis=1, initial=0)
        most = -(-v * (own + 1) // np.maximum(k, 1)) - 1
        most = np.where(before, v * (own + 1) // np.maximum(k, 1), most)
        most = np.where(k > 0, most, np.iinfo(np.int64).max)
        most = most.min(axis=1, initial=np.iinfo(np.int64).max)
        least = least if own > 0 else np.zeros_like(most)
        inside = (x >= least[:, None]) & (x <= most[:, None])
        family = slice(*siblings)
        equal = is_equal_split(self.counts[level][family], self.order[level][family])
        nothing = (x == 0) & (v.sum(axis=1) == 0)[:, None]  # apportioned as equal counts
        inside = np.where(nothing, equal, inside)
        return np.where(inside, 0.0, -np.inf)


@dataclass(frozen=True, kw_only=True)
class ByDraw(FromRoot):
    """Dealt by Algorithm 2: v^k/(Σv)^m, equal shares when all v are zero."""

    def log_whole(
        self, v: IntArray, level: int, parent: int, siblings: tuple[int, int]
    ) -> FloatArray:
        """Σk·log v - m·log Σv."""
        k, total = self.counts[level + 1][slice(*siblings)], int(self.counts[level][parent])
        sums = v.sum(axis=1)
        powers = xlogy(k, v).sum(axis=1) - total * np.log(np.maximum(sums, 1))
        return np.asarray(np.where(sums > 0, powers, -total * np.log(v.shape[1])))

    def log_shared(
        self,
        noisy: list[IntArray],
        level: int,
        node: int,
        siblings: tuple[int, int],
        total: int,
        grid: IntArray,
    ) -> FloatArray:
        """k·log v - m·log Σv, where a sibling with units has a positive v."""
        v = np.maximum(noisy[level][:, slice(*siblings)], 0)
        others = (v.sum(axis=1) - v[:, node - siblings[0]])[:, None]
        x = np.maximum(grid, 0)
        k = int(self.counts[level][node])
        with np.errstate(divide="ignore", invalid="ignore"):
            own = k * np.log(x) if k else np.zeros(x.shape)
            logs = own - (total * np.log(others + x) if total else 0.0)
        if k < total:
            logs = np.where(others == 0, -np.inf, logs)
        return np.where((x == 0) & (others == 0), -total * np.log(v.shape[1]), logs)


@dataclass(frozen=True, kw_only=True)
class ByRedraw(ByDraw):
    """Dealt by Algorithm 1: v is not the noisy count but a draw of the count given it."""

    def log_noise(self, law: IntegerLaw, value: IntArray, true: IntArray) -> FloatArray:
        """From a table near zero; farther up only the difference matters."""
        table = redrawn_logs(law)
        value, true = np.broadcast_arrays(value, true)
        last = len(table) - 1
        shift = np.maximum(true - last, 0)  # down to the last row, whose v is free of zero
        at = value - shift
        inside = (at >= 0) & (at < table.shape[1])
        return np.where(inside, table[true - shift, np.where(inside, at, 0)], -np.inf)

    def fresh(self, law: IntegerLaw, true: IntArray, rng: np.random.Generator) -> IntArray:
        """Noise, then a draw of the count."""
        return posterior_draws(super().fresh(law, true, rng), law, rng=rng)


@lru_cache(maxsize=8)
def redrawn_logs(law: IntegerLaw) -> FloatArray:
    """log P(v | N) for N from 0 to where zero is out of reach, and every v within reach."""
    far = reach(law, 40.0)
    with np.errstate(divide="ignore"):
        return np.log(redrawn(law, 0, 2 * far, 0, 4 * far))
