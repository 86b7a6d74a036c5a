"""Shrinking towards a parent's share: James and Stein, and normal empirical Bayes.

Both go from the root of the least squares estimates down. The children of a level are shrunk
towards what their parent's count would give them, either evenly or in proportion to their labels,
whichever the data of the level prefer; then they are projected on their parent's count.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from countwise.tables.measurements import Measurements
from families import nearest, owners, rounded, sums
from whole_tree import from_below


class Level(NamedTuple):
    """One level: estimates from below with their variances, and the parents' counts above."""

    estimates: np.ndarray
    variances: np.ndarray
    totals: np.ndarray
    offsets: np.ndarray
    labels: np.ndarray


class Target(NamedTuple):
    """Where to shrink to, with the number of shares learned for it."""

    values: np.ndarray
    learned: int


Shrunk = tuple[np.ndarray, np.ndarray]
Shrink = Callable[[Level], Shrunk]


def targets(level: Level) -> Iterator[Target]:
    """Even shares; and shares by label where labels come again and again."""
    parents, fan_out = owners(level.offsets), np.diff(level.offsets)
    yield Target(level.totals[parents] / fan_out[parents], 0)
    kinds, label = np.unique(level.labels, return_inverse=True)
    if 2 * len(kinds) > len(parents) - len(fan_out):
        return
    weights = np.maximum(np.bincount(label, weights=level.estimates), 0) + 1e-6
    weights = weights[label]
    yield Target(weights * (level.totals / sums(weights, level.offsets))[parents], len(kinds) - 1)


def james_stein(level: Level) -> Shrunk:
    """Positive part, one factor a level; the target of the least estimated risk."""
    parents = owners(level.offsets)
    spread = sums(level.variances, level.offsets)
    gap = level.totals - sums(level.estimates, level.offsets)
    fitted = level.estimates + level.variances * (gap / spread)[parents]
    best, chosen = 0.0, fitted
    for target in targets(level):
        free = len(parents) - len(spread) - target.learned - 2
        distance = float(((fitted - target.values) ** 2 / level.variances).sum())
        if free > 0 and free**2 > best * distance:
            best = free**2 / max(distance, 1e-12)
            factor = max(0.0, 1 - free / max(distance, 1e-12))
            chosen = target.values + factor * (fitted - target.values)
    return chosen, level.variances


POWERS = (0.0, 1.0, 2.0)
SCALES = np.concatenate([[0.0], np.geomspace(1e-4, 1e10, 57)])
ENOUGH = 4000


def normal_bayes(level: Level) -> Shrunk:
    """Counts normal about the target t with variance a·tᵖ, each with the variance of its noise.

    a, p and the target have the largest likelihood of the children given their sums. The posterior
    given each sum follows from projecting the posterior means by the posterior variances.
    """
    best, chosen = -np.inf, (level.estimates, level.variances)
    for target in targets(level):
        middle = np.maximum(target.values, 1e-3)
        for power in POWERS:
            found, scale = max((_likelihood(level, target, a * middle**power), a) for a in SCALES)
            if found - target.learned > best:
                best = found - target.learned
                prior = np.maximum(scale * middle**power, 1e-9)
                spread = prior * level.variances / (prior + level.variances)
                means = target.values + (level.estimates - target.values) * spread / level.variances
                chosen = means, np.maximum(spread, 1e-9)
    return chosen


def _likelihood(level: Level, target: Target, prior: np.ndarray) -> float:
    """Log density of the first families' estimates given their sums."""
    families = int(np.searchsorted(level.offsets, ENOUGH))
    offsets = level.offsets[: max(families, 1) + 1]
    some = slice(0, offsets[-1])
    off, spread = (level.estimates - target.values)[some], (level.variances + prior)[some]
    gap, whole = sums(off, offsets), sums(spread, offsets)
    apart = np.log(spread).sum() + (off**2 / spread).sum()
    return -0.5 * float(apart - np.log(whole).sum() - (gap**2 / whole).sum())


def from_the_root(
    measured: Measurements, shrink: Shrink, *, rng: np.random.Generator
) -> list[np.ndarray]:
    """Whole counts: each level shrunk towards its parents' counts, and made to add up to them."""
    hierarchy = measured.hierarchy
    estimates, spreads = from_below(measured)
    counts = [np.maximum(np.rint(estimates[0]), 0).astype(np.int64)]
    for level, offsets in enumerate(hierarchy.offsets, start=1):
        labels = hierarchy.codes[level - 1]
        seen = Level(estimates[level], spreads[level], counts[-1], offsets, labels)
        shares = nearest(*shrink(seen), counts[-1], offsets)
        counts.append(rounded(shares, counts[-1], offsets, rng=rng))
    return counts
