"""The children of one parent as a mixture: weights that change from step to step.

A step is a cut of an apportionment, or a node of a quadrature. Piece q belongs to the child
``components[q]``: its weight at count x is the child's upward message times ``chances``, the
probability of what was released of the child when its true count is x.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.combination_weights import combination_logs
from countwise.kernels.coupled_mixture import StepLayout, mixture, mixture_draws_given, mixture_sums
from countwise.kernels.solution import LEAST_OVERLAP
from countwise.sumproduct.count_laws import Laws, grid


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """Pieces in the layout of `kernels.mixture`, and where each value sits in the children's."""

    components: IntArray
    bounds: IntArray
    lows: IntArray
    offsets: IntArray
    chances: FloatArray
    places: IntArray
    overlap: ClassVar[float] = LEAST_OVERLAP
    separable: ClassVar[bool] = True
    """Whether the counts of a step are independent but for their sum."""

    def weights(self, children: Laws) -> FloatArray:
        """Messages times chances."""
        return np.asarray(children.values[self.places] * self.chances)

    @property
    def layout(self) -> StepLayout:
        """The pieces as `kernels.mixture` takes them."""
        return StepLayout(self.offsets, self.lows, self.components, self.bounds)

    def tied(self, low: int, coupling: FloatArray) -> tuple[int, FloatArray]:
        """The coupling of the kernel's sum, from that of the parent's count."""
        return low, coupling

    def untied(self, sums: FloatArray) -> FloatArray:
        """The law of the parent's count, from the law of the kernel's sum."""
        return sums

    def unpacked(self, packed: IntArray) -> IntArray:
        """The counts of children, from the numbers the kernel adds up."""
        return packed

    def sums(
        self, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:
        """Law of the parent's count when `coupling` holds of it, logs of the steps and of all."""
        low, coupling = self.tied(low, coupling)
        weights = self.weights(children)
        sums, logs, log = mixture_sums(
            weights, self.layout, coupling, low, least_overlap=self.overlap
        )
        return self.untied(sums), logs, log

    def solve(
        self, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Marginals and messages in the layout of the children, and the law of their sum."""
        low, coupling = self.tied(low, coupling)
        weights = self.weights(children)
        found = mixture(weights, self.layout, coupling, low, least_overlap=self.overlap)
        size = len(children.values)
        messages = np.bincount(self.places, found.messages * self.chances, size)
        marginals = np.bincount(self.places, found.marginals, size)
        return (
            np.asarray(marginals, np.float64),
            np.asarray(messages, np.float64),
            self.untied(found.sums),
        )

    def logs(
        self, weights: FloatArray, rows: IntArray, low: int, coupling: FloatArray
    ) -> FloatArray:
        """log of the joint weight of each row of counts, when `coupling` holds of their sum."""
        at = rows.sum(axis=1) - low
        inside = (at >= 0) & (at < len(coupling))
        with np.errstate(divide="ignore"):
            tied = np.log(np.where(inside, coupling[np.where(inside, at, 0)], 0.0))
        return np.asarray(combination_logs(rows, weights, self.layout) + tied)

    def split(self, children: Laws, sums: IntArray, rng: np.random.Generator) -> IntArray:
        """A draw of the children for each given sum, one a row."""
        return mixture_draws_given(sums, self.weights(children), self.layout, rng=rng)


def laid_out(
    children: Laws, components: IntArray, bounds: IntArray, lows: IntArray, highs: IntArray
) -> Steps:
    """Pieces on the given windows, cut to those of the children, with chances of one."""
    low = np.clip(lows, children.lows[components], children.highs[components])
    high = np.clip(highs, low, children.highs[components])
    offsets = np.concatenate([[0], np.cumsum(high - low + 1)])
    start = children.offsets[components] - children.lows[components]
    x = grid(low, offsets)
    return Steps(
        components=components,
        bounds=bounds,
        lows=low,
        offsets=offsets,
        chances=np.ones(len(x)),
        places=x + np.repeat(start, high - low + 1),
    )
