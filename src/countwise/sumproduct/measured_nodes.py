"""Ties of nodes that each have noisy values of their own: parents are sums, nothing else.

The joint law is Π_cells prior(N_s) · Π_nodes P(values of the node | N_node), with the count of
every parent the sum of its children's: coupled sums, all parents of a level at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels import coupled
from countwise.negligible import SMALLEST, WINDOW
from countwise.sumproduct.count_laws import Laws, from_logs, grid, window_offsets
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import node_noise
from countwise.sumproduct.priors import ExceptKnown, Prior
from countwise.sumproduct.step_mixture import Steps, laid_out
from countwise.sumproduct.tree import Family, TotalPrior
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True, eq=False)
class MeasuredTies:
    """What was seen of each level's nodes, the prior of the cells, and the windows in use."""

    hierarchy: Hierarchy
    seen: tuple[tuple[Evidence, ...], ...]
    prior: Prior
    depths: tuple[FloatArray, ...]
    lows: tuple[IntArray, ...]
    highs: tuple[IntArray, ...]
    shared: tuple[tuple[IntArray, IntArray], ...] | None = None
    """Of a nested prior: among how many children every parent's count is divided, and what of it
    is known to be with others."""

    @property
    def largest(self) -> int:
        """The largest count in any window of a cell."""
        return int(self.highs[-1].max())

    @property
    def additive(self) -> bool:
        """A parent is the sum of its children, and nothing else is known of them together."""
        return True

    @property
    def cost(self) -> float:
        """Never so much that another route would be quicker."""
        return 0.0

    def own(self, level: int, first: int, last: int, log_total: TotalPrior | None = None) -> Laws:
        """Likelihood of the node's own values; of cells, times the prior."""
        lows, highs = self.lows[level][first:last], self.highs[level][first:last]
        offsets = window_offsets(lows, highs)
        nodes = np.repeat(np.arange(first, last), np.diff(offsets))
        x = grid(lows, offsets)
        logs = np.zeros(len(x))
        for seen in self.seen[level]:
            logs += seen.logs(nodes, x)
        if level == len(self.hierarchy.offsets):
            logs += self.prior.log_cells(nodes, x)
        if log_total is not None:
            logs += log_total(x)
        if self.shared is not None and level < len(self.hierarchy.offsets):
            children, known = self.shared[level]
            logs += self.prior.log_parents(children[nodes], np.maximum(x - known[nodes], 0))
        return from_logs(lows, highs, logs)

    def up(self, level: int, first: int, last: int, children: Laws, own: Laws) -> Laws:
        """The law of each parent's sum times the parent's own likelihood."""
        solved = self._solve(level, first, last, children, own, downward=False)
        return Laws(lows=own.lows, offsets=own.offsets, values=solved.sums)

    def down(self, level: int, first: int, last: int, children: Laws, coupling: Laws) -> Family:
        """Marginals of the children, and what the rest says about each."""
        solved = self._solve(level, first, last, children, coupling, downward=True)
        return Family(
            Laws(lows=children.lows, offsets=children.offsets, values=solved.marginals),
            Laws(lows=children.lows, offsets=children.offsets, values=solved.messages),
            Laws(lows=coupling.lows, offsets=coupling.offsets, values=solved.sums),
        )

    def _solve(
        self, level: int, first: int, last: int, children: Laws, coupling: Laws, *, downward: bool
    ) -> coupled.LevelSolutions:
        groups = self.hierarchy.offsets[level][first : last + 1]
        return coupled.level(
            children.values,
            children.offsets,
            lows=children.lows,
            groups=groups - groups[0],
            couplings=coupling.values,
            coupling_offsets=coupling.offsets,
            coupling_lows=coupling.lows,
            downward=downward,
        )

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """A single step, of the children as they are."""
        del level, parent
        everyone = np.arange(children.nodes)
        bounds = np.array([0, children.nodes])
        return laid_out(children, everyone, bounds, children.lows, children.highs)

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """None: the root is drawn first."""
        del children, low, coupling, count, rng
        return None

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> "MeasuredTies | None":
        """Twice the depth at every node that was touched; None when no window grows.

        Mass at 0 or at the end of the prior is no reason: nothing lies beyond.
        """
        upper = self.prior.upper
        depths = []
        for level, (low, high) in enumerate(touched):
            last = level == len(self.hierarchy.offsets) and upper is not None
            start = self.lows[level] > 0 if self.prior.lower == 0 else True
            more = (low & start) | (high & ~(last & (self.highs[level] == upper)))
            deepest = more & (self.depths[level] >= SMALLEST) & (self._noise(level) > 0.0)
            if deepest.any():
                raise InputError(self._named(level, deepest))
            deeper = np.minimum(2 * self.depths[level], SMALLEST)
            depths.append(np.where(more, deeper, self.depths[level]))
        wider = measured(self.hierarchy, self.seen, self.prior, depths=depths)
        wider = replace(wider, shared=self.shared)
        same = all(
            np.array_equal(a, b) and np.array_equal(c, d)
            for a, b, c, d in zip(self.lows, wider.lows, self.highs, wider.highs, strict=True)
        )
        return None if same else wider

    def _noise(self, level: int) -> FloatArray:
        """The variance of the least noise of each node; 0 where it has no value of its own."""
        variances = [seen.noise.variances() for seen in self.seen[level]]
        return np.min(variances, axis=0, initial=np.inf) if variances else np.zeros(1)

    def contradiction(self, touched: list[tuple[BoolArray, BoolArray]]) -> str:
        """Which noisy value can not go with the prior, or with the other noisy values."""
        level = next(i for i, (low, high) in enumerate(touched) if (low | high).any())
        while not self.seen[level]:
            level += 1
        low, high = touched[level]
        return self._named(level, low | high)

    def _named(self, level: int, nodes: BoolArray) -> str:
        last = len(self.hierarchy.offsets)
        if self.prior.upper is not None and (self.seen[last][0].values > self.prior.upper).any():
            level, nodes = last, self.seen[last][0].values > self.prior.upper
        values = self.seen[level][0].values
        node = int(np.argmax(np.where(nodes, np.abs(values), -1)))
        return (
            f"the noisy count {values[node]:,} of {named(self.hierarchy, level, node)} contradicts "
            f"the prior ({self.prior.words()}) or the other noisy counts: together they have a "
            f"probability below e^-{SMALLEST:.0f}. To fix, choose another prior, or check epsilon."
        )


