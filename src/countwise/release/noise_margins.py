"""What the noise of each level stays within in 95 of 100 cases, known from the plan alone."""

from countwise.release.budget import Budget
from countwise.sumproduct.joint_noise_law import joint_law
from countwise.tables.hierarchy import Hierarchy


def noise_margins(budget: Budget, hierarchy: Hierarchy | None) -> list[int] | None:
    """The margins of noise drawn one by one, or of joint noise from its exact law.

    None of joint noise on a tree that is too large to compute it.
    """
    if not budget.joint or hierarchy is None:
        return [each.margin(0.95) for each in budget.laws]
    laws = joint_law(hierarchy, budget.laws, budget.exact)
    return None if laws is None else [each.margin(0.95) for each in laws]


def noise_in_words(budget: Budget, hierarchy: Hierarchy | None) -> list[str]:
    """The margins of each level or table; joint noise is no wider than the laws of its levels."""
    margins, at_most = noise_margins(budget, hierarchy), ""
    if margins is None:
        margins, at_most = [law.margin(0.95) for law in budget.laws], "at most "
    return [
        f"{at_most}±{margin:,}" if each.law.scale else "exact"
        for each, margin in zip(budget.levels, margins, strict=True)
    ]
