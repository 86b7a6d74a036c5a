"""Adjustments of trees that are nowhere whole: up to a cut, across the top, and down again.

Below the cut a tree is in pieces (`tables.cut`). What the top must know of a piece is gathered
upwards, the top is adjusted in memory, and each piece then shares the counts of its nodes at the
cut among what is below. Every method gives what it would give on the whole tree.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from countwise.adjust.draw import MultinomialDraw, deal, posterior_draws
from countwise.adjust.mode import Mode, Total
from countwise.adjust.tree_least_squares import (
    SMALLEST_VARIANCE,
    _project_level,
    own_estimate,
    project_down,
)
from countwise.adjust.tree_walk import floors_of, share_among_children
from countwise.arrays import FloatArray, IntArray, UIntArray
from countwise.kernels.apportion import last_ranks, random_ranks
from countwise.tables.measurements import Measurements

Gathered = tuple[FloatArray, ...] | tuple[IntArray, ...]
PIECEWISE = ("mode", "least-squares", "draw-1", "draw-2", "clipped")
"""Adjustments that never look at all cells at once."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Noisy counts below the cut at level `depth`; those above it are not here.

    `firsts` has, for each level, the number of the first node in the order of the whole tree.
    """

    measured: Measurements
    depth: int
    firsts: tuple[int, ...]

    @property
    def below(self) -> range:
        """The levels below the cut, outer to inner."""
        return range(self.depth + 1, len(self.measured.hierarchy.sizes))

    def ranks(self, level: int, tie_key: int | None) -> UIntArray:
        """Who is served first on a tie, as on the whole tree."""
        size = self.measured.hierarchy.sizes[level]
        if tie_key is None:
            return last_ranks(size)
        return np.asarray(random_ranks(np.uint64(tie_key), self.firsts[level], size))


class Piecewise(Protocol):
    """An adjustment in three steps."""

    def up(self, piece: Piece) -> Gathered:
        """What the top must know, one number a node of the piece at the cut in each array."""
        ...

    def across(self, top: Measurements, gathered: Gathered) -> tuple[IntArray, ...]:
        """The counts of the top, down to the cut, from its noisy counts and what was gathered."""
        ...

    def down(
        self, piece: Piece, counts: IntArray, *, rng: np.random.Generator
    ) -> tuple[IntArray, ...]:
        """The counts of the levels below the cut, given those of the piece's nodes at it."""
        ...


@dataclass(frozen=True, kw_only=True)
class ModeByPieces:
    """`Mode`: nothing goes up."""

    tie_key: int | None
    total: Total

    def up(self, piece: Piece) -> Gathered:
        """Nothing."""
        del piece
        return ()

    def across(self, top: Measurements, gathered: Gathered) -> tuple[IntArray, ...]:
        """The top is a tree like any other."""
        del gathered
        return Mode(tie_key=self.tie_key, total=self.total)([top])

    def down(
        self, piece: Piece, counts: IntArray, *, rng: np.random.Generator
    ) -> tuple[IntArray, ...]:
        """Every count apportioned among the children."""
        del rng
        found = [counts]
        for level in piece.below:
            offsets = piece.measured.hierarchy.offsets[level - 1]
            values = np.maximum(piece.measured.noisy[level], 0)
            order = piece.ranks(level, self.tie_key)
            found.append(share_among_children(offsets, found[-1], values, order))
        return tuple(found[1:])


@dataclass(frozen=True, kw_only=True)
class DrawByPieces:
    """`MultinomialDraw`: nothing goes up, and every piece has a generator of its own."""

    algorithm: int
    total: Total
    rng: np.random.Generator

    def up(self, piece: Piece) -> Gathered:
        """Nothing."""
        del piece
        return ()

    def across(self, top: Measurements, gathered: Gathered) -> tuple[IntArray, ...]:
        """The top is a tree like any other."""
        del gathered
        one = self.algorithm == 1
        return MultinomialDraw(rng=self.rng, algorithm=1 if one else 2, total=self.total)([top])

    def down(
        self, piece: Piece, counts: IntArray, *, rng: np.random.Generator
    ) -> tuple[IntArray, ...]:
        """Every count dealt to the children at random."""
        found, measured = [counts], piece.measured
        for level in piece.below:
            noisy = measured.noisy[level]
            values = np.maximum(noisy, 0)
            if self.algorithm == 1:
                values = posterior_draws(noisy, measured.laws[level], rng=rng)
            found.append(deal(measured.hierarchy.offsets[level - 1], found[-1], values, rng=rng))
        return tuple(found[1:])


