"""What is known of two sums, and the tilt at which the law of the sums meets it."""

from dataclasses import dataclass

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.withheld.pair_columns import BOTH, Columns

STEEPEST = 300.0  # no weight is tilted by more than e to this


@dataclass(frozen=True, kw_only=True, eq=False)
class SumTable:
    """T as a table: counts N from `low` on (rows), Σy from `least` on; zero outside."""

    m: int
    low: int
    least: int
    table: FloatArray

    def at(self, total: IntArray, y: IntArray) -> FloatArray:
        """T for arrays of N and Σy that fit each other."""
        i, j = np.broadcast_arrays(total - self.low, y - self.least)
        rows, wide = self.table.shape
        inside = (i >= 0) & (i < rows) & (j >= 0) & (j < wide)
        return np.where(inside, self.table[np.where(inside, i, 0), np.where(inside, j, 0)], 0.0)

    def largest(self, tilt: FloatArray, d: tuple[int, int], y: tuple[int, int]) -> float:
        """log of the largest T·exp(-tilt·(Σd, Σy)) for Σd and Σy within these ends."""
        n = self.low + np.arange(len(self.table))[:, None]
        sums = np.arange(max(y[0], self.least), min(y[1], self.least + self.table.shape[1] - 1) + 1)
        gaps = n - self.m - sums
        held = self.table[:, sums - self.least] * ((gaps >= d[0]) & (gaps <= d[1]))
        if not held.any():
            return -np.inf
        with np.errstate(divide="ignore"):
            return float((np.log(held) - tilt[0] * gaps - tilt[1] * sums).max())

    def free(self, low: IntArray, high: IntArray) -> BoolArray:
        """Whether T is the same for every Σy from low to high, for arrays of these."""
        wide = self.table.shape[1]
        changes = np.cumsum([0, 0, *(self.table[:, 1:] != self.table[:, :-1]).any(axis=0)])
        first, last = low - self.least, high - self.least
        within = (first >= 0) & (last < wide)
        before, after = (changes[np.clip(each, 0, wide - 1) + 1] for each in (first, last))
        return np.asarray(within & (before == after))


def balanced(part: Columns, couple: SumTable, low: int, high: int, *, free: bool) -> FloatArray:
    """The tilt of d and y at which the means of law and T agree, T taken for Σy in low..high.

    It minimises the convex bound log Σ_steps Σ w·e^{θ·(d, y)} + log Σ T·e^{-θ·(Σd, Σy)}, by
    Newton steps; half a standard deviation off is near enough. In a free run both
    are tilted alike. Where T is zero from low to high, all of it is taken.
    """
    n = couple.low + np.arange(len(couple.table))
    y = np.array([low]) if free else np.arange(low, high + 1)
    some = couple.at(n[:, None], y) > 0.0
    if not some.any():
        y = couple.least + np.arange(couple.table.shape[1])
        some = couple.table > 0.0
    table = couple.at(n[:, None], y)
    d = n[:, None] - couple.m - y
    basis = BOTH[:, None] if free else np.eye(2)
    points = np.stack([(d + y)[some]] if free else [d[some], (y + 0 * d)[some]], axis=1)
    logs = np.log(table[some])
    reach = max(float(np.abs(part.d).max()), float(np.abs(part.atoms.y).max()), 1.0)

    def bound(theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        at = part.moments(basis @ theta)
        shares, log = _shares(at.logs)
        means = at.means @ basis
        mean = shares @ means
        away = means - mean
        spread = np.einsum("s,sij->ij", shares, basis.T @ at.spreads @ basis)
        spread = spread + (away * shares[:, None]).T @ away
        weights, other = _shares(logs - points @ theta)
        centre = weights @ points
        apart = points - centre
        spread = spread + (apart * weights[:, None]).T @ apart
        return log + other, mean - centre, spread

    theta = np.zeros(basis.shape[1])
    best, slope, spread = bound(theta)
    for _ in range(60):
        step = np.linalg.solve(spread + 1e-9 * np.eye(len(theta)), slope)
        if slope @ step < 0.25:
            break
        size = 1.0
        while size > 1e-6:
            tried = theta - size * step
            if np.abs(tried).max() * reach < STEEPEST:
                value, new_slope, new_spread = bound(tried)
                if value < best:
                    break
            size *= 0.5
        else:
            break
        theta, best, slope, spread = tried, value, new_slope, new_spread
    return np.asarray(basis @ theta)


def _shares(logs: FloatArray) -> tuple[FloatArray, float]:
    """Logarithms of weights as shares of their sum, and the logarithm of that."""
    largest = logs.max()
    weights = np.exp(logs - largest)
    return weights / weights.sum(), float(largest + np.log(weights.sum()))
