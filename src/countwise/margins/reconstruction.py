"""Real, non-negative tables from noisy margins: by least squares, and by what cells share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.certainties import Certainties, certainties
from countwise.margins.leastsquares import Estimates, fit
from countwise.margins.measurement import Measurement
from countwise.margins.nonnegative import (
    HELD,
    LEAST_VARIANCE,
    Target,
    certain_target,
    fitted_margins,
    held_to,
    target_of,
)
from countwise.margins.scatter import learned_shapes, raked, shrunk
from countwise.tables.workload import Margin, Workload

HELD_ABOVE = 0.05  # of the variance of margins that another margin but the cells refines
HELD_NEXT = 0.3  # of the others: what cells learned may still move them within their noise


@dataclass(frozen=True, kw_only=True, eq=False)
class Reconstruction:
    """What noisy margins say of the cells."""

    workload: Workload
    measurements: Sequence[Measurement]

    @cached_property
    def known(self) -> Certainties:
        """What the exact counts settle."""
        return certainties(self.workload, self.measurements)

    @cached_property
    def estimates(self) -> Estimates:
        """Signed least squares."""
        return fit(self.workload, fittable(self.measurements))

    @cached_property
    def margins(self) -> list[Margin]:
        """Published and measured margins, each once, the cells not among them."""
        named = [*self.workload.margins, *(each.margin for each in self.measurements)]
        return [each for each in dict.fromkeys(named) if each != self.workload.finest]

    @cached_property
    def targets(self) -> list[Target]:
        """Non-negative counts of all margins above the cells."""
        return fitted_margins(self.workload, self.estimates, self.margins, self.known)

    @cached_property
    def squares(self) -> FloatArray:
        """The table of least squares without negative counts: its margins first, then the cells."""
        cells = target_of(self.workload, self.estimates, self.workload.finest)
        cells = certain_target(self.workload, cells, self.known)
        return held_to(self.workload, cells, [each.tightened(HELD) for each in self.targets])

    @cached_property
    def raked(self) -> FloatArray:
        """The table of most entropy that has these margins."""
        total = float(self.estimates.cells.sum())
        return raked(self.workload, self.targets, total, self.known.free)

    @property
    def own(self) -> Measurement | None:
        """The noisy counts of the cells themselves, the most accurate if there are several."""
        found = [each for each in self.measurements if each.margin == self.workload.finest]
        return min(found, key=lambda each: each.variance, default=None)

    def learned_shapes(self, rng: np.random.Generator) -> FloatArray | None:
        """How cells scatter about the raked table; None where none of them was counted."""
        own = self.own
        return None if own is None else learned_shapes(own.noisy, own.law, self.raked, rng)

    def shrunken(self, shapes: FloatArray | None) -> FloatArray:
        """Cells between their expectations and their noisy counts, joined to the margins again."""
        own = self.own
        if own is None or shapes is None:
            return self.raked
        means, variances = shrunk(own.noisy, own.law, self.raked, shapes)
        cells = Target(margin=self.workload.finest, counts=means, variances=variances)
        cells = certain_target(self.workload, cells, self.known)
        return held_to(self.workload, cells, self._loosely_held(), tilted=True)

    def _loosely_held(self) -> list[Target]:
        refined = [
            any(other != each and other.covers(each) for other in self.margins)
            for each in self.margins
        ]
        above = {each for each, yes in zip(self.margins, refined, strict=True) if yes}
        return [
            each.tightened(HELD_ABOVE if each.margin in above else HELD_NEXT)
            for each in self.targets
        ]

    def mean_variance(self, margin: Margin) -> float:
        """The mean variance of a margin's signed estimates."""
        return max(float(np.mean(self.estimates.variance(margin))), LEAST_VARIANCE)


def fittable(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Measurements with as much of what is exact as least squares takes; the rest count as noisy.

    It takes tables that are exact altogether, and cells where nobody can be beside them where one
    of these tables refines the others.
    """
    known = [each.margin for each in measurements if each.exact is not None and each.exact.all()]
    nested = not known or any(all(one.covers(each) for each in known) for one in known)
    return [_part_noisy(each, nested) for each in measurements]


def _part_noisy(measurement: Measurement, nested: bool) -> Measurement:
    exact = measurement.exact
    if exact is None or exact.all():
        return measurement
    empty = exact & (measurement.noisy == 0)
    return replace(measurement, exact=empty if nested and empty.any() else None)
