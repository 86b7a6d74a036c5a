"""What is seen of the nodes of a level: a value of each, and the law of its error.

A cell is seen through its own noisy count, whose law is exact. A node above the cells is seen
through its best linear estimate from what was measured at and below it, a sum of many noises,
whose error is taken as normal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.tables.measurements import Measurements

ROUNDING = 1 / 12  # variance of a whole number taken as any
ALIKE = log(1.2)  # variances of one law differ by less than this in their logarithm


class ErrorLaw(Protocol):
    """A symmetric law on the whole numbers."""

    @property
    def variance(self) -> float:
        """E Z²."""
        ...

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z > k)."""
        ...

    def cdf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z ≤ k)."""
        ...

    def pmf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z = k)."""
        ...

    def isf(self, q: npt.ArrayLike) -> IntArray:
        """The smallest k with P(Z > k) ≤ q."""
        ...


@dataclass(frozen=True)
class RoundedNormal:
    """A normal error, and the rounding of what was estimated to a whole number."""

    variance: float

    def _standard(self, k: npt.ArrayLike) -> FloatArray:
        return np.asarray(np.asarray(k, dtype=np.float64) / sqrt(self.variance + ROUNDING))

    def sf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z > k)."""
        return np.asarray(ndtr(-self._standard(np.asarray(k, np.float64) + 0.5)))

    def cdf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z ≤ k)."""
        return np.asarray(ndtr(self._standard(np.asarray(k, np.float64) + 0.5)))

    def pmf(self, k: npt.ArrayLike) -> FloatArray:
        """P(Z = k), as a difference of upper tails so that small ones keep their digits."""
        size = np.abs(np.asarray(k, np.float64))
        return self.sf(size - 1) - self.sf(size)

    def isf(self, q: npt.ArrayLike) -> IntArray:
        """The smallest k with P(Z > k) ≤ q."""
        away = -ndtri(q) * sqrt(self.variance + ROUNDING)
        return np.asarray(np.ceil(away - 0.5), dtype=np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Observations:
    """The nodes of a level: whole `values` for tables of laws, `estimates` for arithmetic.

    `which` is the number of each node's law. Nodes that are not `free` are known exactly.
    """

    values: IntArray
    estimates: FloatArray
    variances: FloatArray
    laws: tuple[ErrorLaw, ...]
    which: IntArray
    free: BoolArray

    def by_law(self, nodes: IntArray) -> Iterator[tuple[ErrorLaw, IntArray]]:
        """Each law with the places, among some nodes, of those that have it."""
        for number, law in enumerate(self.laws):
            places = np.flatnonzero(self.which[nodes] == number)
            if len(places):
                yield law, places

    def risk(self, nodes: IntArray, means: FloatArray, variances: FloatArray) -> float:
        """Squared error to expect of posterior means, estimated without trust in the prior.

        Stein 1981: the distance from the unbiased estimates, and what they are followed: a
        posterior mean moves with its estimate by the ratio of the variances after and before.
        """
        off = (means - self.estimates[nodes]) ** 2
        return float((off + 2 * variances - self.variances[nodes]).sum())


def observe(
    measurements: Sequence[Measurements], level: int, estimates: FloatArray, variances: FloatArray
) -> Observations:
    """A level seen through its best linear estimates, the cells through a single noisy count."""
    first = measurements[0]
    laws: tuple[ErrorLaw, ...]
    if level == len(first.hierarchy.by) and len(measurements) == 1:
        values, laws = first.noisy[level], (first.laws[level],)
        which = np.zeros(len(values), dtype=np.int64)
    else:
        values = np.rint(estimates).astype(np.int64)
        grades, which = np.unique(np.rint(np.log(variances) / ALIKE), return_inverse=True)
        laws = tuple(RoundedNormal(float(variances[which == i].mean())) for i in range(len(grades)))
    return Observations(
        values=values,
        estimates=estimates,
        variances=variances,
        laws=laws,
        which=which,
        free=first.protected(level),
    )
