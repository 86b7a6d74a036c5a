"""Probabilities of released children given noisy ones, for the sampler: modes and draws."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.special import xlogy

from countwise.adjust.draw import posterior_draws
from countwise.adjust.tree_walk import share_among_children
from countwise.arrays import FloatArray, IntArray
from countwise.kernels.cuts import is_equal_split
from countwise.negligible import LEFT_OUT, SAMPLED
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.evidence import redrawn
from countwise.sumproduct.node_noise import reach
from countwise.withheld.gibbs import JUMPS, choose
from countwise.withheld.release_models import FromNoisyCounts, FromRoot


@dataclass(frozen=True, kw_only=True, eq=False)
class ByMode(FromRoot):
    """Apportioned: the last unit of each must come before the next unit of every other."""

    def log_whole(self, v: IntArray, level: int, parent: int) -> FloatArray:
        """Zero where v is apportioned to the counts, -inf elsewhere."""
        siblings, size = self.hierarchy.children(level, parent), v.shape[1]
        parents = np.full(len(v), self.counts[level][parent])
        offsets = np.arange(0, v.size + 1, size)
        order = np.tile(self.order[level + 1][siblings], len(v)).astype(np.uint64)
        found = share_among_children(offsets, parents, v.ravel(), order).reshape(v.shape)
        same = (found == self.counts[level + 1][siblings]).all(axis=1)
        return np.where(same, 0.0, -np.inf)

    def log_shared(
        self, noisy: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """Zero inside the window that the siblings leave, -inf outside."""
        siblings, total = self.siblings(level, node)
        if total == 0:
            return np.zeros(grid.shape)
        others = [i for i in range(siblings.start, siblings.stop) if i != node]
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
        equal = is_equal_split(self.counts[level][siblings], self.order[level][siblings])
        nothing = (x == 0) & (v.sum(axis=1) == 0)[:, None]  # apportioned as equal counts
        inside = np.where(nothing, equal, inside)
        return np.where(inside, 0.0, -np.inf)


@dataclass(frozen=True, kw_only=True, eq=False)
class ByDraw(FromRoot):
    """Dealt by Algorithm 2: v^k/(Σv)^m, equal shares when all v are zero."""

    def log_whole(self, v: IntArray, level: int, parent: int) -> FloatArray:
        """Σk·log v - m·log Σv."""
        k = self.counts[level + 1][self.hierarchy.children(level, parent)]
        total = int(self.counts[level][parent])
        sums = v.sum(axis=1)
        powers = xlogy(k, v).sum(axis=1) - total * np.log(np.maximum(sums, 1))
        return np.asarray(np.where(sums > 0, powers, -total * np.log(v.shape[1])))

    def log_shared(
        self, noisy: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """k·log v - m·log Σv, where a sibling with units has a positive v."""
        siblings, total = self.siblings(level, node)
        v = np.maximum(noisy[level][:, siblings], 0)
        others = (v.sum(axis=1) - v[:, node - siblings.start])[:, None]
        x = np.maximum(grid, 0)
        k = int(self.counts[level][node])
        with np.errstate(divide="ignore", invalid="ignore"):
            own = k * np.log(x) if k else np.zeros(x.shape)
            logs = own - (total * np.log(others + x) if total else 0.0)
        if k < total:
            logs = np.where(others == 0, -np.inf, logs)
        return np.where((x == 0) & (others == 0), -total * np.log(v.shape[1]), logs)


@dataclass(frozen=True, kw_only=True, eq=False)
class ByRedraw(ByDraw):
    """Dealt by Algorithm 1: v is not the noisy count but a draw of the count given it."""

    def log_noise(self, level: int, law: IntegerLaw, value: IntArray, true: IntArray) -> FloatArray:
        """From a table near zero; farther up only the difference matters."""
        del level
        table = redrawn_logs(law)
        value, true = np.broadcast_arrays(value, true)
        last = len(table) - 1
        shift = np.maximum(true - last, 0)  # down to the last row, whose v is free of zero
        at = value - shift
        inside = (at >= 0) & (at < table.shape[1])
        return np.where(inside, table[true - shift, np.where(inside, at, 0)], -np.inf)

    def fresh(
        self, level: int, law: IntegerLaw, true: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Noise, then a draw of the count."""
        return posterior_draws(super().fresh(level, law, true, rng), law, rng=rng)


