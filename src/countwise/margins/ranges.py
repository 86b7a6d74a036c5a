"""Ranges of counts of crossed tables that rest on no prior.

Every other count may be any whole number, all equally likely, and only the one asked about is 0 or
more: its law is that of its own noise times a normal with the mean and variance of what all other
noisy counts say of it. Of a count without a noisy value of its own it is the normal alone.
"""

from collections.abc import Sequence

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import reading
from countwise.kernels.intervals import beside_normal
from countwise.margins.boxes import Box, sum_estimate
from countwise.margins.certainties import Certainties, certainties
from countwise.margins.leastsquares import Estimates, fit
from countwise.margins.measurement import Measurement
from countwise.margins.reconstruction import fittable
from countwise.sumproduct.implied_bounds import BOUNDLESS
from countwise.sumproduct.normal_approximation import Normal
from countwise.sumproduct.prior_free_laws import normal_ranges
from countwise.tables.workload import Margin, Workload

PROBABILITY = 0.95  # as beside every released count
UNKNOWN = 1e30  # variance of what nothing else says
NOTHING = 1e-9  # of a precision: what rounding may leave where there is none
FINE = 10_000  # steps of a standard deviation that are told apart


def margin_ranges(
    workload: Workload,
    measurements: Sequence[Measurement],
    margin: Margin,
    probability: float = PROBABILITY,
    *,
    estimates: Estimates | None = None,
) -> tuple[IntArray, IntArray]:
    """The fewest most probable counts that hold a probability, of every node of a margin.

    `estimates`, where they are at hand, spare fitting once more.
    """
    known = certainties(workload, measurements)
    estimates = fitted(workload, measurements) if estimates is None else estimates
    shape = workload.shape_of(margin)
    means = np.broadcast_to(estimates.margin(margin), shape).reshape(-1)
    variances = np.broadcast_to(estimates.variance(margin), shape).reshape(-1)
    if not np.isfinite(variances).all():
        raise InputError(
            f"the noisy counts do not determine table {workload.name(margin)}. "
            "To fix, ask for a table that they add up to."
        )
    own = [each for each in measurements if each.margin == margin and not each.certain]
    if own:
        first = min(own, key=lambda each: each.variance)
        bounds = np.zeros(means.size, np.int64), np.full(means.size, BOUNDLESS)
        rest = _without(means, variances, first)
        low, high = normal_ranges(
            first.law, first.noisy.reshape(-1), None, rest, bounds, probability
        )
    else:
        low, high = _alone(means, variances, probability)
    return _settled(workload, margin, known, low.reshape(shape), high.reshape(shape))


def sum_range(
    workload: Workload,
    measurements: Sequence[Measurement],
    box: Box,
    probability: float = PROBABILITY,
    *,
    estimates: Estimates | None = None,
) -> tuple[int, int]:
    """The range of one sum, by the normal with its least-squares mean and variance."""
    estimates = fitted(workload, measurements) if estimates is None else estimates
    return normal_range(*sum_estimate(workload, measurements, estimates, [(1.0, box)]), probability)


def normal_range(mean: float, variance: float, probability: float) -> tuple[int, int]:
    """The fewest most probable counts under a normal on 0, 1, … that hold a probability."""
    low, high = _alone(np.array([mean]), np.array([variance]), probability)
    return int(low[0]), int(high[0])


def fitted(workload: Workload, measurements: Sequence[Measurement]) -> Estimates:
    """Least squares, to be shared by several calls."""
    return fit(workload, fittable(measurements))


def _without(means: FloatArray, variances: FloatArray, own: Measurement) -> Normal:
    """What all but a margin's own noisy counts say: their precision and share taken out again."""
    variance, noisy = own.variance, own.noisy.reshape(-1).astype(np.float64)
    safe = np.maximum(variances, NOTHING * variance)
    precisions = 1.0 / safe - 1.0 / variance
    alone = precisions <= NOTHING / variance
    precisions = np.where(alone, 1.0 / UNKNOWN, precisions)
    shifted = noisy + (means - noisy) / safe / precisions
    return Normal(np.where(alone, noisy, shifted), 1.0 / precisions)


def _alone(
    means: FloatArray, variances: FloatArray, probability: float
) -> tuple[IntArray, IntArray]:
    """Ranges of normals on 0, 1, …; wide ones in units of several counts, rounded outwards."""
    unit = int(np.sqrt(variances.max(initial=0.0)) / FINE) + 1
    means, variances = means / unit, variances / unit**2
    low, high = beside_normal(
        reading(np.rint(means).astype(np.int64), np.int64),
        np.zeros(1),  # noise of which every size is as likely
        reading(means, np.float64),
        reading(variances, np.float64),
        np.zeros(means.size, np.int64),
        probability,
    )
    if unit == 1:
        return low, high
    return np.maximum((low - 1) * unit, 0), (high + 1) * unit


def _settled(
    workload: Workload, margin: Margin, known: Certainties, low: IntArray, high: IntArray
) -> tuple[IntArray, IntArray]:
    """The same, with exact counts and 0 where nobody can be."""
    empty = known.empty(workload, margin)
    low, high = np.where(empty, 0, low), np.where(empty, 0, high)
    if margin in known.sums:
        exact, counts = known.sums[margin]
        low, high = np.where(exact, counts, low), np.where(exact, counts, high)
    return low, high
