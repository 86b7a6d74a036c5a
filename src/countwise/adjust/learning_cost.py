"""What learning from a table takes, in time and memory, known before anything is measured.

The shape of the table and the noise of its levels are public, and so is this estimate: seconds of
one core and bytes beyond those of least squares. A level takes tables of likelihoods, as many as
its nodes have laws of error, and a posterior for each node.
"""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from countwise.adjust.observations import ALIKE
from countwise.adjust.shareprior import DENSE, GRAIN, HIGHEST, LOWEST, SIZES, STEP, STEPS, WIDE
from countwise.adjust.tree_least_squares import SMALLEST_VARIANCE
from countwise.arrays import FloatArray
from countwise.tables.hierarchy import Hierarchy

MOST_SECONDS = 120.0  # a release is waited for that long, and rarely longer
MOST_BYTES = 4e9  # half of the memory of a small machine
SPREAD = log(1e9)  # between the largest and the smallest expectation
REACH = 25  # standard deviations of the noise that likelihoods are tabled below zero, and above
TABLE_SECONDS = 2e-7  # an entry of the tables, three transforms of it, measured on one core
NODE_SECONDS = 1.2e-5  # a node under all laws when no two are alike; a quarter where many are
NODE_BYTES = 250.0  # some thirty numbers for each node, about twice what was measured
LEVEL_SECONDS = 0.5  # EM on as many nodes as are taught, in folds, where they are few
LEVEL_BYTES = 1e8  # components of the nodes that are taught
ENTRY_BYTES = 3 * 8.0  # a likelihood, a mean and a variance


class LearningCost(NamedTuple):
    """Seconds of one core, and bytes."""

    seconds: float
    bytes: float

    @property
    def bearable(self) -> bool:
        """Whether learning is worth its time, and fits."""
        return self.seconds <= MOST_SECONDS and self.bytes <= MOST_BYTES

    def __str__(self) -> str:
        return f"about {max(self.seconds, 1.0):,.0f} seconds and {self.bytes / 1e9:,.1f} GB"


def learning_cost(hierarchy: Hierarchy, variances: Sequence[float]) -> LearningCost:
    """What it takes, of a table with so much noise on each count of every level."""
    seconds, most = 0.0, 0.0
    for level, spread in enumerate(_spreads(hierarchy, variances)):
        if not level:
            continue
        nodes = hierarchy.sizes[level]
        entries = sum(_entries(float(each)) for each in _classes(spread))
        seconds += LEVEL_SECONDS + TABLE_SECONDS * entries + NODE_SECONDS * nodes
        most = max(most, LEVEL_BYTES + ENTRY_BYTES * entries)
    return LearningCost(seconds, most + NODE_BYTES * sum(hierarchy.sizes))


def _spreads(hierarchy: Hierarchy, variances: Sequence[float]) -> list[FloatArray]:
    """Variances of the best linear estimates from below, level by level, by shape alone."""
    found: list[FloatArray] = []
    for level in reversed(range(len(hierarchy.sizes))):
        own = np.full(hierarchy.sizes[level], max(variances[level], SMALLEST_VARIANCE))
        if found:
            below = np.add.reduceat(found[-1], hierarchy.offsets[level][:-1])
            own = own * below / (own + below)
        found.append(own)
    return found[::-1]


def _classes(spread: FloatArray) -> FloatArray:
    """One variance for each law of error that the nodes of a level have."""
    grades = np.unique(np.rint(np.log(spread) / ALIKE))
    return np.asarray(np.exp(grades * ALIKE))


def _entries(variance: float) -> float:
    """Entries of the tables of one law of error: means by values, of every scatter."""
    deviation = sqrt(variance)
    unit = max(int(deviation / GRAIN), 1)
    means = SPREAD / STEP + STEPS * (HIGHEST - LOWEST) + 1
    return len(SIZES) * means * ((2 * REACH + WIDE) * deviation + DENSE) / unit
