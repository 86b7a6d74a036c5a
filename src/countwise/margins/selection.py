"""Which margins are measured, where the loss is ε and every further one makes all noisier.

What a share of ε buys grows as its square, so the best designs measure few margins and there are
many that no small change improves. From several starts, margins are added, left out, exchanged and
split.
docs/explain/crossed-least-squares.md, section 5.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.spending import Spending

ENOUGH = 1e-4  # a change that makes the variances less by so little is none
TRIED = 3  # changes of a kind that are settled, of those that look best
MOST_CHANGES = 40  # a bound; each makes the choice better


def best_selection(spending: Spending, starts: Iterable[FloatArray]) -> FloatArray:
    """The best shares found from any of the starts."""
    settled: list[tuple[FloatArray, float]] = []
    for start in starts:
        shares, score = spending.settle(start)
        if all(abs(score - other) > ENOUGH for _, other in settled):
            settled.append((shares, score))
    improved = [_improved(spending, *each) for each in settled]
    return min(improved, key=lambda each: each[1])[0]


def _improved(spending: Spending, shares: FloatArray, score: float) -> tuple[FloatArray, float]:
    """Shares changed one margin at a time while that makes them better."""
    for _ in range(MOST_CHANGES):
        better = _step(spending, shares, score)
        if better is None:
            break
        shares, score = better
    return shares, score


def _step(spending: Spending, shares: FloatArray, score: float) -> tuple[FloatArray, float] | None:
    """The first kind of change that improves, None where none does."""
    shares = np.where(shares < 1e-4, 0.0, shares)
    for changes in (_without, _with, _exchanged, _split):
        rows = np.array(list(changes(spending, shares)))
        if not len(rows):
            continue
        promising = np.argsort(spending.worth(rows), kind="stable")[:TRIED]
        found = min((spending.settle(rows[i]) for i in promising), key=lambda each: each[1])
        if found[1] < score - ENOUGH:
            return found
    return None


def _without(_: Spending, shares: FloatArray) -> Iterator[FloatArray]:
    """One margin left out, the others larger in proportion."""
    for i in np.flatnonzero(shares):
        left = shares.copy()
        left[i] = 0
        if left.any():
            yield left / left.sum()


def _with(spending: Spending, shares: FloatArray) -> Iterator[FloatArray]:
    """One more margin, with the share of an equal among the others or half of it."""
    equal = 1 / (np.count_nonzero(shares) + 1)
    for i in np.flatnonzero((shares == 0) & (spending.reach > 0)):
        for share in (equal, equal / 2):
            more = shares * (1 - share)
            more[i] = share
            yield more


def _exchanged(spending: Spending, shares: FloatArray) -> Iterator[FloatArray]:
    """One margin in the place of another."""
    for i in np.flatnonzero(shares):
        for j in np.flatnonzero((shares == 0) & (spending.reach > 0)):
            other = shares.copy()
            other[[i, j]] = 0, shares[i]
            yield other


def _split(spending: Spending, shares: FloatArray) -> Iterator[FloatArray]:
    """One margin in pieces: those that are coarser by a level of one variable."""
    levels = np.array([each.levels for each in spending.mean.measured])
    for i in np.flatnonzero(shares):
        lower = levels[i] - levels
        pieces = (lower.min(axis=1) == 0) & (lower.sum(axis=1) == 1) & (spending.reach > 0)
        if pieces.any():
            other = shares.copy()
            other[i] = 0
            other[pieces] += shares[i] / pieces.sum()
            yield other
