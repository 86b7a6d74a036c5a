"""A second opinion: a Gibbs sampler over the noisy and the true counts of a release.

It shares nothing with the exact route but the noise laws: it knows how a release is made from
noisy counts, and draws each noisy and each true count given all others. Noisy counts that lead to
one mode release need not be connected by such steps, so those of a family are also proposed
afresh from their noise, all at once, and taken by the rule of Metropolis. Many chains run side by
side, one row each. A mode release of many components mixes slowly; `diagnostics` tells.

Below a count that is known exactly no cell can move by itself: units are moved between two cells
with the same nearest exact count above them, which leaves it as it is.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.negligible import SAMPLED
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.node_noise import Noise, reach
from countwise.sumproduct.priors import Prior
from countwise.tables.hierarchy import Hierarchy

JUMPS = 4  # proposals for a whole family in a sweep, as most of them are refused


class Making(Protocol):
    """How the released counts were made from the noisy ones: log P(released | noisy)."""

    def start(self) -> list[IntArray]:
        """Noisy counts of every level that lead to the release; levels without any are empty."""
        ...

    def moves(self, level: int) -> bool:
        """Whether the noisy counts of a level are unknown."""
        ...

    def log_noise(self, level: int, law: IntegerLaw, value: IntArray, true: IntArray) -> FloatArray:
        """log P(value | true count), where the values of a level are what is adjusted."""
        ...

    def fresh(
        self, level: int, law: IntegerLaw, true: IntArray, rng: np.random.Generator
    ) -> IntArray:
        """A draw of the value for each true count of a level."""
        ...

    def renew(self, noisy: list[IntArray], rng: np.random.Generator) -> None:
        """Draw what a making keeps beside the noisy counts, before every sweep."""
        ...

    def log_given(
        self, noisy: list[IntArray], true: list[IntArray], level: int, node: int, grid: IntArray
    ) -> FloatArray:
        """log P(released | noisy) up to a constant, with the noisy count of one node on a grid.

        Rows are chains; `grid` has a row a chain.
        """
        ...

    def log_family(
        self, rows: IntArray, true: list[IntArray], level: int, parent: int
    ) -> FloatArray:
        """log P(counts of a parent's children | their noisy counts), a row a chain."""
        ...

    def log_root(self, noisy: list[IntArray], total: IntArray) -> FloatArray:
        """log P(what is known of the root | its true count), one row a chain."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Chains:
    """Draws of the cells: chains × kept sweeps × cells."""

    hierarchy: Hierarchy
    cells: IntArray


def run(
    hierarchy: Hierarchy,
    noise: tuple[Noise, ...],
    making: Making,
    prior: Prior,
    *,
    chains: int,
    sweeps: int,
    warmup: int,
    rng: np.random.Generator,
    cells: IntArray | None = None,
) -> Chains:
    """Chains from overdispersed starts; `warmup` sweeps are dropped.

    Where some counts are exact, `cells` must agree with them to begin with.
    """
    sampler = _Sampler(hierarchy, noise, making, prior, chains, rng, cells)
    kept = np.empty((chains, sweeps, hierarchy.cells), np.int64)
    for sweep in range(-warmup, sweeps):
        sampler.sweep()
        if sweep >= 0:
            kept[:, sweep] = sampler.true[-1]
    return Chains(hierarchy=hierarchy, cells=kept)


class _Sampler:
    """The state of all chains: true and noisy counts of every level, a row a chain."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        noise: tuple[Noise, ...],
        making: Making,
        prior: Prior,
        chains: int,
        rng: np.random.Generator,
        cells: IntArray | None,
    ) -> None:
        self.hierarchy, self.noise, self.making = hierarchy, noise, making
        self.prior, self.rng = prior, rng
        self.noisy = [np.tile(each, (chains, 1)) for each in making.start()]
        self.paths = self._paths()
        self.regions = self._regions()
        self.shared = self._shared()
        away = 2 * np.sqrt(noise[-1].variances()) * rng.standard_normal(self.noisy[-1].shape)
        if cells is None:
            upper = np.iinfo(np.int64).max if prior.upper is None else prior.upper
            start = np.clip(self.noisy[-1] + np.rint(away), 0, upper).astype(np.int64)
            start = _within_total(start, prior.upper_total)
        else:
            start = self._stirred(np.tile(cells, (chains, 1)), away)
        levels = [start]
        for offsets in reversed(hierarchy.offsets):
            levels.append(np.add.reduceat(levels[-1], offsets[:-1], axis=1))
        self.true = list(reversed(levels))

    def _paths(self) -> IntArray:
        """For each cell, the position of its ancestor at every level."""
        depth = len(self.hierarchy.offsets)
        path = np.empty((depth + 1, self.hierarchy.cells), np.int64)
        path[depth] = np.arange(self.hierarchy.cells)
        for level in range(depth, 0, -1):
            path[level - 1] = self.hierarchy.parents(level)[path[level]]
        return path

    def _regions(self) -> dict[int, IntArray]:
        """For each cell below an exact count, the cells with the same nearest one; itself alone
        where it is exact.
        """
        nearest = np.full(self.hierarchy.cells, -1)
        first = 0
        for noise, path in zip(self.noise, self.paths, strict=True):
            exact = noise.variances() == 0.0
            nearest = np.where(exact[path], first + path, nearest)
            first += len(exact)
        return {
            int(cell): np.flatnonzero(nearest == nearest[cell])
            for cell in np.flatnonzero(nearest >= 0)
        }

    def _shared(self) -> list[tuple[IntArray, IntArray]]:
        """For every parent, how many children are not exact, and what the exact ones count."""
        found = []
        for level, offsets in enumerate(self.hierarchy.offsets, start=1):
            exact = self.noise[level].variances() == 0.0
            free = np.add.reduceat((~exact).astype(np.int64), offsets[:-1])
            noisy = self.noisy[level][0] if self.noisy[level].size else np.zeros(len(exact))
            known = np.where(exact, noisy, 0).astype(np.int64)
            found.append((free, np.add.reduceat(known, offsets[:-1])))
        return found

    def _partner(self, cell: int) -> int | None:
        """Another cell that can take what a cell gives; None where there is none."""
        others = self.regions[cell]
        others = others[others != cell]
        return int(self.rng.choice(others)) if len(others) else None

    def _stirred(self, cells: IntArray, away: FloatArray) -> IntArray:
        """Cells after about so much has gone from each to another one of its region."""
        for cell in self.regions:
            other = self._partner(cell)
            if other is not None:
                moved = np.rint(away[:, cell]).astype(np.int64)
                moved = np.clip(moved, -cells[:, cell], cells[:, other])
                cells[:, cell] += moved
                cells[:, other] -= moved
        return cells

    def sweep(self) -> None:
        """Every unknown noisy count once, and every cell once."""
        self.making.renew(self.noisy, self.rng)
        for level in range(len(self.true)):
            if self.making.moves(level):
                for node in range(self.true[level].shape[1]):
                    self._draw_noisy(level, node)
                for parent in range(self.true[level - 1].shape[1]):
                    for _ in range(JUMPS):
                        self._jump(level, parent)
        for cell in range(self.hierarchy.cells):
            if cell not in self.regions:
                self._draw_true(cell)
            elif (other := self._partner(cell)) is not None:
                self._exchange(cell, other)

    def _law(self, level: int, node: int) -> IntegerLaw:
        return self.noise[level].laws[int(self.noise[level].which[node])]

    def _far(self, law: IntegerLaw) -> IntArray:
        return np.arange(-reach(law, SAMPLED), reach(law, SAMPLED) + 1)

    def _draw_noisy(self, level: int, node: int) -> None:
        law, true = self._law(level, node), self.true[level][:, node]
        grid = true[:, None] + self._far(law)
        logs = self.making.log_noise(level, law, grid, true[:, None])
        logs = logs + self.making.log_given(self.noisy, self.true, level, node, grid)
        self.noisy[level][:, node] = choose(grid, logs, self.noisy[level][:, node], self.rng)

    def _jump(self, level: int, parent: int) -> None:
        """Fresh noise for all children of a parent; the proposal's law cancels in the ratio."""
        here = self.hierarchy.children(level - 1, parent)
        old = self.noisy[level][:, here]
        fresh = self.true[level][:, here].copy()
        for i in range(fresh.shape[1]):
            law = self._law(level, here.start + i)
            fresh[:, i] = self.making.fresh(level, law, fresh[:, i], self.rng)
        logs = self.making.log_family(fresh, self.true, level - 1, parent)
        logs = logs - self.making.log_family(old, self.true, level - 1, parent)
        taken = np.log(self.rng.random(len(fresh))) < logs
        self.noisy[level][taken, here] = fresh[taken]

    def _draw_true(self, cell: int) -> None:
        old = self.true[-1][:, cell]
        grid, logs = self._grid(cell)
        change = grid - old[:, None]
        logs = logs + self._log_cell(cell, grid)
        for level in range(len(self.true)):
            logs = logs + self._log_node(level, self.paths[level, cell], change)
        self._move(cell, choose(grid, logs, old, self.rng) - old)

    def _exchange(self, cell: int, other: int) -> None:
        """Draw a cell given its sum with another one."""
        old = self.true[-1][:, cell]
        grid, logs = self._grid(cell)
        change = grid - old[:, None]
        rest = self.true[-1][:, [other]] - change
        logs = np.where(rest < 0, -np.inf, logs + self._log_cell(cell, grid))
        logs = logs + self._log_cell(other, np.maximum(rest, 0))
        for level in range(1, len(self.true)):
            here, there = self.paths[level, [cell, other]].tolist()
            if here != there:
                logs = logs + self._log_node(level, here, change)
                logs = logs + self._log_node(level, there, -change)
        moved = choose(grid, logs, old, self.rng) - old
        self._move(cell, moved)
        self._move(other, -moved)

    def _grid(self, cell: int) -> tuple[IntArray, FloatArray]:
        """Counts of a cell around its noisy count, a row a chain, and which are none (-inf)."""
        centre = np.maximum(self.noisy[-1][:, cell], 0)[:, None]
        counts = centre + self._far(self._law(len(self.true) - 1, cell))
        return np.maximum(counts, 0), np.where(counts < 0, -np.inf, 0.0)

    def _log_cell(self, cell: int, grid: IntArray) -> FloatArray:
        """The prior of a cell."""
        logs = self.prior.log_cells(np.full(grid.size, cell), grid.ravel())
        return np.asarray(logs.reshape(grid.shape))

    def _log_node(self, level: int, node: int, change: IntArray) -> FloatArray:
        """What is known of a node, its count changed by so much."""
        count = self.true[level][:, [node]] + change
        logs = self._log_shared(level, node, count)
        if level == 0:
            prior = self.prior.log_total(count.ravel(), self.hierarchy.cells)
            return self.making.log_root(self.noisy, count) + prior.reshape(count.shape) + logs
        if not self.noisy[level].size:
            return logs
        value = self.noisy[level][:, [node]]
        return self.making.log_noise(level, self._law(level, node), value, count) + logs

    def _log_shared(self, level: int, node: int, count: IntArray) -> FloatArray:
        """What a nested prior says about the count of a parent."""
        if level == len(self.hierarchy.offsets) or not self.prior.nested:
            return np.zeros(count.shape)
        children, known = self.shared[level]
        left = np.maximum(count.ravel() - known[node], 0)
        return self.prior.log_parents(children[node], left).reshape(count.shape)

    def _move(self, cell: int, moved: IntArray) -> None:
        for level in range(len(self.true)):
            self.true[level][:, self.paths[level, cell]] += moved


def _within_total(cells: IntArray, most: int | None) -> IntArray:
    """Cells scaled down where they add up to more than the prior allows: nothing leads back."""
    if most is None:
        return cells
    sums = np.maximum(cells.sum(axis=1, keepdims=True), 1)
    return np.where(sums > most, cells * min(most, 1 << 30) // sums, cells)


def choose(grid: IntArray, logs: FloatArray, old: IntArray, rng: np.random.Generator) -> IntArray:
    """An entry of each row of a grid, by its log weight; the old one where all are -inf."""
    largest = logs.max(axis=1, keepdims=True)
    possible = np.isfinite(largest[:, 0])
    weights = np.cumsum(np.exp(logs - np.where(np.isfinite(largest), largest, 0.0)), axis=1)
    at = (weights < rng.random((len(grid), 1)) * weights[:, -1:]).sum(axis=1)
    chosen = grid[np.arange(len(grid)), np.minimum(at, grid.shape[1] - 1)]
    return np.where(possible, chosen, old)
