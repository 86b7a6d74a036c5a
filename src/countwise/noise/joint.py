"""Noise that adds up by construction.

The noise z of the cells is drawn from pmf(z) ∝ exp(-Σ |z_v|/scale_v), the sum running over all
nodes v of the tree and z_v being the sum of the noise below v. Released counts N + z then add
up at every level as they are. One person moves the counts of a level by at most its
sensitivity, so the ratio of probabilities is at most the product of what independent noise
would give: the same privacy loss, for less noise.

As a function of the true counts the likelihood is that of independent geometric noise, so
inference needs nothing new.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import pi

import numpy as np
from scipy.special import log_ndtr

from countwise.arrays import BoolArray, IntArray
from countwise.errors import PlanError
from countwise.noise.laws import IntegerLaw

MOST_DRAWS = 4 * 10**9  # 200 times QUICK_DRAWS: a quarter of an hour
QUICK_DRAWS = 2 * 10**7  # a few seconds
CELLS_A_TRIAL = 1 << 17  # drawn at once when few nodes are left: a megabyte
TOO_RARE = (
    "joint noise on a tree of this shape is drawn too rarely to wait for. To fix, use mechanism "
    "geometric, or fewer levels."
)

Sample = Callable[[IntegerLaw, int], IntArray]
Magnitude = Callable[[Fraction, int], IntArray]


def joint_noise(
    offsets: Sequence[IntArray],
    laws: Sequence[IntegerLaw],
    *,
    sample: Sample,
    magnitude: Magnitude,
    exact: tuple[BoolArray, ...] | None = None,
) -> IntArray:
    """Noise of the cells of a tree, such that its sums are zero where counts are exact.

    The children of node i are offsets[d][i] to offsets[d][i + 1] - 1 of the level below, as in
    `countwise.tables.hierarchy`.
    `sample` draws a noise law, `magnitude` the G ≥ 0 with P(G ≥ g) = exp(-g/scale). With exact
    ones the joint law is exact.
    """
    trials = _Trials(offsets, laws, sample, magnitude, exact)
    return trials.subtrees(0, np.zeros(1, dtype=np.int64))[0]


def expected_draws(sizes: Sequence[int], laws: Sequence[IntegerLaw]) -> float:
    """About how many draws joint noise takes on a tree of even fan-outs.

    The sum of a node's subtrees is taken as normal with variance s², and is kept with probability
    E exp(-|Z|/scale) = 2 exp(u²/2) Φ(-u), u = s/scale; what is kept has the variance below.
    """
    variance, draws = laws[-1].variance, float(sizes[-1])
    for above, below, law in zip(sizes[-2::-1], sizes[:0:-1], laws[-2::-1], strict=True):
        variance *= below / above
        if not law.scale:
            u = variance**0.5  # a sum of whole numbers is kept where it is zero
            kept, ratio = 1 / (1 + 2.5 * u), 0.0
        else:
            u = variance**0.5 / float(law.scale)
            kept = 2 * float(np.exp(u * u / 2 + log_ndtr(-u)))
            ratio = 1 + u * u - u * (2 / pi) ** 0.5 / kept
        draws /= kept
        variance *= max(ratio, 0.0)
    return draws


def refuse_rare(sizes: Sequence[int], laws: Sequence[IntegerLaw]) -> None:
    """Refuse joint noise that would take too many draws, before any is made."""
    if expected_draws(sizes, laws) > MOST_DRAWS:
        raise PlanError(TOO_RARE)


class _Trials:
    """Rejection, subtree by subtree, without sight of any data.

    The noise of a node's subtrees is drawn from their own laws and kept with probability
    exp(-|z_v|/scale_v), that is, when |z_v| ≤ G.
    """

    def __init__(
        self,
        offsets: Sequence[IntArray],
        laws: Sequence[IntegerLaw],
        sample: Sample,
        magnitude: Magnitude,
        exact: tuple[BoolArray, ...] | None,
    ) -> None:
        self.offsets, self.laws = offsets, laws
        self.sample, self.magnitude, self.exact = sample, magnitude, exact
        self.drawn = 0

    def subtrees(self, level: int, nodes: IntArray) -> tuple[IntArray, IntArray]:
        """Noise of the cells below each of the given nodes of a level, and the nodes' sums."""
        if level == len(self.laws) - 1:
            return self._leaves(nodes)
        offsets = self.offsets[level]
        first, count = offsets[nodes], offsets[nodes + 1] - offsets[nodes]
        size = self._cells_below(level)[nodes]
        start = np.cumsum(size) - size
        cells, sums = np.empty(size.sum(), dtype=np.int64), np.empty(len(nodes), dtype=np.int64)
        pending, copies = np.arange(len(nodes)), 1
        while len(pending):
            tried = np.repeat(pending, copies)
            below, parts = self.subtrees(level + 1, spans(first[tried], count[tried]))
            total = np.add.reduceat(parts, np.cumsum(count[tried]) - count[tried])
            kept = np.flatnonzero(np.abs(total) <= self._reach(level, nodes[tried]))
            chosen, first_kept = np.unique(tried[kept], return_index=True)
            winners = kept[first_kept]
            begin = (np.cumsum(size[tried]) - size[tried])[winners]
            cells[spans(start[chosen], size[chosen])] = below[spans(begin, size[chosen])]
            sums[chosen] = total[winners]
            pending = np.setdiff1d(pending, chosen, assume_unique=True)
            if copies * size[pending].sum() < CELLS_A_TRIAL:
                copies *= 2  # where few nodes are left, many trials at once
        return cells, sums

    def _reach(self, level: int, nodes: IntArray) -> IntArray:
        scale, size = self.laws[level].scale, len(nodes)
        reach = self.magnitude(scale, size) if scale else np.zeros(size, dtype=np.int64)
        return self._none_where_exact(level, nodes, reach)

    def _none_where_exact(self, level: int, nodes: IntArray, values: IntArray) -> IntArray:
        return values if self.exact is None else np.where(self.exact[level][nodes], 0, values)

    def _leaves(self, nodes: IntArray) -> tuple[IntArray, IntArray]:
        self.drawn += len(nodes)
        if self.drawn > MOST_DRAWS:
            raise PlanError(TOO_RARE)
        noise = self.sample(self.laws[-1], len(nodes))
        noise = self._none_where_exact(len(self.laws) - 1, nodes, noise)
        return noise, noise

    def _cells_below(self, level: int) -> IntArray:
        """Number of cells below each node of a level."""
        start = self.offsets[level]
        for offsets in self.offsets[level + 1 :]:
            start = offsets[start]
        return np.diff(start)


def spans(first: IntArray, count: IntArray) -> IntArray:
    """first[0], first[0]+1, … count[0] of them, then those of first[1], and so on."""
    before = np.cumsum(count) - count
    return np.repeat(first - before, count) + np.arange(count.sum())
