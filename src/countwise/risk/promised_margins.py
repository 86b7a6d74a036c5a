"""What a plan promises of every level before anything is spent, from public shape alone."""

from dataclasses import dataclass

import numpy as np

from countwise.adjust.tree_least_squares import fitted_variances, upward
from countwise.margins.shares import NORMAL
from countwise.release.budget import Budget
from countwise.release.noise_margins import noise_margins
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements


@dataclass(frozen=True, kw_only=True)
class LevelMargins:
    """What 95 of 100 errors of a level's counts stay within: as drawn, and after least squares."""

    noise: int
    fitted: float


def level_margins(hierarchy: Hierarchy, budget: Budget) -> list[LevelMargins]:
    """Margins of each level.

    Those of joint noise come from its exact law, and least squares has nothing to add to it; on a
    tree too large for that, from the laws of its levels, which it does not exceed.
    """
    drawn = noise_margins(budget, hierarchy)
    if budget.joint and drawn is not None:
        return [LevelMargins(noise=each, fitted=float(each)) for each in drawn]
    nothing = hierarchy.sums(np.zeros(hierarchy.cells, dtype=np.int64))
    unknown = Measurements(hierarchy=hierarchy, laws=budget.laws, noisy=nothing, exact=budget.exact)
    fitted = fitted_variances(hierarchy, upward([unknown])[1])
    return [
        LevelMargins(noise=law.margin(0.95), fitted=NORMAL * float(variances.mean()) ** 0.5)
        for law, variances in zip(budget.laws, fitted, strict=True)
    ]
