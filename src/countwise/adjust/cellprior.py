"""The distribution of the cells of a pool, learned from their noisy counts.

Nonparametric maximum likelihood (Kiefer & Wolfowitz 1956) by EM: true counts are spread over
blocks, uniformly within each, and the weights of the blocks are those under which the noisy
counts are most probable. One cell in all is added, shared by the blocks, so that none is
impossible. Blocks are single counts near zero and as wide as a third of the noise's standard
deviation above; counts beyond the last block share a flat tail, where nothing is learned and
nothing needs to be.

Only noisy counts are used, so learning costs no privacy.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.privacy.laws import IntegerLaw

MOST_BLOCKS = 600
ROUNDS = 60
ADDED = 1.0  # cells, shared by all blocks
RARE = 0.05  # chance that noise alone carries any empty cell out of the doubtful range
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


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A prior, and of each noisy cell its log-likelihood, mean and variance under it."""

    prior: CellPrior
    logs: FloatArray
    means: FloatArray
    variances: FloatArray


def fit_cells(noisy: IntArray, law: IntegerLaw) -> tuple[Fit, Fit | None, float]:
    """The fit of largest likelihood, one with emptiness in place of small counts, and its price.

    Noise makes empty cells look like small counts, and the weights of blocks near zero are the
    least certain. In the second fit all of them but zero are gone. It is preferred if that costs
    less than the price, log n, in twice the log-likelihood, n being the number of cells that near;
    the caller may know more than the cells say. None where it can not explain them at all.
    """
    values, where, times = np.unique(noisy, return_inverse=True, return_counts=True)
    starts, tail = _blocks(int(values[-1]), sqrt(law.variance))
    likelihood = _likelihood(values, law, starts, tail)

    def made(weights: FloatArray) -> Fit:
        prior = CellPrior(starts=frozen(starts), weights=frozen(weights), tail=tail)
        mean, variance = _moments(likelihood * weights, starts, values, law)
        logs = np.log(likelihood @ weights)
        return Fit(prior=prior, logs=logs[where], means=mean[where], variances=variance[where])

    full = made(maximise(likelihood, times))
    reach = int(law.isf(RARE / len(noisy)))
    doubtful = (starts > 0) & (starts <= reach)
    doubtful[-1] = False
    near = int((noisy <= reach).sum())
    fewer = likelihood[:, ~doubtful]
    if not near or not (fewer.max(axis=1) > 0).all():
        return full, None, 0.0
    weights = np.zeros(len(starts))
    weights[~doubtful] = maximise(fewer, times)
    return full, made(weights), log(near)


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


def _moments(
    weights: FloatArray, starts: IntArray, values: IntArray, law: IntegerLaw
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the count behind each value, blocks taken at their middle.

    In the tail the noisy count is all there is.
    """
    chances = weights / weights.sum(axis=1, keepdims=True)
    width = np.diff(starts)
    middle = starts[:-1] + (width - 1) / 2
    inside, tail = chances[:, :-1], chances[:, -1]
    mean = inside @ middle + tail * values
    square = inside @ (middle**2 + (width**2 - 1) / 12) + tail * (values**2 + law.variance)
    return mean, np.maximum(square - mean**2, 0.0)


def maximise(likelihood: FloatArray, times: IntArray | FloatArray) -> FloatArray:
    """The weights of the columns that EM reaches from equal ones."""
    columns = likelihood.shape[1]
    weights = np.full(columns, 1 / columns)
    total, added = times.sum() + ADDED, ADDED / columns
    for _ in range(ROUNDS):
        weights = (weights * (likelihood.T @ (times / (likelihood @ weights))) + added) / total
    return weights
