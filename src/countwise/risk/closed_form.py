"""The error of every table as a formula of the loss and its shares, for a page to compute with.

Least squares over margins takes one pass along the spine for every combination of parts of the
axes, so the mean variance of every table follows from the precisions of the measured ones by some
thousand multiplications. docs/explain/crossed-least-squares.md, section 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countwise.arrays import FloatArray
from countwise.margins.crossing import Crossing, crossing
from countwise.margins.meanvariances import MeanVariances
from countwise.margins.shares import NORMAL
from countwise.noise.laws import IntegerLaw
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.notation import margin_of
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

MOST_NUMBERS = 60_000  # half a megabyte of page, and a hundredth of a second for one look
SAME = 1e-4  # relative: four digits
NONE = 1e-12  # a variance that is rounding of none at all
EXACT = 1e20  # the precision of what carries no noise, against which all other is nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedForm:
    """Mean variances of tables (`mean.wanted`) from measured ones, whose noise costs a share each.

    `reach` is how far a person moves a measured table, in the unit of the loss; 0 has no noise.
    """

    mean: MeanVariances
    law: str
    loss: float
    names: tuple[str, ...]
    shares: tuple[float, ...]
    reach: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """As data: sparse rows (places and values) over the levels of the spine and the parts."""
        mean, tree = self.mean, self.mean.crossing.tree
        return {
            "law": self.law,
            "loss": self.loss,
            "parts": mean.parts,
            "measured": [
                {"name": name, "share": share, "reach": reach, "gains": _sparse(row)}
                for name, share, reach, row in zip(
                    self.names, self.shares, self.reach, mean.gains, strict=True
                )
            ],
            "spreads": [_sparse(row.reshape(-1)) for row in mean.spreads],
            "nodes": [each.tolist() for each in tree.nodes],
            "parents": [each.tolist() for each in tree.parents],
            "times": [each.tolist() for each in tree.times],
        }


def _sparse(row: FloatArray) -> list[list[float]]:
    places = np.flatnonzero(row)
    return [places.tolist(), row[places].tolist()]


def closed_form(
    chosen: Plan, shape: Workload | Hierarchy, expected: Sequence[float]
) -> ClosedForm | None:
    """The formula behind a settled plan, if it has one that gives the `expected` errors.

    There is none for joint noise, for single exact counts, where several variables are trees that
    are not balanced, and where it would take too many numbers.
    """
    workload = as_workload(shape) if isinstance(shape, Hierarchy) else chosen.workload(shape)
    budget = chosen.budget(shape)
    crossed = crossing(workload)
    if budget.joint or not crossed.exact:
        return None
    form = _form(chosen, workload, budget, crossed)
    tree = crossed.tree
    numbers = sum(map(len, tree.nodes)) * form.mean.parts + form.mean.spreads.size
    if numbers > MOST_NUMBERS:
        return None
    variances = (np.array(expected) / NORMAL) ** 2
    precisions = [
        1 / each.law.variance if each.law.variance > 0 else EXACT for each in budget.levels
    ]
    found = form.mean(np.array([precisions]))[0]
    return form if np.allclose(found, variances, rtol=SAME, atol=NONE) else None


def _form(chosen: Plan, workload: Workload, budget: Budget, crossed: Crossing) -> ClosedForm:
    laws: list[IntegerLaw] = [each.law for each in budget.levels]
    margins = [_margin(each.level, workload) for each in budget.levels]
    total = float(budget.loss)
    return ClosedForm(
        mean=MeanVariances(crossing=crossed, measured=tuple(margins), wanted=workload.margins),
        law=next((law.name for law in laws if law.variance > 0), "exact"),
        loss=total,
        names=tuple(each.level for each in budget.levels),
        shares=tuple(float(each.loss) / total for each in budget.levels),
        reach=tuple(
            float(chosen.reach(each.nodes)) if each.loss else 0.0 for each in budget.levels
        ),
    )


def _margin(level: str, workload: Workload) -> Margin:
    found = [each for each in workload.margins if workload.name(each) == level]
    return found[0] if found else margin_of(level, workload.names)


def as_workload(tree: Hierarchy) -> Workload:
    """A tree as the workload of one variable, whose levels are all published."""
    levels = tuple(Margin((level,)) for level in range(len(tree.sizes)))
    return Workload(variables=(Variable(name="cells", tree=tree),), margins=levels)
