"""Signed sums of boxes of a crossed table, and their least-squares estimates with variances."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.margins.leastsquares import Estimates, fit
from countwise.margins.measurement import Measurement
from countwise.margins.reconstruction import fittable
from countwise.tables.workload import Margin, Workload

MANY = 2**30  # a noisy count of it stands for a 1, so that the fit keeps nine digits


@dataclass(frozen=True, kw_only=True, eq=False)
class Box:
    """The sum of the counts of a margin over a set of categories of each variable.

    Categories by their positions at the margin's level; None for all of them together.
    """

    margin: Margin
    categories: tuple[IntArray | None, ...]

    def levels(self) -> Margin:
        """The coarsest margin whose counts add up to it."""
        pairs = zip(self.margin.levels, self.categories, strict=True)
        return Margin(tuple(0 if chosen is None else level for level, chosen in pairs))

    def inside(self, workload: Workload, margin: Margin) -> IntArray:
        """1 at the counts of a finer margin that are in it, else 0."""
        levels = self.levels()
        found = np.ones(workload.shape_of(levels), dtype=np.int64)
        for axis, chosen in enumerate(self.categories):
            if chosen is not None:
                line = np.zeros(found.shape[axis], dtype=np.int64)
                line[chosen] = 1
                found = found * line.reshape([-1 if a == axis else 1 for a in range(found.ndim)])
        return workload.spread(found, levels, to=margin)

    def node(self) -> tuple[int, ...] | None:
        """Its place in the margin `levels`, where it is one count of it."""
        if any(chosen is not None and len(chosen) != 1 for chosen in self.categories):
            return None
        return tuple(0 if chosen is None else int(chosen[0]) for chosen in self.categories)


Terms = Sequence[tuple[float, Box]]
"""A sum of boxes, each times a number."""


def sum_estimate(
    workload: Workload, measurements: Sequence[Measurement], estimates: Estimates, terms: Terms
) -> tuple[float, float]:
    """The least-squares estimate of a signed sum of boxes, and its variance."""
    weights = np.zeros(workload.shape)
    for multiple, box in terms:
        weights += multiple * box.inside(workload, workload.finest)
    mean = float((estimates.cells * weights).sum())
    return mean, _variance(workload, measurements, terms, weights)


def _variance(
    workload: Workload, measurements: Sequence[Measurement], terms: Terms, weights: FloatArray
) -> float:
    """f'Gf of a signed sum f, G the inverse of the normal equations.

    Gf is the fit to noisy counts whose right side is f: each box at one measured margin that adds
    up to it, times the variance there, and 0 elsewhere. Boxes that are known exactly drop out.
    """
    noisy = fittable(measurements)
    asked: dict[int, FloatArray] = {}
    for multiple, box in terms:
        place = _covering(workload, noisy, box)
        if not noisy[place].certain:
            variance = noisy[place].variance
            ones = box.inside(workload, noisy[place].margin)
            added = (multiple * variance) * ones.astype(np.float64)
            asked[place] = asked[place] + added if place in asked else added
    scale = max((float(np.abs(each).max()) for each in asked.values()), default=0.0)
    if scale == 0.0:
        return 0.0
    right = []
    for place, each in enumerate(noisy):
        values = np.zeros(each.noisy.shape, dtype=np.int64)
        if place in asked:
            values = np.rint(asked[place] * (MANY / scale)).astype(np.int64)
        if each.exact is not None:
            values = np.where(each.exact, 0, values)
        right.append(replace(each, noisy=values))
    cells = fit(workload, right).cells
    return max(float((cells * weights).sum()) * scale / MANY, 0.0)


def _covering(workload: Workload, measurements: Sequence[Measurement], box: Box) -> int:
    """The place of a measured margin that adds up to a box: of an exact one, or the smallest."""
    levels = box.levels()
    through = [i for i, each in enumerate(measurements) if each.margin.covers(levels)]
    if not through:
        raise InputError(
            f"the noisy counts do not determine sums of table {workload.name(levels)}. "
            "To fix, ask for a sum of a table that was measured."
        )

    def order(place: int) -> tuple[bool, int]:
        each = measurements[place]
        return not each.certain, workload.size(each.margin)

    return min(through, key=order)
