"""What is expected of the nodes of a level, from their parents' counts and labels' shares.

In a tree whose nodes carry the same labels below many parents (races below tracts), what is
expected of a node is its parent's size times the share of its label elsewhere: in the other parents
nearby, those with the same grandparent, or in the whole tree, or the same for all labels. Which of
these says most is for the noisy counts to tell, by the squared error they let expect (Stein 1981):
their probabilities hang on how far each expectation stretches distances.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from countwise.adjust.jamesstein import share_of_gap
from countwise.adjust.observations import Observations
from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.tables.hierarchy import Hierarchy

RAREST = 1e-9  # share of a label that no noisy count has
SMALLEST = 0.05  # expected count, and share of a label relative to its share everywhere
FEWEST_PARENTS = 8  # labels below fewer are too rare for a share of their own: they have one share
MOST_HELD = 0.501  # share of a parent up to which a node teaches how nodes scatter


class Expected(NamedTuple):
    """What nodes are expected to count, and each one's share of its parent."""

    counts: FloatArray
    shares: FloatArray


Weigh = Callable[[Hierarchy, int, FloatArray, Observations], FloatArray]
"""Weights by which the children of a parent share its size."""


def nearby(hierarchy: Hierarchy, level: int, size: FloatArray, seen: Observations) -> FloatArray:
    """The label's share in the other parents below the same grandparent.

    It is drawn towards that of the whole tree as if the label were counted there in as many people
    as two standard deviations of the noise.
    """
    return _shares(hierarchy, level, size, seen)


def everywhere(
    hierarchy: Hierarchy, level: int, size: FloatArray, seen: Observations
) -> FloatArray:
    """The label's share in the whole tree."""
    return _overall(_labels(hierarchy, level, seen), size, seen)


def evenly(hierarchy: Hierarchy, level: int, size: FloatArray, seen: Observations) -> FloatArray:
    """The same for all."""
    del hierarchy, level, seen
    return np.ones(len(size))


def expected_counts(
    hierarchy: Hierarchy, level: int, sizes: IntArray, seen: Observations, weigh: Weigh = nearby
) -> Expected:
    """Parent's size times the label's share elsewhere.

    The expectations of a parent's children add up to its size. Directly below the root all
    children are alike.
    """
    parents, first = hierarchy.parents(level), hierarchy.offsets[level - 1][:-1]
    free = seen.free
    size = np.where(free, np.maximum(_left(sizes, seen, first), 0.0)[parents], 0.0)
    share = (weigh if level > 1 else evenly)(hierarchy, level, size, seen)
    whole = np.add.reduceat(np.where(free, share, 0.0), first)[parents]
    share = np.where(free, share / np.maximum(whole, RAREST), 0.0)
    return Expected(counts=np.maximum(size * share, SMALLEST), shares=share)


def set_free(
    hierarchy: Hierarchy,
    level: int,
    sizes: IntArray,
    seen: Observations,
    expected: Expected,
    *,
    few: BoolArray,
) -> Observations:
    """Nodes as they would be seen were they not held together by their parent's count.

    Of independent nodes with variances in proportion to their shares s, one that is known to add
    up with the others varies by 1 - s of what it would: with two children of a known sum, half. So
    does its noise, once what the children lack of their parent's count is shared out. Distances
    from the expectation are stretched accordingly before a scatter is learned, though none to below
    zero. Only the `few` teach: those with more than half of their parent are what the others leave.
    """
    first = hierarchy.offsets[level - 1][:-1]
    gap = share_of_gap(seen, _left(sizes, seen, first), first)[hierarchy.parents(level)]
    away = np.where(seen.free, gap * seen.variances, 0.0) - expected.counts
    loose = np.sqrt(1 - np.minimum(expected.shares, MOST_HELD))
    estimates = expected.counts + (seen.estimates + away) / loose
    values = np.rint(expected.counts + (seen.values + away) / loose)
    values = np.maximum(values, np.minimum(seen.values, 0))
    teaching = seen.free & few
    free = teaching if teaching.any() else seen.free
    return replace(seen, estimates=estimates, values=values.astype(np.int64), free=free)


def _left(sizes: IntArray, seen: Observations, first: IntArray) -> FloatArray:
    """What each parent's count leaves for the children that are not known exactly."""
    known = np.add.reduceat(np.where(seen.free, 0.0, seen.estimates), first)
    return np.asarray(sizes - known, dtype=np.float64)


def _shares(hierarchy: Hierarchy, level: int, size: FloatArray, seen: Observations) -> FloatArray:
    """The share of each node's label in other parents nearby."""
    label = _labels(hierarchy, level, seen)
    group = hierarchy.parents(level - 1)[hierarchy.parents(level)]
    place = np.unique(group * (int(label.max()) + 1) + label, return_inverse=True)[1]
    values = np.where(seen.free, seen.estimates, 0.0)
    variance = np.where(seen.free, seen.variances, 0.0)
    overall = _overall(label, size, seen)
    heads = 2 * np.sqrt(_summed(place, variance))
    others = np.maximum(_summed(place, size) - size, 0.0)
    elsewhere = _summed(place, values) - values + heads
    share = elsewhere / np.maximum(others + heads / overall, RAREST)
    return np.asarray(np.maximum(share, SMALLEST * overall))


def _labels(hierarchy: Hierarchy, level: int, seen: Observations) -> IntArray:
    """The number of each node's label, one for all that occur below few parents."""
    codes = hierarchy.codes[level - 1].astype(np.int64)
    parents = np.bincount(codes[seen.free], minlength=int(codes.max()) + 1)
    return np.asarray(np.where(parents[codes] < FEWEST_PARENTS, len(parents), codes))


def _overall(label: IntArray, size: FloatArray, seen: Observations) -> FloatArray:
    """The share of each node's label in all parents."""
    values = np.where(seen.free, seen.estimates, 0.0)
    variance = np.where(seen.free, seen.variances, 0.0)
    overall = np.maximum(_summed(label, values), np.sqrt(_summed(label, variance)))
    return np.asarray(np.maximum(overall / np.maximum(_summed(label, size), 1.0), RAREST))


def _summed(keys: IntArray, values: FloatArray) -> FloatArray:
    """For each entry the sum of the values that have its key."""
    return np.asarray(np.bincount(keys, weights=values)[keys])


@dataclass(frozen=True, kw_only=True, eq=False)
class Expectation:
    """What is expected of nodes, and how they would be seen were their sums not known.

    `stretched` is the logarithm of how much further from the expectation a node is moved to set it
    free than it would be were even shares expected. Probabilities of nodes set free from different
    expectations compare once it is added.
    """

    counts: FloatArray
    free: Observations
    stretched: FloatArray


def expectations(
    hierarchy: Hierarchy, level: int, sizes: IntArray, seen: Observations
) -> list[Expectation]:
    """By shares nearby, in the whole tree, and even ones; all teach with the same nodes."""
    weighs = (nearby, everywhere, evenly) if level > 1 else (evenly,)
    found = [expected_counts(hierarchy, level, sizes, seen, weigh) for weigh in weighs]
    few = np.logical_and.reduce([each.shares <= MOST_HELD for each in found])
    held = [np.log1p(-np.minimum(each.shares, MOST_HELD)) / 2 for each in found]
    return [
        Expectation(
            counts=each.counts,
            free=set_free(hierarchy, level, sizes, seen, each, few=few),
            stretched=held[-1] - mine,
        )
        for each, mine in zip(found, held, strict=True)
    ]