@dataclass(frozen=True, kw_only=True, eq=False)
class ByRedrawAndSum(ByRedraw):
    """As `ByRedraw`, with a total drawn given the sum of the noisy parts.

    So the noisy counts of the root's children matter beside what was drawn from them: they are
    the noisy counts of the sampler, and the draws v, a row a chain, are kept here.
    """

    drawn: list[IntArray] = field(default_factory=list)

    def renew(self, noisy: list[IntArray], rng: np.random.Generator) -> None:
        """Each v given its noisy count and the counts that were dealt, then all of them at once.

        That all v are zero is reached by the latter only.
        """
        if not self.drawn:
            self.drawn.append(np.tile(self.counts[1], (len(noisy[1]), 1)))
        (v,) = self.drawn
        for node in range(v.shape[1]):
            law, n = self._law(node), noisy[1][:, [node]]
            grid = np.maximum(n, 0) + np.arange(-reach(law, SAMPLED), reach(law, SAMPLED) + 1)
            logs = np.where(grid < 0, -np.inf, law.logpmf(grid - n))
            logs = logs + self.log_shared([v, v], 1, node, grid)
            v[:, node] = choose(grid, logs, v[:, node], rng)
        for _ in range(JUMPS):
            fresh = v.copy()
            for node in range(v.shape[1]):
                fresh[:, node] = posterior_draws(noisy[1][:, node], self._law(node), rng=rng)
            logs = self.log_whole(fresh, 0, 0) - self.log_whole(v, 0, 0)
            taken = np.log(rng.random(len(v))) < logs
            v[taken] = fresh[taken]

    def log_noise(self, level: int, law: IntegerLaw, value: IntArray, true: IntArray) -> FloatArray:
        """Below the root the noise itself."""
        if level == 1:
            return FromNoisyCounts.log_noise(self, level, law, value, true)
        return super().log_noise(level, law, value, true)

    def fresh(
        self, level: int, law: IntegerLaw, true: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """Below the root noise alone."""
        if level == 1:
            return FromNoisyCounts.fresh(self, level, law, true, rng)
        return super().fresh(level, law, true, rng)

    def log_given(
        self, noisy: list[IntArray], true: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """Below the root log P(v | n) and what the sum says."""
        if level > 1:
            return super().log_given(noisy, true, level, node, grid)
        others = noisy[1].sum(axis=1)[:, None] - noisy[1][:, [node]]
        logs = self._log_drawn(node, grid, self.drawn[0][:, [node]])
        return logs + self.log_summed(others + grid, true[0])

    def log_family(
        self, rows: IntArray, true: list[IntArray], level: int, parent: int
    ) -> FloatArray:
        """As `log_given`, of all the root's children."""
        if level > 0:
            return super().log_family(rows, true, level, parent)
        v = self.drawn[0]
        logs = sum(self._log_drawn(i, rows[:, i], v[:, i]) for i in range(rows.shape[1]))
        return logs + self.log_summed(rows.sum(axis=1), true[0][:, 0])

    def _law(self, node: int) -> IntegerLaw:
        return self.noise[1].laws[int(self.noise[1].which[node])]

    def _log_drawn(self, node: int, n: IntArray, v: IntArray) -> FloatArray:
        """log P(v | n): the noise around n, cut at zero."""
        law = self._law(node)
        return np.asarray(law.logpmf(v - n) - np.log(law.sf(-n - 1)))


@lru_cache(maxsize=8)
def redrawn_logs(law: IntegerLaw) -> FloatArray:
    """log P(v | N) for N from 0 to where zero is out of reach, and every v within reach."""
    far = reach(law, LEFT_OUT)
    with np.errstate(divide="ignore"):
        return np.log(redrawn(law, 0, 2 * far, 0, 4 * far))
