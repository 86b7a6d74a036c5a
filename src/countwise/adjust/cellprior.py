"""The distribution of the cells, learned from their noisy counts.

Nonparametric maximum likelihood (Kiefer & Wolfowitz 1956) by EM: true counts are spread over
blocks, uniformly within each, and the weights of the blocks are those under which the noisy
counts are most probable. Half a cell is added to every block, so that a few scattered cells
do not pass for a pattern. Blocks are single counts near zero and as wide as a third of the
noise's standard deviation above; counts beyond the last block share a flat tail, where nothing
is learned and nothing needs to be.

Only noisy counts are used, so learning costs no privacy.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.privacy.laws import IntegerLaw

MOST_BLOCKS = 600
ROUNDS = 300
RARE = 0.05  # chance that noise alone carries any empty cell out of the doubtful range
HALF = 0.5
LEAST = 1e-300


@dataclass(frozen=True, kw_only=True)
class CellPrior:
    """Weights of the blocks that begin at `starts`; the last block, from its start on, is flat."""

    starts: IntArray
    weights: FloatArray
    tail: float

    def log_table(self) -> FloatArray:
        """log P(N = x) for x = 0, 1, …; the last entry holds for every larger x too."""
        widths = np.diff(self.starts)
        chances = np.repeat(self.weights[:-1] / widths, widths)
        chances = np.append(chances, self.weights[-1] / self.tail)
        return np.asarray(np.log(np.maximum(chances, LEAST)))


def fit_prior(noisy: IntArray, law: IntegerLaw) -> CellPrior:
    """The prior of largest likelihood, with emptiness preferred where it explains as much.

    Noise makes empty cells look like small counts, and the weights of blocks near zero are the
    least certain. If all of them but zero can go for less than 2·log n in twice the
    log-likelihood, n being the number of cells that near, they go.
    """
    values, times = np.unique(noisy, return_counts=True)
    starts, tail = _blocks(int(values[-1]), sqrt(law.variance))
    likelihood = _likelihood(values, law, starts, tail)
    weights, best = _maximise(likelihood, times)
    reach = int(law.isf(RARE / len(noisy)))
    doubtful = (starts > 0) & (starts <= reach)
    doubtful[-1] = False
    near = int((noisy <= reach).sum())
    fewer = likelihood[:, ~doubtful]
    if near and (fewer.max(axis=1) > 0).all():
        sparse, reached = _maximise(fewer, times)
        if 2 * (best - reached) < 2 * log(near):
            weights = np.zeros(len(starts))
            weights[~doubtful] = sparse
    return CellPrior(starts=frozen(starts), weights=frozen(weights), tail=tail)


def _blocks(largest: int, spread: float) -> tuple[IntArray, float]:
    """Where the blocks begin, the tail's last, and over how many counts the tail is spread."""
    width = max(int(spread / 3), 1)
    end = min(max(largest, 0) + int(4 * spread) + 1, MOST_BLOCKS * width)
    near = np.arange(min(int(3 * spread) + 2, end + 1))
    starts = np.concatenate([near, np.arange(len(near), end + 1, width), [end + 1]])
    return starts.astype(np.int64), max(largest - end, 1) + 50 * spread


def _likelihood(values: IntArray, law: IntegerLaw, starts: IntArray, tail: float) -> FloatArray:
    """P(noisy value | block): the noise law summed over the block, by its width."""
    above = law.sf(values[:, None] - starts)
    inside = np.diff(above, axis=1) / np.diff(starts)
    return np.column_stack([inside, (1 - above[:, -1]) / tail])


def _maximise(likelihood: FloatArray, times: IntArray) -> tuple[FloatArray, float]:
    """EM from equal weights; returns them with the log-likelihood reached."""
    blocks = likelihood.shape[1]
    weights = np.full(blocks, 1 / blocks)
    total = times.sum() + HALF * blocks
    for _ in range(ROUNDS):
        weights = (weights * (likelihood.T @ (times / (likelihood @ weights))) + HALF) / total
    return weights, float(times @ np.log(likelihood @ weights))
