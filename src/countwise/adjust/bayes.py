"""Empirical Bayes: what the noisy counts of a level say about each other, from the root down.

Noise makes a table's counts look more spread than they are; what they say about each other takes
that back. A prior, though, speaks about how a sum is divided, never about how large it is: priors
of thousands of cells together imply a law of their total that is far too sure, and wrong. So a
parent's count is settled before its children's are looked at, and stays. The children's posterior
means, under the law that explains the level's noisy counts best (`learning`), are moved to it and
rounded to whole, non-negative numbers; then come their own children.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import ClassVar

import numpy as np

from countwise.adjust.learning import Division, LevelBelow, divisions
from countwise.adjust.observations import Observations, observe
from countwise.adjust.protocol import Adjusted, Adjustment
from countwise.adjust.tree_least_squares import SMALLEST_VARIANCE, share_level, upward
from countwise.adjust.tree_walk import whole_tree
from countwise.arrays import FloatArray, IntArray
from countwise.tables.measurements import Measurements

SLIGHT = log(10) / 2  # evidence "barely worth a mention" (Jeffreys 1961, appendix B)
WORTHWHILE = 0.01  # of the variance of least squares: a law that promises less is not taken


@dataclass(frozen=True, kw_only=True)
class EmpiricalBayes(Adjustment):
    """Posterior means of the children of every parent, moved to its count and rounded.

    Nodes learn from those with the same label of the level `pool`, or from all of their level.
    """

    name: ClassVar[str] = "bayes"
    tie_key: int | None
    pool: str = ""

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        return self.adjusted(measurements).counts

    def adjusted(self, measurements: Sequence[Measurements]) -> Adjusted:
        """The counts, and what they were divided by."""
        hierarchy, tree = measurements[0].hierarchy, whole_tree(measurements)
        estimates, variances = upward(measurements)
        counts = [tree.room.root(np.rint(estimates[0]).astype(np.int64))]
        taken: list[Division | None] = []
        prior = None
        for number in range(1, len(hierarchy.sizes)):
            spread = np.maximum(variances[number], SMALLEST_VARIANCE)
            level = LevelBelow(
                measurements=measurements,
                number=number,
                sizes=counts[-1],
                seen=observe(measurements, number, estimates[number], spread),
                pool=self.pool,
            )
            candidates = list(divisions(level))
            best = _worthwhile(candidates, level.seen, hierarchy.offsets[number - 1][:-1])
            means = estimates[number] if best is None else best.means
            if best is not None:
                spread = np.maximum(best.variances, SMALLEST_VARIANCE)
            counts.append(
                share_level(tree, number, counts[-1], means, spread, tie_key=self.tie_key)
            )
            taken.append(best)
            published = [each for each in candidates if each.prior is not None]
            if number == len(hierarchy.by) and published:
                prior = max(published, key=lambda each: each.log_likelihood).prior
        return Adjusted(counts=tuple(counts), method=self.name, divisions=tuple(taken), prior=prior)


def _worthwhile(
    candidates: Sequence[Division], seen: Observations, first: IntArray
) -> Division | None:
    """The law that explains a level best; none where least squares is about as good."""
    if not candidates:
        return None
    best = _best(candidates)
    noise = np.where(seen.free, seen.variances, 0.0)
    promised = given_the_sum(np.where(seen.free, best.variances, 0.0), first)
    worthwhile = promised < (1 - WORTHWHILE) * given_the_sum(noise, first)
    return best if worthwhile and best.risk < float(noise.sum()) else None


def _best(candidates: Sequence[Division]) -> Division:
    """The law that explains a level best, or one without a shape that does it as well.

    A shape takes a lone count among empty cells for the chance of many small ones, and spreads it
    over all of them. One cell in hundreds is little evidence against it, so little must be enough.
    """
    best = max(candidates, key=lambda each: each.log_likelihood)
    free = [each for each in candidates if not each.shape]
    alike = [each for each in free if best.log_likelihood - each.log_likelihood < SLIGHT]
    return alike[0] if alike else best


def given_the_sum(variances: FloatArray, first: IntArray) -> float:
    """The sum of the variances of independent values once the sum of each family is known."""
    whole, squares = np.add.reduceat(variances, first), np.add.reduceat(variances**2, first)
    return float((whole - squares / np.where(whole > 0, whole, 1.0)).sum())
