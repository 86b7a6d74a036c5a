"""The adjustment that suits each level of a table: by its shape, noise and noisy counts only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.learning import FEWEST_NODES
from countwise.adjust.learning_cost import learning_cost
from countwise.adjust.protocol import Adjusted, Adjustment
from countwise.adjust.tree_least_squares import LeastSquares
from countwise.arrays import IntArray
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True)
class Auto(Adjustment):
    """Empirical Bayes at the levels where it promises more than least squares.

    It is least squares altogether where learning would take too much time or memory, which shape
    and noise tell before anything is spent, or where the noisy counts have nothing to teach.
    """

    name: ClassVar[str] = "auto"
    tie_key: int | None
    pool: str = ""

    def __call__(self, measurements: Sequence[Measurements]) -> tuple[IntArray, ...]:
        return self.adjusted(measurements).counts

    def adjusted(self, measurements: Sequence[Measurements]) -> Adjusted:
        """The counts, the method that made them, and why it was taken."""
        hierarchy = measurements[0].hierarchy
        cost = learning_cost(hierarchy, [law.variance for law in measurements[0].laws])
        if not cost.bearable:
            return Adjusted(
                counts=LeastSquares(tie_key=self.tie_key)(measurements),
                method=LeastSquares.name,
                reason=f"learning from {hierarchy.cells:,} cells would take {cost}",
            )
        learned = EmpiricalBayes(tie_key=self.tie_key, pool=self.pool).adjusted(measurements)
        if any(learned.divisions):
            return learned._replace(reason=_in_words(hierarchy, learned))
        free = int(measurements[0].protected(len(hierarchy.by)).sum())
        reason = "what the noisy counts say about each other would change next to nothing"
        if free < FEWEST_NODES:
            reason = f"{free} noisy cells are too few to learn their distribution from"
        return learned._replace(method=LeastSquares.name, reason=reason, prior=None)


def _in_words(hierarchy: Hierarchy, learned: Adjusted) -> str:
    """Which levels follow what."""
    follows: dict[str, list[str]] = {}
    for name, division in zip(hierarchy.by, learned.divisions, strict=True):
        words = "least squares" if division is None else division.words
        follows.setdefault(words, []).append(name)
    return "; ".join(f"{', '.join(names)} by {words}" for words, names in follows.items())
