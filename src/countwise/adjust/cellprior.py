"""The distribution of the counts of a pool of nodes, learned from their noisy values.

True counts are spread over blocks, uniformly within each, and the weights of the blocks are those
under which what is seen is most probable (`mixture`). Blocks are narrow near zero, where the noise
allows to tell counts apart, and grow with the counts: a lone large cell must not be taken for a
law of its own, as it would be in a block no wider than its noise. How fast they grow is chosen by
how probable each node is when the weights are learned from the others. Counts beyond the last
block share a flat tail.

Only noisy counts are used, so learning costs no privacy.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from countwise.adjust.mixture import ADDED, LEAST, Components, maximise
from countwise.adjust.observations import ErrorLaw, Observations
from countwise.adjust.tree_least_squares import SMALLEST_VARIANCE
from countwise.arrays import BoolArray, FloatArray, IntArray, frozen

GROWTHS = (1.0, 0.25)  # width of a block by where it begins, coarse to fine
RARE = 0.05  # chance that noise alone carries any empty cell out of the doubtful range
NEAR = 16  # blocks near zero, to a standard deviation of the noise


@dataclass(frozen=True, kw_only=True, eq=False)
class CellPrior:
    """Weights of the blocks that begin at `starts`; the last block, from its start on, is flat."""

    starts: IntArray
    weights: FloatArray
    tail: float

    def logs(self, x: IntArray) -> FloatArray:
        """log P(N = x)."""
        widths = np.append(np.diff(self.starts), self.tail)
        logs = np.log(np.maximum(self.weights / widths, LEAST))
        return np.asarray(logs[np.searchsorted(self.starts, x, side="right") - 1])


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Blocks of counts, as components that explain what is seen of nodes."""

    seen: Observations
    starts: IntArray
    tail: float
    doubtful: BoolArray
    """Blocks of counts so small that noise makes them of empty cells."""

    def keys(self, nodes: IntArray) -> IntArray:
        """Nodes with the same key have the same components."""
        values = self.seen.values[nodes]
        return np.asarray(
            self.seen.which[nodes] * (int(np.ptp(values)) + 1) + values - values.min()
        )

    def components(self, nodes: IntArray) -> Components:
        """Every block's likelihood of every node, and the moments of a count in it.

        In a block narrower than the noise the count is anywhere, in a wider one it is as near to
        the noisy value as the block allows.
        """
        ends = np.append(self.starts[1:] - 1.0, np.inf)
        flat = ((ends - self.starts + 1) ** 2 - 1) / 12
        middle = np.append((self.starts[:-1] + ends[:-1]) / 2, self.starts[-1])
        shape = len(nodes), len(self.starts)
        likelihood, means, variances = np.empty(shape), np.empty(shape), np.empty(shape)
        for law, places in self.seen.by_law(nodes):
            values = self.seen.values[nodes[places]][:, None]
            wide = np.minimum(flat / max(law.variance, SMALLEST_VARIANCE), 1.0)
            likelihood[places] = block_likelihood(values, law, self.starts, self.tail)
            near = np.clip(values, self.starts, ends)
            means[places] = wide * near + (1 - wide) * middle
            variances[places] = np.minimum(flat, law.variance)
        return Components(likelihood=likelihood, means=means, variances=variances)

    def sparse(self, likelihood: FloatArray, times: FloatArray) -> FloatArray:
        """Weights with emptiness in place of small counts, which keep the chance of one node.

        Noise makes empty cells look like small counts, and the weights of blocks near zero are
        the least certain.
        """
        weights = np.zeros(likelihood.shape[1])
        weights[~self.doubtful] = maximise(likelihood[:, ~self.doubtful], times)
        share = ADDED / (times.sum() + ADDED)
        return np.asarray((1 - share) * weights + share / len(weights))

    def prior(self, weights: FloatArray) -> CellPrior:
        """The distribution of a count that the weights make."""
        return CellPrior(starts=frozen(self.starts), weights=frozen(weights), tail=self.tail)


def resolved_blocks(seen: Observations, nodes: IntArray) -> Blocks:
    """The coarsest blocks that finer ones do not clearly beat in explaining some nodes.

    Clearly is by more than log n in twice the log-likelihood of nodes left out.
    """
    kept, best = None, -np.inf
    laws = [law for law, _ in seen.by_law(nodes)]
    sharpest = min(laws, key=lambda law: law.variance)
    for growth in GROWTHS:
        blocks = _blocks(seen, nodes, sharpest, growth)
        _, first, times = np.unique(blocks.keys(nodes), return_index=True, return_counts=True)
        likelihood = blocks.components(nodes[first]).likelihood
        left_out = _left_out(likelihood, maximise(likelihood, times), times)
        score = float(times @ left_out)
        if kept is None or 2 * (score - best) > log(len(nodes)):
            kept, best = blocks, score
    assert kept is not None
    return kept


def _blocks(seen: Observations, nodes: IntArray, law: ErrorLaw, growth: float) -> Blocks:
    """Blocks up to the largest value; one begins where noise alone hardly reaches."""
    reach = int(law.isf(RARE / len(nodes)))
    spread, largest = sqrt(law.variance), int(seen.values[nodes].max())
    starts = [0, *range(1, int(3 * spread) + 2, max(int(spread / NEAR), 1))]
    while starts[-1] <= max(largest, 0) + int(4 * spread) + 1:
        following = starts[-1] + max(int(spread / 3), int(growth * starts[-1]), 1)
        starts.append(reach + 1 if starts[-1] <= reach < following else following)
    begin = np.array(starts, dtype=np.int64)
    doubtful = (begin > 0) & (begin <= reach)
    doubtful[-1] = False
    return Blocks(seen=seen, starts=begin, tail=begin[-1] + 50 * spread, doubtful=doubtful)


def block_likelihood(values: IntArray, law: ErrorLaw, starts: IntArray, tail: float) -> FloatArray:
    """P(value | block): the law of the error summed over the block, by its width."""
    above = law.sf(values - starts)
    inside = np.diff(above, axis=1) / np.diff(starts)
    return np.column_stack([inside, (1 - above[:, -1]) / tail])


def _left_out(likelihood: FloatArray, weights: FloatArray, times: IntArray) -> FloatArray:
    """log P(value) when its own node is taken back out of the weights.

    The weights are sums of the nodes' posterior chances of each block, so one node's can be
    subtracted; what was added to every block stays.
    """
    total, chance = times.sum() + ADDED, np.maximum(likelihood @ weights, LEAST)
    others = total * chance - (likelihood**2 @ weights) / chance
    added = likelihood.sum(axis=1) * ADDED / len(weights)
    return np.asarray(np.log(np.maximum(np.maximum(others, added) / (total - 1), LEAST)))
