"""The distribution of the cells of a pool, learned from their noisy counts.

Nonparametric maximum likelihood (Kiefer & Wolfowitz 1956) by EM: true counts are spread over
blocks, uniformly within each, and the weights of the blocks are those under which the noisy
counts are most probable. One cell in all is added, shared by the blocks, so that none is
impossible. Blocks are narrow near zero, where the noise allows to tell counts apart, and grow with
the counts: a lone large cell must not be taken for a law of its own, as it would be in a block no
wider than its noise. How fast they grow is chosen by how probable each cell is when the weights
are learned from the others. Counts beyond the last block share a flat tail.

Only noisy counts are used, so learning costs no privacy.
"""

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from countwise.adjust.leastsquares import SMALLEST_VARIANCE
from countwise.arrays import FloatArray, IntArray, frozen
from countwise.privacy.laws import IntegerLaw

GROWTHS = (1.0, 0.25)  # width of a block by where it begins, coarse to fine
ROUNDS = 60
ADDED = 1.0  # cells, shared by all blocks
RARE = 0.05  # chance that noise alone carries any empty cell out of the doubtful range
NEAR = 16  # blocks near zero, to a standard deviation of the noise
LEAST = 1e-300


@dataclass(frozen=True, kw_only=True)
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
    reach = int(law.isf(RARE / len(noisy)))
    starts, likelihood, weights = _resolved(values, times, law, reach)
    tail = _tail(starts, law)

    def made(weights: FloatArray) -> Fit:
        prior = CellPrior(starts=frozen(starts), weights=frozen(weights), tail=tail)
        mean, variance = _moments(likelihood * weights, starts, values, law)
        logs = np.log(likelihood @ weights)
        return Fit(prior=prior, logs=logs[where], means=mean[where], variances=variance[where])

    full = made(weights)
    doubtful = (starts > 0) & (starts <= reach)
    doubtful[-1] = False
    near = int((noisy <= reach).sum())
    fewer = likelihood[:, ~doubtful]
    if not near or not (fewer.max(axis=1) > 0).all():
        return full, None, 0.0
    weights = np.zeros(len(starts))
    weights[~doubtful] = maximise(fewer, times)
    return full, made(weights), log(near)


def _resolved(
    values: IntArray, times: IntArray, law: IntegerLaw, reach: int
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Starts, likelihoods and weights of the coarsest blocks that finer ones do not clearly beat.

    Clearly is by more than log n in twice the log-likelihood of cells left out.
    """
    found, best = None, -np.inf
    for growth in GROWTHS:
        starts = _starts(int(values[-1]), law, growth, reach)
        likelihood = _likelihood(values, law, starts)
        weights = maximise(likelihood, times)
        score = float(times @ _left_out(likelihood, weights, times))
        if found is None or 2 * (score - best) > log(times.sum()):
            found, best = (starts, likelihood, weights), score
    assert found is not None
    return found


def _left_out(likelihood: FloatArray, weights: FloatArray, times: IntArray) -> FloatArray:
    """log P(noisy value) when its own cell is taken back out of the weights.

    The weights are sums of the cells' posterior chances of each block, so one cell's can be
    subtracted; what was added to every block stays.
    """
    total, chance = times.sum() + ADDED, likelihood @ weights
    others = total * chance - (likelihood**2 @ weights) / chance
    added = likelihood.sum(axis=1) * ADDED / len(weights)
    return np.asarray(np.log(np.maximum(others, added) / (total - 1)))


def _starts(largest: int, law: IntegerLaw, growth: float, reach: int) -> IntArray:
    """Where the blocks begin, the tail's last; one begins where noise alone hardly reaches."""
    spread = sqrt(law.variance)
    starts = [0, *range(1, int(3 * spread) + 2, max(int(spread / NEAR), 1))]
    while starts[-1] <= max(largest, 0) + int(4 * spread) + 1:
        following = starts[-1] + max(int(spread / 3), int(growth * starts[-1]), 1)
        starts.append(reach + 1 if starts[-1] <= reach < following else following)
    return np.array(starts, dtype=np.int64)


def _tail(starts: IntArray, law: IntegerLaw) -> float:
    """Over how many counts the tail is spread."""
    return float(starts[-1]) + 50 * sqrt(law.variance)


def _likelihood(values: IntArray, law: IntegerLaw, starts: IntArray) -> FloatArray:
    """P(noisy value | block): the noise law summed over the block, by its width."""
    above = law.sf(values[:, None] - starts)
    inside = np.diff(above, axis=1) / np.diff(starts)
    return np.column_stack([inside, (1 - above[:, -1]) / _tail(starts, law)])


def _moments(
    weights: FloatArray, starts: IntArray, values: IntArray, law: IntegerLaw
) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the count behind each value.

    In a block narrower than the noise the count is anywhere, in a wider one it is as near to the
    noisy value as the block allows.
    """
    chances = weights / weights.sum(axis=1, keepdims=True)
    ends = np.append(starts[1:] - 1.0, np.inf)
    flat = ((ends - starts + 1) ** 2 - 1) / 12
    wide = np.minimum(flat / max(law.variance, SMALLEST_VARIANCE), 1.0)
    middle = np.append((starts[:-1] + ends[:-1]) / 2, starts[-1])
    centre = wide * np.clip(values[:, None], starts, ends) + (1 - wide) * middle
    mean = (chances * centre).sum(axis=1)
    square = (centre - mean[:, None]) ** 2 + np.minimum(flat, law.variance)
    return mean, (chances * square).sum(axis=1)


def maximise(likelihood: FloatArray, times: IntArray | FloatArray) -> FloatArray:
    """The weights of the columns that EM reaches from equal ones."""
    columns = likelihood.shape[1]
    weights = np.full(columns, 1 / columns)
    total, added = times.sum() + ADDED, ADDED / columns
    for _ in range(ROUNDS):
        weights = (weights * (likelihood.T @ (times / (likelihood @ weights))) + added) / total
    return weights
