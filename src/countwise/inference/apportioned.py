"""Ties of a mode release of which only the counts are known.

The children of a parent with released count m were apportioned by their clipped noisy counts v.
Their likelihood given the true counts is a sum over cuts of products of windows (see
`kernels.cuts`), plus the case that all v are zero, which is apportioned like equal counts. A
parent released as 0 says nothing about its children.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.inference.adjusted import Adjusted
from countwise.inference.ranges import apportioned_shares, ranges
from countwise.kernels.cuts import enumerate_cuts, is_equal_split
from countwise.sumproduct.evidence import Seen
from countwise.sumproduct.laws import Laws, grid
from countwise.sumproduct.noise import Noise
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.steps import Steps, laid_out
from countwise.tables.hierarchy import Hierarchy

DEPTH = 33.0  # windows end where the likelihood is exp(-33) of its largest value
FAR = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Apportioned(Adjusted):
    """With the order of service on ties: the lowest among siblings comes first."""

    order: tuple[IntArray, ...]

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The cuts of a parent's children as a mixture."""
        here = slice(*self.hierarchy.offsets[level][parent : parent + 2].tolist())
        k, rank = self.counts[level + 1][here], self.order[level + 1][here]
        noise = self.noise[level + 1].part(here)
        lowest, highest = self.ranges.sums[level]
        cuts = enumerate_cuts(
            k, rank, lowest_sum=float(lowest[parent]), highest_sum=float(highest[parent])
        )
        pieces = Pieces(cuts.changed, cuts.bounds, cuts.lows, cuts.highs)
        if int(k.sum()) > 0 and is_equal_split(k, rank):
            pieces = with_all_zero(pieces, len(k))
        if pieces.bounds.size < 2:
            return impossible(children)
        return windowed(children, noise, pieces, self.ranges.depth)

    def widened(self, touched: list[tuple[BoolArray, BoolArray]]) -> "Apportioned | None":
        """Twice the depth everywhere when a window ends where there is mass, and more beyond."""
        if not self.ranges.cut_short(touched):
            return None
        return apportioned(
            self.hierarchy,
            self.counts,
            order=self.order,
            noise=self.noise,
            root=self.root,
            prior=self.prior,
            depth=2 * self.ranges.depth,
        )


def apportioned(
    hierarchy: Hierarchy,
    counts: tuple[IntArray, ...],
    *,
    order: tuple[IntArray, ...],
    noise: tuple[Noise, ...],
    root: Seen,
    prior: Prior,
    depth: float = DEPTH,
) -> Apportioned:
    """Ties of released counts; lower `order` is served first on a tie among siblings."""
    return Apportioned(
        hierarchy=hierarchy,
        counts=counts,
        order=order,
        noise=noise,
        root=root,
        prior=prior,
        ranges=ranges(
            hierarchy,
            counts,
            noise=noise,
            root=root,
            upper=prior.upper,
            depth=depth,
            shares=apportioned_shares(hierarchy, counts),
        ),
    )


class Pieces(NamedTuple):
    """Windows of clipped noisy counts, as in `kernels.cuts.Cuts`."""

    components: IntArray
    bounds: IntArray
    lows: IntArray
    highs: IntArray


def with_all_zero(pieces: Pieces, size: int) -> Pieces:
    """One more step, in which every clipped noisy count is zero."""
    zeros, everyone = np.zeros(size, np.int64), np.arange(size)
    components = np.concatenate([pieces.components, everyone])
    return Pieces(
        components,
        np.append(pieces.bounds, len(components)),
        np.concatenate([pieces.lows, zeros]),
        np.concatenate([pieces.highs, zeros]),
    )


def windowed(children: Laws, noise: Noise, pieces: Pieces, depth: float) -> Steps:
    """Steps whose chances are P(low ≤ max(x + Z, 0) ≤ high)."""
    far = noise.reach(np.full(children.nodes, depth))[pieces.components]
    highs = np.minimum(pieces.highs, FAR)
    steps = laid_out(
        children, pieces.components, pieces.bounds, pieces.lows - far, np.minimum(highs + far, FAR)
    )
    sizes = np.diff(steps.offsets)
    x = grid(steps.lows, steps.offsets)
    low = np.repeat(np.where(pieces.lows == 0, -FAR, pieces.lows), sizes)
    owners = np.repeat(pieces.components, sizes)
    chances = noise.between(owners, low - x, np.repeat(highs, sizes) - x)
    return replace(steps, chances=chances)


def impossible(children: Laws) -> Steps:
    """A single step that can not happen."""
    everyone = np.arange(children.nodes)
    steps = laid_out(
        children, everyone, np.array([0, children.nodes]), children.lows, children.highs
    )
    return replace(steps, chances=np.zeros(len(steps.places)))
