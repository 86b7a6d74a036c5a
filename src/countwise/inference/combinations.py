"""The most probable combinations of siblings' true counts, with their probabilities."""

import heapq
from collections import Counter
from dataclasses import dataclass
from itertools import count as counting
from math import sqrt

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.pairs import Paired
from countwise.sumproduct.steps import Steps
from countwise.sumproduct.tree import Solved

GRID = 200_000  # combinations that are all tried
MOST = 200  # siblings beyond which no combination has a probability worth listing
BATCH = 4_096


@dataclass(frozen=True, kw_only=True)
class Combination:
    """Counts of all children of a parent, in order, and the probability that all are true.

    `error` is the standard error of the probability where it is a share of draws.
    """

    counts: tuple[int, ...]
    probability: float
    error: float = 0.0

    @property
    def total(self) -> int:
        """The count of the parent."""
        return sum(self.counts)


@dataclass(frozen=True, kw_only=True)
class Siblings:
    """The joint law of a parent's children, able to say the probability of a combination."""

    children: Laws
    steps: Steps
    weights: FloatArray
    low: int
    coupling: FloatArray
    log_normaliser: float

    def log_probabilities(self, rows: IntArray) -> FloatArray:
        """log P of each row of counts."""
        return np.concatenate(
            [self._logs(rows[start : start + BATCH]) for start in range(0, len(rows), BATCH)]
        )

    def _logs(self, rows: IntArray) -> FloatArray:
        """Σ over steps of the product of weights, keeping each step's sum of logarithms."""
        steps, size = self.steps, len(rows)
        if isinstance(steps, Paired):
            return steps.logs(self.weights, rows, self.low, self.coupling) - self.log_normaliser
        own = np.full((self.children.nodes, size), -np.inf)
        running = np.zeros(size)
        barred = np.full(size, self.children.nodes)
        total = np.full(size, -np.inf)
        for step in range(len(steps.bounds) - 1):
            for q in range(steps.bounds[step], steps.bounds[step + 1]):
                s = steps.components[q]
                old, new = own[s], self._piece(q, rows[:, s])
                running += np.where(np.isfinite(new), new, 0.0)
                running -= np.where(np.isfinite(old), old, 0.0)
                barred += np.isneginf(new).astype(np.int64) - np.isneginf(old)
                own[s] = new
            total = np.logaddexp(total, np.where(barred == 0, running, -np.inf))
        at = rows.sum(axis=1) - self.low
        inside = (at >= 0) & (at < len(self.coupling))
        with np.errstate(divide="ignore"):
            tied = np.log(np.where(inside, self.coupling[np.where(inside, at, 0)], 0.0))
        return np.asarray(total + tied - self.log_normaliser)

    def _piece(self, q: int, x: IntArray) -> FloatArray:
        start, stop = self.steps.offsets[q], self.steps.offsets[q + 1]
        at = x - self.steps.lows[q]
        inside = (at >= 0) & (at < stop - start)
        with np.errstate(divide="ignore"):
            return np.where(inside, np.log(self.weights[start + np.where(inside, at, 0)]), -np.inf)


def siblings(solved: Solved, level: int, parent: int) -> Siblings:
    """The children of a parent, everything else summed out."""
    if level == len(solved.hierarchy.offsets):
        raise InputError("a cell has no children. To fix, name a parent.")
    children = solved.children(level, parent, parent + 1)
    if children.nodes > MOST:
        raise InputError(
            f"combinations are listed for up to {MOST} components, here are {children.nodes}: "
            "none of them would have a probability worth listing."
        )
    steps = solved.ties.steps(level, parent, children)
    weights = steps.weights(children)
    low, coupling = solved.couplings[level].one(parent)
    *_, log = steps.sums(children, low, coupling)
    return Siblings(
        children=children,
        steps=steps,
        weights=weights,
        low=low,
        coupling=coupling,
        log_normaliser=log,
    )


def most_probable(solved: Solved, level: int, parent: int, count: int) -> list[Combination]:
    """The combinations of highest probability, highest first.

    All combinations are tried when they are few. Else the search starts from the marginal modes
    and goes to neighbours (one count up or down, or one unit moved from one to another) of the
    best combination not yet left, until `count` of them are settled.
    """
    joint = siblings(solved, level, parent)
    marginals = solved.family(level, parent, parent + 1).marginals
    within = [bulk(*marginals.one(s)) for s in range(marginals.nodes)]
    if np.prod([float(len(each)) for each in within]) <= GRID:
        rows = np.stack(np.meshgrid(*within, indexing="ij"), axis=-1).reshape(-1, len(within))
    else:
        modes = [int(marginals.lows[s] + marginals.one(s)[1].argmax()) for s in range(len(within))]
        rows = _climb(joint, np.array(modes), count)
    logs = joint.log_probabilities(rows)
    best = np.argsort(-logs, kind="stable")[:count]
    return [
        Combination(counts=tuple(rows[i].tolist()), probability=float(np.exp(logs[i])))
        for i in best
        if np.isfinite(logs[i])
    ]


def most_frequent(rows: IntArray, count: int, effective: float) -> list[Combination]:
    """The combinations that occur most often among draws, worth so many independent ones."""
    found = Counter(map(tuple, rows.tolist())).most_common(count)
    shares = [(counts, times / len(rows)) for counts, times in found]
    return [
        Combination(counts=counts, probability=p, error=sqrt(p * (1 - p) / effective))
        for counts, p in shares
    ]


def bulk(low: int, law: FloatArray) -> IntArray:
    """The counts that a top combination can have: within exp(-14) of the most probable one."""
    near = np.flatnonzero(law > law.max() * np.exp(-14.0))
    return np.arange(low + near[0], low + near[-1] + 1)


def _climb(joint: Siblings, start: IntArray, count: int) -> IntArray:
    """Rows settled by the search, and all their neighbours."""
    order = counting()
    seen = {start.tobytes()}
    heap = [(-float(joint.log_probabilities(start[None])[0]), next(order), start)]
    settled: list[tuple[float, IntArray]] = []
    while heap and not _done(settled, heap[0][0], count):
        loss, _, row = heapq.heappop(heap)
        settled.append((loss, row))
        fresh = [each for each in _neighbours(row) if each.tobytes() not in seen]
        if not fresh:
            continue
        seen.update(each.tobytes() for each in fresh)
        for each, log in zip(fresh, joint.log_probabilities(np.stack(fresh)), strict=True):
            if np.isfinite(log):
                heapq.heappush(heap, (-float(log), next(order), each))
    return np.stack([row for _, row in settled] + [row for *_, row in heap[:count]])


def _done(settled: list[tuple[float, IntArray]], best_left: float, count: int) -> bool:
    """Whether `count` settled rows are better than everything within reach."""
    losses = sorted(loss for loss, _ in settled)
    return len(losses) >= count and losses[count - 1] <= best_left


def _neighbours(row: IntArray) -> list[IntArray]:
    size = len(row)
    moves = np.concatenate([np.eye(size, dtype=np.int64), np.zeros((1, size), np.int64)])
    result = []
    for up in moves:
        near = row + up - moves
        result += [each for each in near if each.min() >= 0]
    return [each for each in result if not np.array_equal(each, row)]
