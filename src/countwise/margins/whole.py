"""Whole, non-negative cells of which every published margin is a sum.

Least squares first, its margins made non-negative from coarse to fine, then the cells, then whole
numbers by descent over all margins. Where learning from the noisy cells promises more at every
margin, `auto` takes its table in place of that of least squares.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.margins.certainties import Certainties, certainties
from countwise.margins.judging import fresh_noise, gains
from countwise.margins.leastsquares import Estimates, fit
from countwise.margins.measurement import Measurement
from countwise.margins.nonnegative import (
    HELD,
    Target,
    certain_target,
    fitted_margins,
    held_to,
    target_of,
)
from countwise.margins.rounding import rounded
from countwise.margins.scatter import raked, shrunk
from countwise.tables.workload import Margin, Workload

Method = Literal["least-squares", "auto"]


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeCells:
    """The released cells, the method that made them, and why it was taken."""

    cells: IntArray
    method: Method
    reason: str = ""


def whole_cells(
    workload: Workload,
    measurements: Sequence[Measurement],
    *,
    method: Method,
    rng: np.random.Generator,
) -> WholeCells:
    """Cells from noisy margins, exact counts kept; `rng` settles ties and is no noise.

    Under `auto` the reason says in words what was taken and why.
    """
    known = certainties(workload, measurements)
    seen = _Seen(workload=workload, measurements=measurements, known=known)
    table, reason = seen.squares, ""
    taken: Method = "least-squares"
    if method == "auto":
        refused = _refused(seen, rng)
        if refused:
            reason = refused
        else:
            table, taken = seen.shrunken(rng), "auto"
            reason = "cells learned from each other: less expected error, at no margin more"
    cells = rounded(
        workload, table, seen.mean_variances(), free=known.free, exact=known.sums, rng=rng
    )
    return WholeCells(cells=frozen(cells), method=taken, reason=reason)
