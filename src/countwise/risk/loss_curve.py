"""How the errors of a plan's tables depend on its loss, known before anything is spent."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log10
from typing import cast

import numpy as np

from countwise.arrays import FloatArray
from countwise.noise.numbers import LARGEST, SMALLEST
from countwise.progress import Tell, silent
from countwise.release.aims import with_loss
from countwise.release.plan import Plan
from countwise.release.table_accuracy import table_accuracy
from countwise.risk.promised_margins import level_margins
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.workload import Workload

SPAN = 30  # times the planned loss, down and up: from too noisy to publish to hardly noisy
POINTS = 25  # a curve through so many looks smooth, as variances are near to powers of the loss


@dataclass(frozen=True, kw_only=True, eq=False)
class LossCurve:
    """What 95 of 100 errors of each table (columns) stay within, at each loss (rows).

    The errors are those after least squares; the shares of the loss stay as planned.
    """

    tables: tuple[str, ...]
    counts: tuple[int, ...]
    losses: tuple[float, ...]
    widths: FloatArray
    planned: tuple[float, ...]
    """The errors at the loss of the plan itself."""


def loss_curve(
    chosen: Plan,
    shape: Workload | Hierarchy,
    *,
    tell: Tell = silent,
) -> LossCurve:
    """The curve of a settled plan, for a tree or for tables that cross."""
    loss = chosen.budget(shape).loss
    losses, widths = [], list[list[float]]()
    for factor in np.geomspace(1 / SPAN, SPAN, POINTS):
        other = to_four_digits(float(loss) * float(factor))
        if SMALLEST <= other <= LARGEST:
            tell(f"errors at {float(other):g}")
            losses.append(float(other))
            widths.append(_widths(_at(chosen, other), shape)[2])
    names, counts, planned = _widths(chosen, shape)
    return LossCurve(
        tables=names,
        counts=counts,
        losses=tuple(losses),
        widths=np.array(widths),
        planned=tuple(planned),
    )


def _at(chosen: Plan, loss: Fraction) -> Plan:
    """The plan at another loss, divided in the same proportions."""
    stated = chosen.epsilon if chosen.rho is None else chosen.rho
    if isinstance(stated, Fraction):
        return with_loss(chosen, loss)
    parts = cast(dict[str, Fraction], stated)
    whole = sum(parts.values())
    scaled = {level: part * loss / whole for level, part in parts.items()}
    return replace(chosen, rho=scaled) if chosen.rho else replace(chosen, epsilon=scaled)


def _widths(
    plan: Plan, shape: Workload | Hierarchy
) -> tuple[tuple[str, ...], tuple[int, ...], list[float]]:
    """The published tables, their numbers of counts, and what their errors stay within."""
    budget = plan.budget(shape)
    if isinstance(shape, Hierarchy):
        levels = dict(shape.describe())
        fitted = [each.fitted for each in level_margins(shape, budget)]
        return tuple(levels), tuple(levels.values()), fitted
    found = table_accuracy(plan.workload(shape), budget)
    names, counts = (tuple(getattr(e, word) for e in found) for word in ("table", "counts"))
    return names, counts, [each.fitted for each in found]


def to_four_digits(number: float) -> Fraction:
    """A positive number to four digits."""
    digits = 3 - int(np.floor(log10(number)))
    return round(Fraction(number), digits)
