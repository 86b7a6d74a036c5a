"""Whole, non-negative cells of which every published margin is a sum.

Least squares first, its margins made non-negative from coarse to fine, then the cells, then whole
numbers by descent over all margins. Where learning from the noisy cells promises more at every
margin, `auto` takes its table in place of that of least squares. The derivation:
docs/explain/crossed-whole-cells.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from countwise.arrays import FloatArray, IntArray, frozen
from countwise.margins.expected_error import compared
from countwise.margins.measurement import Measurement
from countwise.margins.nonnegative import target_of
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.rounding import rounded
from countwise.margins.scatter import reach
from countwise.tables.workload import Margin, Workload

Method = Literal["least-squares", "auto"]

MOST_CELLS = 2_000_000  # more are not learned from: several fits of them would take too long
MOST_TERMS = 3 * 10**7  # cells times the reach of their noise: a second for each look at them
NO_WORSE = 0.01  # of a margin's variance: what two tables may differ by and count as equal
CELLS = 3.0  # times the weight of a margin: near cells cost margins little, which have many moves
NEAR_ZERO = 0.01  # of the variance: error of a count that is 0 as far as the fit can tell
BETTER = 0.02  # of the cells' squared error: less is not worth a prior


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
    seen = Reconstruction(workload=workload, measurements=measurements)
    table, taken, reason = real_cells(seen, method, rng)
    errors = {each: _error(seen, table, each) for each in [*seen.margins, workload.finest]}
    errors[workload.finest] /= CELLS
    cells = rounded(workload, table, errors, seen.known, rng)
    return WholeCells(cells=frozen(cells), method=taken, reason=reason)


def real_cells(
    seen: Reconstruction, method: Method, rng: np.random.Generator
) -> tuple[FloatArray, Method, str]:
    """The same before they are rounded."""
    if method == "auto":
        shrunken, reason = _shrunken(seen, rng)
        if shrunken is not None:
            return shrunken, "auto", reason
        return seen.squares, "least-squares", reason
    return seen.squares, "least-squares", ""


def _shrunken(seen: Reconstruction, rng: np.random.Generator) -> tuple[FloatArray | None, str]:
    """The table that learned from its cells where it is expected to be better, and why in words."""
    workload, own = seen.workload, seen.own
    hindered = _hindered(seen)
    if hindered:
        return None, hindered
    shapes = seen.learned_shapes(rng)
    errors = compared(seen, lambda each: each.squares, lambda each: each.shrunken(shapes), rng)
    worse = {m: each.excess for m, each in errors.items() if each.excess > NO_WORSE + each.within}
    if worse:
        worst = max(worse, key=lambda each: worse[each])
        return None, (
            f"learning from the cells would raise the squared error of table "
            f"{workload.name(worst)} by {worse[worst]:.0%} of its variance"
        )
    table = seen.shrunken(shapes)
    if own is None:
        return table, "no noisy counts of cells: they follow the margins with most entropy"
    cells = errors[workload.finest]
    if -cells.excess < max(cells.within / 3, BETTER * cells.first):
        return None, "learning from the cells would change next to nothing"
    ratio = max(1.0 + cells.excess / max(cells.first, -cells.excess), 0.0)
    return table, (
        "cells scatter about what the margins imply by a law learned from them: expected squared "
        f"error {ratio:.0%} of that of least squares, and of no table shown to be higher"
    )


def _hindered(seen: Reconstruction) -> str:
    """Why nothing can be learned from the cells; empty where it can."""
    cells, own = seen.workload.cells, seen.own
    if cells > MOST_CELLS:
        return f"{cells:,} cells would take too long to learn from"
    if own is not None and not own.law.variance:
        return "the cells carry no noise"
    if own is not None and cells * reach(own.law) > MOST_TERMS:
        return "the noise of the cells is so wide that learning from them would take too long"
    return ""


def _error(seen: Reconstruction, table: FloatArray, margin: Margin) -> float:
    """About the mean squared error of a margin: of counts near 0 the variance is no measure."""
    target = target_of(seen.workload, seen.estimates, margin)
    variance, counts = target.variances, seen.workload.sums(table, margin)
    near = np.maximum(counts * np.sqrt(variance), NEAR_ZERO * variance)
    return float(np.mean(np.minimum(variance, near)))
