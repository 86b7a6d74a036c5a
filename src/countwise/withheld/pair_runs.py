"""Coupled sums of pairs, run by run: steps whose sums of y are in about the same place.

T(Σd, Σy) = coupling(N)·known(N, Σy), with N = m + Σd + Σy the count of the parent. Where what is
known does not change with Σy as far as a step's Σy goes, the step is *free*: one number, z = d + y,
says all. The others are solved in two dimensions, z = d, a run at a time, so that the transform
over y is no longer than the bulk of a few steps. Each run has tilts of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.negligible import ROUNDING
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.node_noise import Noise
from countwise.withheld.pair_columns import FIRST, SECOND, Columns, CutPieces, columns
from countwise.withheld.pair_tilts import SumTable, balanced
from countwise.withheld.pair_transforms import Part, by_transforms, hull

PRECISE = 1e-11  # a larger error of a marginal is not accepted
UPRIGHT = frozen(np.zeros(2))  # no tilt


class Run(NamedTuple):
    """Steps first to last - 1, and whether they are free."""

    first: int
    last: int
    free: bool


class TiltedRun(NamedTuple):
    """A run, its tilt of d and of y, the largest log T under it, and bounds on the steps' logs.

    ``cut`` gives the columns of steps first to last - 1, counted from the run's first.
    """

    free: bool
    tilt: FloatArray
    largest: float
    bounds: FloatArray
    cut: Callable[[int, int], Columns]


class RunSolution(NamedTuple):
    """Of children, laid out as they are: marginals and messages; of the parent, the law of N."""

    marginals: FloatArray
    messages: FloatArray
    sums: FloatArray


def in_windows(
    children: Laws, noise: Noise, k: IntArray, pieces: CutPieces, couple: SumTable, depth: float
) -> list[TiltedRun]:
    """The runs of steps that confine noisy counts to windows."""

    def cut_out(first: int, last: int) -> Columns:
        return columns(children, noise, k, pieces.part(first, last), depth)

    def from_step(start: int) -> Callable[[int, int], Columns]:
        return lambda first, last: cut_out(start + first, start + last)

    whole = cut_out(0, len(pieces.bounds) - 1)
    return [tilted(from_step(run.first), run, couple) for run in runs(whole, couple)]


def solve(ready: list[TiltedRun], children: Laws, couple: SumTable) -> RunSolution | None:
    """What the runs come to together; None where rounding would spoil it."""
    parts: list[Part] = []
    reached = -np.inf
    for each in sorted(ready, key=lambda each: (not each.free, -each.bounds.max())):
        needed = np.flatnonzero(each.bounds > reached - ROUNDING)
        if len(needed):
            part = each.cut(int(needed[0]), int(needed[-1]) + 1)
            found = by_transforms(part, children, couple, each.tilt, free=each.free)
            if found is not None and found.sums.any():
                parts.append(found)
                reached = max(reached, found.log + float(np.log(found.sums.sum())))
    if not parts:
        return None
    logs = np.array([part.log for part in parts])
    shares = np.exp(logs - logs.max())
    total = float(sum(s * part.sums.sum() for s, part in zip(shares, parts, strict=True)))
    error = sum(s * part.error for s, part in zip(shares, parts, strict=True))
    if not total > 0.0 or error > PRECISE * total:
        return None
    marginals, messages, sums = (
        sum(s * each for s, each in zip(shares, arrays, strict=True)) / total
        for arrays in zip(*((p.marginals, p.messages, p.sums) for p in parts), strict=True)
    )
    return RunSolution(np.asarray(marginals), np.asarray(messages), np.asarray(sums))


def runs(whole: Columns, couple: SumTable) -> list[Run]:
    """Steps that can be solved together, in order."""
    low, high = whole.bulk(UPRIGHT, SECOND)
    free = couple.free(low, high)
    longest = 3 * int(np.median((high - low)[~free])) // 2 if not free.all() else 0
    result: list[Run] = []
    ends = 0, 0
    for step, alone in enumerate(free.tolist()):
        ends = min(ends[0], int(low[step])), max(ends[1], int(high[step]))
        if result and result[-1].free == alone and (alone or ends[1] - ends[0] <= longest):
            result[-1] = result[-1]._replace(last=step + 1)
        else:
            ends = int(low[step]), int(high[step])
            result.append(Run(step, step + 1, alone))
    return result


def tilted(cut: Callable[[int, int], Columns], run: Run, couple: SumTable) -> TiltedRun:
    """A run with its tilt; one that is not free once tilted becomes one in two dimensions."""
    part = cut(0, run.last - run.first)
    low, high = hull(part.bulk(UPRIGHT, SECOND))
    tilt = balanced(part, couple, low, high, free=run.free)
    if run.free:
        low, high = hull(part.bulk(tilt, SECOND))
        if not couple.free(np.array([low]), np.array([high]))[0]:
            return tilted(cut, run._replace(free=False), couple)
    ends = [hull(part.bulk(tilt, along)) for along in (FIRST, SECOND)]
    largest = couple.largest(tilt, *ends)
    return TiltedRun(run.free, tilt, largest, part.moments(tilt).logs + largest, cut)