@dataclass(frozen=True, kw_only=True)
class LeastSquaresByPieces:
    """`LeastSquares`: estimates and their variances go up."""

    tie_key: int | None

    def up(self, piece: Piece) -> Gathered:
        """For each node at the cut, the sum of its children's estimates, and its variance."""
        estimates, variances = _upward(piece.measured, piece.below, None)
        return _summed(piece.measured, piece.depth, (estimates[0], variances[0]))

    def across(self, top: Measurements, gathered: Gathered) -> tuple[IntArray, ...]:
        """The same two passes, the first beginning with what was gathered."""
        below = (np.asarray(gathered[0], np.float64), np.asarray(gathered[1], np.float64))
        estimates, variances = _upward(top, range(len(top.hierarchy.sizes)), below)
        return project_down(floors_of(top), estimates, variances, tie_key=self.tie_key)

    def down(
        self, piece: Piece, counts: IntArray, *, rng: np.random.Generator
    ) -> tuple[IntArray, ...]:
        """The nearest children that add up, level by level."""
        del rng
        found = [counts]
        estimates = _upward(piece.measured, piece.below, None)
        for level, estimate, variance in zip(piece.below, *estimates, strict=True):
            offsets = piece.measured.hierarchy.offsets[level - 1]
            spread = np.maximum(variance, SMALLEST_VARIANCE)
            order = piece.ranks(level, self.tie_key)
            found.append(_project_level(offsets, found[-1], estimate, spread, order))
        return tuple(found[1:])


Estimates = tuple[FloatArray, FloatArray]
"""Estimates of a level and their variances."""


def _upward(
    measured: Measurements, levels: range, below: Estimates | None
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Estimates of levels from what was measured at and below each node, and their variances.

    `below` has the sums of the estimates below the innermost of the levels, if there are any.
    """
    found: list[Estimates] = []
    for level in reversed(levels):
        estimate, variance = own_estimate([measured], level)
        if found:
            below = _summed(measured, level, found[-1])
        if below is not None:
            weight = below[1] / (below[1] + variance)
            estimate = weight * estimate + (1 - weight) * below[0]
            variance = weight * variance
        found.append((estimate, variance))
    return [each[0] for each in found[::-1]], [each[1] for each in found[::-1]]


def _summed(measured: Measurements, level: int, children: Estimates) -> Estimates:
    first = measured.hierarchy.offsets[level][:-1]
    return np.add.reduceat(children[0], first), np.add.reduceat(children[1], first)


@dataclass(frozen=True, kw_only=True)
class ClippedByPieces:
    """`Clipped` cells, which are whole as they are: all above are their sums."""

    def up(self, piece: Piece) -> Gathered:
        """For each node at the cut, the sum of its cells."""
        return (self._sums(piece)[piece.depth],)

    def _sums(self, piece: Piece) -> tuple[IntArray, ...]:
        return piece.measured.hierarchy.sums(np.maximum(piece.measured.noisy[-1], 0))

    def across(self, top: Measurements, gathered: Gathered) -> tuple[IntArray, ...]:
        """Sums of the sums."""
        return top.hierarchy.sums(np.asarray(gathered[0], np.int64))

    def down(
        self, piece: Piece, counts: IntArray, *, rng: np.random.Generator
    ) -> tuple[IntArray, ...]:
        """Sums of the cells."""
        del counts, rng
        return self._sums(piece)[piece.depth + 1 :]


def by_pieces(
    method: str, *, tie_key: int | None, total: Total, rng: np.random.Generator
) -> Piecewise:
    """The adjustment of this name, one of PIECEWISE."""
    kinds: dict[str, Piecewise] = {
        "mode": ModeByPieces(tie_key=tie_key, total=total),
        "least-squares": LeastSquaresByPieces(tie_key=tie_key),
        "draw-1": DrawByPieces(algorithm=1, total=total, rng=rng),
        "draw-2": DrawByPieces(algorithm=2, total=total, rng=rng),
        "clipped": ClippedByPieces(),
    }
    return kinds[method]


def joined(parts: Sequence[Gathered]) -> Gathered:
    """What all pieces gathered, in their order."""
    return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