def seen_by(
    measurements: Sequence[Measurements], prior: Prior, *, depth: float = WINDOW
) -> MeasuredTies:
    """Ties of a hierarchy given every noisy value of every node; exact counts need no prior."""
    noises = [node_noise(measurement) for measurement in measurements]
    seen = [
        [
            Evidence(noise=noise[level], values=each.noisy[level])
            for each, noise in zip(measurements, noises, strict=True)
        ]
        for level in range(len(measurements[0].hierarchy.sizes))
    ]
    exact = measurements[0].exact
    if exact is not None and exact[-1].any():
        prior = ExceptKnown(prior=prior, known=exact[-1])
    hierarchy = measurements[0].hierarchy
    depths = [np.full(size, depth) for size in hierarchy.sizes]
    ties = measured(hierarchy, seen, prior, depths=depths)
    return replace(ties, shared=_shared(measurements[0])) if prior.nested else ties


def _shared(first: Measurements) -> tuple[tuple[IntArray, IntArray], ...]:
    """For every parent, how many of its children are not exact, and what the exact ones count."""
    found = []
    for level, offsets in enumerate(first.hierarchy.offsets, start=1):
        noisy = first.protected(level)
        free = np.add.reduceat(noisy.astype(np.int64), offsets[:-1])
        known = np.add.reduceat(np.where(noisy, 0, first.noisy[level]), offsets[:-1])
        found.append((free, known))
    return tuple(found)


def measured(
    hierarchy: Hierarchy,
    seen: Sequence[Sequence[Evidence]],
    prior: Prior,
    *,
    depths: Sequence[FloatArray] | None = None,
) -> MeasuredTies:
    """Ties of a hierarchy whose levels have these values, in windows of the given depths."""
    depths = depths or [np.full(size, WINDOW) for size in hierarchy.sizes]
    lows: list[IntArray] = []
    highs: list[IntArray] = []
    for level in range(len(hierarchy.offsets), -1, -1):
        low, high = _window(seen[level], depths[level], prior.lower)
        if level == len(hierarchy.offsets):
            low, high = _within(low, high, seen[level], depths[level], prior.upper)
        else:
            low, high = _below(low, high, hierarchy.offsets[level], lows[-1], highs[-1])
        lows.append(low)
        highs.append(high)
    return MeasuredTies(
        hierarchy=hierarchy,
        seen=tuple(tuple(each) for each in seen),
        prior=prior,
        depths=tuple(depths),
        lows=tuple(reversed(lows)),
        highs=tuple(reversed(highs)),
        shared=_all_shared(hierarchy) if prior.nested else None,
    )


def _all_shared(hierarchy: Hierarchy) -> tuple[tuple[IntArray, IntArray], ...]:
    """As `_shared` where no count is exact."""
    sizes = [np.diff(offsets) for offsets in hierarchy.offsets]
    return tuple((size, np.zeros_like(size)) for size in sizes)


def _window(
    seen: Sequence[Evidence], depth: FloatArray, lower: int | None
) -> tuple[IntArray, IntArray]:
    """The hull of the values of each node, wider by the shortest reach of their noises."""
    if not seen:
        start = 0 if lower == 0 else np.iinfo(np.int64).min
        return np.full(len(depth), start), np.full(len(depth), np.iinfo(np.int64).max)
    ends = [each.window(depth, lower) for each in seen]
    far = np.min([each.noise.reach(depth) for each in seen], axis=0)
    values = np.stack([each.values for each in seen])
    if len(seen) == 1:
        return ends[0]
    if lower is None:
        return values.min(0) - far, values.max(0) + far
    return np.maximum(values.min(0) - far, 0), np.maximum(values.max(0), 0) + far


def _within(
    low: IntArray, high: IntArray, seen: Sequence[Evidence], depth: FloatArray, upper: int | None
) -> tuple[IntArray, IntArray]:
    """Windows of cells, cut where the prior ends.

    Of a cell that was seen beyond that end it is the counts below the end which are left, and
    their likelihood falls from there at least as fast as from the value itself.
    """
    if upper is None:
        return low, high
    far = np.max([each.noise.reach(depth) for each in seen], axis=0, initial=0)
    return np.clip(low, 0, np.maximum(upper - far, 0)), np.minimum(high, upper)


def _below(
    low: IntArray, high: IntArray, offsets: IntArray, lows: IntArray, highs: IntArray
) -> tuple[IntArray, IntArray]:
    """Windows of parents, cut to what their children can add up to where the two meet."""
    least = np.add.reduceat(lows, offsets[:-1])
    most = np.add.reduceat(highs, offsets[:-1])
    meet = (low <= most) & (least <= high)
    return (
        np.where(meet, np.maximum(low, least), low),
        np.where(meet, np.minimum(high, most), high),
    )
