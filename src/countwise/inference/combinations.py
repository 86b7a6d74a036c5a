"""The most probable combinations of siblings' true counts, with their probabilities."""

import heapq
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import count as counting
from math import prod, sqrt
from typing import ClassVar

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import CountwiseError, InputError
from countwise.inference.local_search import JointLaw, climbed, middles
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.step_mixture import Steps
from countwise.sumproduct.tree import Solved, Ties

MOST = 200  # siblings beyond which no combination has a probability worth listing
NEAR = float(np.exp(-14.0))  # counts less probable than this are tried when they are needed
LEAST = 1e-30  # and these never
ROUNDING = 1e-6  # of probabilities that are added up


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Siblings:
    """The joint law of children that are a mixture of steps; `coupling` holds of their sum."""

    children: Laws
    steps: Steps
    low: int
    coupling: FloatArray
    grid: ClassVar[int] = 200_000

    @cached_property
    def weights(self) -> FloatArray:
        """Of every piece, as `kernels.mixture` has them."""
        return self.steps.weights(self.children)

    @cached_property
    def log_mass(self) -> float:
        """log of the weight of all combinations."""
        return self.steps.sums(self.children, self.low, self.coupling)[-1]

    def logs(self, rows: IntArray) -> FloatArray:
        """log of the weight of each row of counts."""
        return self.steps.logs(self.weights, rows, self.low, self.coupling)


def joint_of(
    ties: Ties, level: int, parent: int, children: Laws, coupled: tuple[int, FloatArray]
) -> Siblings:
    """The joint law of a parent's children when something is known of the parent."""
    low, coupling = coupled
    steps = ties.steps(level, parent, children)
    return Siblings(children=children, steps=steps, low=low, coupling=coupling)


def most_probable(solved: Solved, level: int, parent: int, count: int) -> list[Combination]:
    """The combinations of highest probability, highest first.

    All combinations are tried when they are few. Else the search starts from the best that
    climbing finds and goes to neighbours (one count up or down, or one unit moved from one to
    another) of the best combination not yet left, until `count` of them are settled.
    """
    if level == len(solved.hierarchy.offsets):
        raise InputError("a cell has no children. To fix, name a parent.")
    children = solved.children(level, parent, parent + 1)
    if children.nodes > MOST:
        raise InputError(
            f"combinations are listed for up to {MOST} components, here are {children.nodes}: "
            "none of them would have a probability worth listing."
        )
    joint = joint_of(solved.ties, level, parent, children, solved.couplings[level].one(parent))
    marginals = solved.family(level, parent, parent + 1).marginals
    rows = _all_likely(joint, marginals, count)
    if rows is None:
        found, logs = climbed(joint, middles(marginals), free=True)
        rows = _climb(joint, found[logs.argmax()], count)
    logs = joint.logs(rows) - joint.log_mass
    if np.exp(logs).sum() > 1.0 + ROUNDING:
        raise CountwiseError("the probabilities of combinations add up to more than 1.")
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


def _all_likely(joint: JointLaw, marginals: Laws, count: int) -> IntArray | None:
    """Combinations among which the `count` most probable ones are; None where they are too many.

    No combination is more probable than any of its counts by itself: once so many are found that
    have a probability of p or more, counts below p need not be tried.
    """
    mass, least = marginals.sums(), NEAR
    for _ in range(2):
        laws = [marginals.one(s) for s in range(marginals.nodes)]
        within = [bulk(*law, least * each) for law, each in zip(laws, mass, strict=True)]
        if not few(joint, within):
            return None
        rows = all_rows(within)
        logs = np.sort(joint.logs(rows) - joint.log_mass)
        reached = float(np.exp(logs[-count])) if len(rows) >= count else 0.0
        if reached >= least:
            break
        least = max(reached, LEAST)
    return rows


def bulk(low: int, law: FloatArray, least: float = np.inf) -> IntArray:
    """The counts within exp(-14) of the most probable one, and those that have the least value."""
    near = np.flatnonzero(law >= min(least, law.max() * NEAR))
    return np.arange(low + near[0], low + near[-1] + 1)


def few(joint: JointLaw, within: list[IntArray]) -> bool:
    """Whether all combinations of these counts may be tried."""
    return prod(len(each) for each in within) <= joint.grid


def all_rows(within: list[IntArray]) -> IntArray:
    """Every combination of counts of each, the last one changing fastest."""
    rows = np.empty((prod(len(each) for each in within), len(within)), np.int64)
    alike = len(rows)
    for column, each in enumerate(within):
        alike //= len(each)
        rows[:, column] = np.tile(np.repeat(each, alike), len(rows) // (alike * len(each)))
    return rows


def _climb(joint: JointLaw, start: IntArray, count: int) -> IntArray:
    """Rows settled by the search, and all their neighbours."""
    order = counting()
    seen = {start.tobytes()}
    heap = [(-float(joint.logs(start[None])[0]), next(order), start)]
    settled: list[tuple[float, IntArray]] = []
    while heap and not _done(settled, heap[0][0], count):
        loss, _, row = heapq.heappop(heap)
        settled.append((loss, row))
        fresh = [neighbour for neighbour in _neighbours(row) if neighbour.tobytes() not in seen]
        if not fresh:
            continue
        seen.update(each.tobytes() for each in fresh)
        for each, log in zip(fresh, joint.logs(np.stack(fresh)), strict=True):
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
