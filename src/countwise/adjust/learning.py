"""Learning a prior from noisy counts: which of the fitted ones explains a table best."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from countwise.adjust.cellprior import Fit, fit_cells
from countwise.adjust.fitted import Fitted, PooledPrior, SharePrior, pools_of
from countwise.adjust.shareprior import expected_counts, fit_spread, grades_of
from countwise.arrays import BoolArray, FloatArray
from countwise.privacy.measurements import Measurements

FEWEST_CELLS = 30  # a pool smaller than this learns from all cells instead
ROUNDING = 1 / 12  # variance of a whole number taken as any
FEWEST_PARENTS = 8  # below which a label must occur for its share elsewhere to say something


@dataclass(frozen=True, kw_only=True)
class Learned:
    """A fitted prior, its log-likelihood of the noisy cells, and why it was chosen."""

    prior: Fitted
    log_likelihood: float
    reason: str


def learn(measurements: Sequence[Measurements], pool: str) -> Learned:
    """The prior under which the noisy cells are most probable, of those the tree allows."""
    sharpest = min(measurements, key=lambda each: each.laws[-1].variance)
    plain = _pooled(sharpest, pool)
    if not _labels_recur(sharpest):
        return plain
    shares = _shares(measurements, sharpest, pool)
    gain = shares.log_likelihood - plain.log_likelihood
    return shares if gain > 0 else plain


def _labels_recur(measured: Measurements) -> bool:
    hierarchy = measured.hierarchy
    if len(hierarchy.by) < 2:
        return False
    free = measured.protected(len(hierarchy.by))
    times = np.bincount(hierarchy.codes[-1][free], minlength=len(hierarchy.labels[-1]))
    return bool(times[times > 0].min() >= FEWEST_PARENTS)


def _pooled(measured: Measurements, pool: str) -> Learned:
    """One distribution for each pool, empty rather than small where that explains as much."""
    members, names = pools_of(measured.hierarchy, pool)
    free = measured.protected(len(measured.hierarchy.by))
    sizes = np.bincount(members[free], minlength=len(names))
    large = sizes >= FEWEST_CELLS
    groups = [_Group(measured, free & (members == i), None) for i in np.flatnonzero(large)]
    small = free & ~large[members]
    if not large.all():
        groups.append(_Group(measured, free if free.any() else ~free, small))
    _prefer_emptiness(measured, groups)
    priors = [group.fit.prior for group in groups]
    which = np.where(large, np.cumsum(large) - 1, len(groups) - 1)
    prior = PooledPrior(
        level=pool, names=names, pools=tuple(priors[i] for i in which), members=members
    )
    logs = sum(float(group.of_cells(group.fit.logs).sum()) for group in groups)
    return Learned(prior=prior, log_likelihood=logs, reason=prior.words())


class _Group:
    """Cells that share a fit: those it was made from, or some of them."""

    def __init__(self, measured: Measurements, taught: BoolArray, cells: BoolArray | None) -> None:
        self.taught, self.cells = taught, taught if cells is None else cells
        self.fit, self.sparse, self.price = fit_cells(measured.noisy[-1][taught], measured.laws[-1])

    def of_cells(self, values: FloatArray) -> FloatArray:
        """Of values of those it was made from, the cells' own."""
        return values[self.cells[self.taught]]

    def laid(self, moments: tuple[FloatArray, FloatArray], fit: Fit) -> None:
        """Write what a fit makes of the cells into arrays of all cells."""
        moments[0][self.cells] = self.of_cells(fit.means)
        moments[1][self.cells] = self.of_cells(fit.variances)


def _prefer_emptiness(measured: Measurements, groups: list[_Group]) -> None:
    """Take the sparse fit of a group where cells and parents together do not speak against it.

    What the parents say is the likelihood of their noisy counts around the sum of their cells,
    taken as normal.
    """
    moments = measured.noisy[-1].astype(np.float64), np.zeros(measured.hierarchy.cells)
    for group in groups:
        group.laid(moments, group.fit)
    said = _log_parents(measured, moments)
    for group in groups:
        if group.sparse is None:
            continue
        trial = moments[0].copy(), moments[1].copy()
        group.laid(trial, group.sparse)
        then = _log_parents(measured, trial)
        lost = group.of_cells(group.fit.logs - group.sparse.logs).sum() + said - then
        if 2 * lost < group.price:
            group.fit, moments, said = group.sparse, trial, then


def _log_parents(measured: Measurements, moments: tuple[FloatArray, FloatArray]) -> float:
    """log-likelihood of the noisy counts of the cells' parents."""
    first = measured.hierarchy.offsets[-1][:-1]
    mean, variance = (np.add.reduceat(each, first) for each in moments)
    own = np.where(measured.protected(-2), measured.laws[-2].variance, 0.0)
    spread = variance + own + ROUNDING
    return float(-(np.log(spread) + (measured.noisy[-2] - mean) ** 2 / spread).sum() / 2)


def _shares(measurements: Sequence[Measurements], cells: Measurements, pool: str) -> Learned:
    """Expected counts from parents and shares, and the scatter of each pool around them."""
    hierarchy, law = cells.hierarchy, cells.laws[-1]
    level = pool or hierarchy.by[-1]
    members, names = pools_of(hierarchy, level)
    free, noisy = cells.protected(len(hierarchy.by)), cells.noisy[-1]
    grades = grades_of(expected_counts(measurements, cells))
    top = int(max(noisy.max(), 0) + 60 * law.scale) + 1
    logs, pools, everyone = 0.0, [], None
    for i in range(len(names)):
        mine: BoolArray = free & (members == i)
        if int(mine.sum()) >= FEWEST_CELLS:
            spread, reached = fit_spread(noisy[mine], grades[mine], law, top=top)
        else:
            everyone = everyone or fit_spread(noisy[free], grades[free], law, top=top)
            spread, reached = everyone[0], everyone[1] * float(mine.sum() / free.sum())
        pools.append(spread)
        logs += reached
    prior = SharePrior(level=level, names=names, pools=tuple(pools), members=members, grades=grades)
    return Learned(prior=prior, log_likelihood=logs, reason=prior.words())
