"""The 95% range beside every released count: it rests on no prior, and needs no secret."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.margins.measurement import Measurement
from countwise.margins.ranges import fitted, margin_ranges
from countwise.sumproduct.implied_bounds import BOUNDLESS
from countwise.sumproduct.normal_approximation import Normal, beside, downward, own_values, upward
from countwise.sumproduct.prior_free_laws import free_laws, normal_ranges
from countwise.tables.measurements import Measurements
from countwise.tables.workload import Workload

PROBABILITY = 0.95  # the usual one, said in every file beside the ranges
SECONDS = 3.0  # longer than that no release is to wait for exact ranges
METHODS = {True: "exact", False: "normal"}
PRIOR = "none"


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranges:
    """The lowest and the highest count of every range, level by level or table by table.

    `exact` says whether they were computed from the laws of all noises, or from that of the node's
    own noise and a normal in place of all others. Of tables written in pieces no range is held.
    """

    low: tuple[IntArray, ...] = ()
    high: tuple[IntArray, ...] = ()
    exact: bool

    def to_dict(self) -> dict[str, Any]:
        """What a release says about its ranges."""
        return {"probability": PROBABILITY, "prior": PRIOR, "method": METHODS[self.exact]}


def ranges_of(measured: Measurements) -> Ranges:
    """The ranges of all counts of a measured table."""
    free = free_laws([measured], seconds=SECONDS)
    levels = [free.ranges(level, PROBABILITY) for level in range(len(measured.hierarchy.sizes))]
    return Ranges(
        low=tuple(frozen(low) for low, _ in levels),
        high=tuple(frozen(high) for _, high in levels),
        exact=free.exact,
    )


def crossed_ranges(workload: Workload, measurements: Sequence[Measurement]) -> Ranges:
    """The ranges of all counts of the published tables."""
    estimates = fitted(workload, measurements)
    found = [
        margin_ranges(workload, measurements, each, PROBABILITY, estimates=estimates)
        for each in workload.margins
    ]
    return Ranges(
        low=tuple(frozen(low) for low, _ in found),
        high=tuple(frozen(high) for _, high in found),
        exact=False,
    )


def gathered(measured: Measurements, depth: int) -> Normal:
    """Of a piece that was measured below a depth: what it says about its nodes at that depth."""
    last = len(measured.hierarchy.sizes)
    own = {level: _own(measured, level) for level in range(depth + 1, last)}
    nothing = np.zeros(measured.hierarchy.sizes[depth])
    own[depth] = Normal(nothing, nothing)
    return upward(measured.hierarchy, own, first=depth)[1][depth]


def top_ranges(top: Measurements, below: Normal) -> tuple[list[tuple[IntArray, IntArray]], Normal]:
    """Ranges of the levels of the top, and what is known of its last nodes but for their pieces.

    `below` is what the pieces gathered about these.
    """
    levels = range(len(top.hierarchy.sizes))
    own = {level: _own(top, level) for level in levels}
    known = {**own, levels[-1]: own[levels[-1]].times(below)}
    ups, sums = upward(top.hierarchy, known)
    sums[levels[-1]] = below
    above = downward(top.hierarchy, own, ups, sums, None)
    found = [_ranges(top, level, beside(sums[level], above[level])) for level in levels]
    return found, own[levels[-1]].times(above[levels[-1]])


def piece_ranges(
    measured: Measurements, told: Normal, depth: int
) -> dict[int, tuple[IntArray, IntArray]]:
    """Ranges of the levels of a piece below a depth, where `told` is known of its nodes."""
    last = len(measured.hierarchy.sizes)
    own = {level: _own(measured, level) for level in range(depth + 1, last)} | {depth: told}
    ups, sums = upward(measured.hierarchy, own, first=depth)
    above = downward(measured.hierarchy, own, ups, sums, None, first=depth)
    return {
        level: _ranges(measured, level, beside(sums.get(level), above[level]))
        for level in range(depth + 1, last)
    }


def _own(measured: Measurements, level: int) -> Normal:
    found = own_values([measured], level)
    assert found is not None
    return found


def _ranges(measured: Measurements, level: int, rest: Normal) -> tuple[IntArray, IntArray]:
    size = len(measured.noisy[level])
    bounds = np.zeros(size, np.int64), np.full(size, BOUNDLESS)
    law, noisy = measured.laws[level], measured.noisy[level]
    return normal_ranges(law, noisy, None, rest, bounds, PROBABILITY)


def as_arrays(name: str, normal: Normal) -> dict[str, FloatArray]:
    """A normal for each node as arrays to be kept."""
    return {f"{name}-means": normal.means, f"{name}-variances": normal.variances}


def of_arrays(name: str, arrays: dict[str, FloatArray]) -> Normal:
    """A normal from such arrays."""
    return Normal(arrays[f"{name}-means"], arrays[f"{name}-variances"])
