"""Draws from the multinomial instead of its mode: Wang 2020, 3.1.1, Algorithms 1 and 2."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from countwise.adjust.count_modes import LogConcave, node_modes, summed_observations
from countwise.adjust.mode import Total
from countwise.adjust.protocol import Gathered, SubtreeAdjustment
from countwise.adjust.tree_walk import Piece, whole_tree
from countwise.arrays import FloatArray, IntArray
from countwise.errors import PlanError
from countwise.noise.laws import IntegerLaw
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True)
class MultinomialDraw(SubtreeAdjustment):
    """Every parent's count is dealt to its children at random, from the root down.

    Algorithm 1 deals in proportion to draws from each child's posterior and starts from a draw
    of the total; Algorithm 2 uses the noisy counts themselves, negative ones as zero.
    """

    rng: np.random.Generator
    algorithm: Literal[1, 2]
    total: Total = "independent"

    @property
    def name(self) -> str:
        """The word for it, with the number of the algorithm."""
        return f"draw-{self.algorithm}"

    def across(
        self, measurements: Sequence[Measurements], gathered: Gathered
    ) -> tuple[IntArray, ...]:
        """The root by itself, and what is below it; of pieces nothing is asked."""
        del gathered
        tree = whole_tree(measurements)
        root = tree.room.root(self._root(measurements))
        return (root, *self.down(tree, root))

    def down(self, piece: Piece, counts: IntArray) -> tuple[IntArray, ...]:
        """Every count dealt to the children at random."""
        found, room, dealt = [counts], piece.room, partial(deal, rng=self.rng)
        for level in piece.below:
            values = np.maximum(room.above(level, self._values(piece.measurements, level)), 0)
            found.append(room.share(level, found[-1], dealt, values))
        return tuple(found[1:])

    def _root(self, measurements: Sequence[Measurements]) -> IntArray:
        if measurements[0].laws[0].variance == 0:
            return measurements[0].noisy[0]
        if self.total == "summed":
            observed = summed_observations(measurements)
            if self.algorithm == 2:
                raise PlanError("Algorithm 2 takes the total's own noisy count: total=independent.")
            return draw_from_likelihood(observed, rng=self.rng)
        return self._values(measurements, 0)

    def _values(self, measurements: Sequence[Measurements], level: int) -> IntArray:
        if self.algorithm == 2:
            return node_modes(measurements, level)
        if len(measurements) > 1:
            raise PlanError("Algorithm 1 takes one noisy value a count.")
        law, noisy = measurements[0].laws[level], measurements[0].noisy[level]
        return posterior_draws(noisy, law, rng=self.rng)


def posterior_draws(noisy: IntArray, law: IntegerLaw, *, rng: np.random.Generator) -> IntArray:
    """A draw of each N ≥ 0 from its posterior given its noisy count under a flat prior.

    N - noisy has the noise law cut to noisy + z ≥ 0, drawn by inverting its tail.
    """
    tail = law.sf(-noisy - 1)
    return noisy + law.isf(tail * (1 - rng.random(len(noisy))))


def draw_from_likelihood(
    observed: Sequence[tuple[IntArray, LogConcave]], *, rng: np.random.Generator
) -> IntArray:
    """A draw of one N ≥ 0 with probability proportional to its likelihood."""
    values = [int(value[0]) for value, _ in observed]
    low = max(min(values), 0)
    pad = 64
    while True:
        grid = np.arange(max(low - pad, 0), max(*values, 0) + pad + 1)
        slopes = sum(
            -law.slope(v - grid[:-1] - 1) for v, (_, law) in zip(values, observed, strict=True)
        )
        weights = _weights(np.concatenate([[0.0], np.cumsum(slopes)]))
        if max(weights[-1], weights[0] if grid[0] > 0 else 0.0) < 1e-18:
            return rng.choice(grid, size=1, p=weights / weights.sum())
        pad *= 4


def _weights(logs: FloatArray) -> FloatArray:
    return np.asarray(np.exp(logs - logs.max()))


def deal(
    offsets: IntArray, parents: IntArray, values: IntArray, *, rng: np.random.Generator
) -> IntArray:
    """A multinomial draw for each parent, its children's probabilities proportional to values.

    Ranges of children are halved again and again, all parents at once: the left half gets a
    binomial share. Children of a parent whose values are all zero count as equal.
    """
    weights = values + (np.add.reduceat(values, offsets[:-1]) == 0).repeat(np.diff(offsets))
    reach = np.concatenate([[0], np.cumsum(weights)])
    counts = np.zeros_like(values)
    start, stop, held = offsets[:-1], offsets[1:], parents
    while len(start):
        single = stop - start == 1
        counts[start[single]] = held[single]
        start, stop, held = start[~single], stop[~single], held[~single]
        middle = (start + stop) // 2
        left, whole = reach[middle] - reach[start], reach[stop] - reach[start]
        share = rng.binomial(held, np.where(whole > 0, left / np.maximum(whole, 1), 0.5))
        start, stop = np.concatenate([start, middle]), np.concatenate([middle, stop])
        held = np.concatenate([share, held - share])
    return counts
