"""Mixtures of fixed laws, with weights learned from what is seen of the nodes.

Nonparametric maximum likelihood (Kiefer & Wolfowitz 1956) by EM. One node in all is added,
shared by the components, so that none is impossible: whatever the noise leaves plausible keeps
a chance of about 1/(n+1), n being the number of nodes.

How well a mixture explains nodes it did not learn from is what it is judged by: the nodes are
dealt into folds, and the log-likelihood of each fold is taken under the weights of the others.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray

ROUNDS = 60  # of EM: a fixed number, so that no fit takes longer than another
ADDED = 1.0  # nodes, shared by all components
FOLDS = 5  # parts of the nodes, each judged by what the others teach
LEAST = 1e-300  # stands for zero where a logarithm or a ratio is taken
GOLDEN = (sqrt(5) - 1) / 2  # its multiples fall into folds as evenly as can be
MOST_TAUGHT = 100_000  # nodes that weights are learned from; more change nothing
ROWS = 1 << 14  # that are worked on at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """For each row what every component makes of it: likelihood, and moments of the count."""

    likelihood: FloatArray
    means: FloatArray
    variances: FloatArray

    def moments(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of the count of each row."""
        chances = np.maximum(self.likelihood * weights, LEAST)
        chances /= chances.sum(axis=1, keepdims=True)
        mean = (chances * self.means).sum(axis=1)
        return mean, (chances * (self.variances + (self.means - mean[:, None]) ** 2)).sum(axis=1)


def maximise(likelihood: FloatArray, times: IntArray | FloatArray) -> FloatArray:
    """The weights of the columns that EM reaches from equal ones."""
    columns = likelihood.shape[1]
    weights = np.full(columns, 1 / columns)
    total, added = times.sum() + ADDED, ADDED / columns
    for _ in range(ROUNDS):
        explained = np.maximum(likelihood @ weights, LEAST)
        weights = (weights * (likelihood.T @ (times / explained)) + added) / total
    return weights


Learner = Callable[[FloatArray, FloatArray], FloatArray]
"""Weights from likelihoods and how often each row occurs."""


class FoldWorths(NamedTuple):
    """What nodes are worth under weights learned from the other folds, a row of weights a fold."""

    log_likelihood: float
    weights: FloatArray


def held_out(likelihood: FloatArray, row: IntArray, learner: Learner) -> FoldWorths:
    """Log-likelihood of nodes, each under weights of the other folds."""
    folds, total, learned = folds_of(len(row)), 0.0, []
    for fold in range(FOLDS):
        mine = folds == fold
        others = np.bincount(row[~mine], minlength=len(likelihood))
        learned.append(learner(likelihood, others.astype(np.float64)))
        explained = np.maximum(likelihood @ learned[-1], LEAST)
        total += float(np.log(explained)[row[mine]].sum())
    return FoldWorths(log_likelihood=total, weights=np.array(learned))


def held_moments(
    components: Components, row: IntArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior mean and variance of each node under the weights of its fold."""
    folds = folds_of(len(row))
    means, variances = np.empty(len(row)), np.empty(len(row))
    for fold, mine in enumerate(folds == number for number in range(FOLDS)):
        mean, variance = components.moments(weights[fold])
        means[mine], variances[mine] = mean[row[mine]], variance[row[mine]]
    return means, variances


def spread_out(size: int) -> FloatArray:
    """Evenly spread numbers from 0 to 1 without a pattern: multiples of the golden section."""
    return np.asarray(np.arange(size) * GOLDEN % 1.0, dtype=np.float64)


def folds_of(size: int) -> IntArray:
    """The fold of each of some nodes."""
    return (FOLDS * spread_out(size)).astype(np.int64)


def taught(nodes: IntArray) -> IntArray:
    """The nodes to learn from: all of them, or as many as are enough."""
    if len(nodes) <= MOST_TAUGHT:
        return nodes
    return nodes[spread_out(len(nodes)) < MOST_TAUGHT / len(nodes)]


def moments_in_parts(
    components: Callable[[IntArray], Components], weights: FloatArray, nodes: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Posterior moments of many nodes, a part of them at a time."""
    parts = [
        components(nodes[first : first + ROWS]).moments(weights)
        for first in range(0, len(nodes), ROWS)
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
