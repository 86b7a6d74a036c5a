"""What a plan leaves open, settled for a shape; and the noise that its loss buys there.

Only public shapes are looked at: levels and tables, with the number of their counts.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.choices import one_of
from countwise.errors import CountwiseError, PlanError
from countwise.noise.count_noise import MECHANISMS, plainest
from countwise.noise.joint import QUICK_DRAWS, expected_draws
from countwise.noise.laws import Exact, IntegerLaw
from countwise.noise.sensitivity import (
    Neighbours,
    level_moves,
    level_sensitivity,
    squared_level_sensitivity,
)
from countwise.noise.zcdp import gaussian_scale
from countwise.release.budget import (
    Budget,
    LevelBudget,
    split_by_weights,
    split_evenly,
    split_for_equal_relative_error,
)
from countwise.release.split import best_shares
from countwise.release.wanted import (
    best_table_shares,
    known_counts,
    measured_margins,
    refuse_undetermined,
)
from countwise.tables.hierarchy import ROOT, Hierarchy, Shaped
from countwise.tables.invariants import Invariants
from countwise.tables.workload import Workload

if TYPE_CHECKING:
    from countwise.release.plan import Plan

OPEN = "auto"


def settle(plan: "Plan", shape: Shaped) -> "Plan":
    """The plan with what it leaves open chosen from the shape of the table alone."""
    asked, shape = plan, _divided(plan, shape)
    if plan.mechanism == OPEN:
        plan = replace(plan, mechanism=_mechanism(plan, shape))
    if plan.split == OPEN:
        divided = not isinstance(plan.epsilon or plan.rho, Mapping)
        best = divided and ADJUSTMENTS[plan.adjust].fits
        plan = replace(plan, split=_best_split(plan, shape) if best else "even")
    if asked.mechanism == OPEN and plan.joint:
        drawn = expected_draws([n for _, n in shape.describe()], plan.budget(shape).laws)
        if drawn > QUICK_DRAWS:
            return replace(plan, mechanism=plainest(plan.unit))
    return plan


def _mechanism(plan: "Plan", shape: Shaped) -> str:
    """The mechanism that suits best, were it drawn quickly enough."""
    fits = ADJUSTMENTS[plan.adjust].fits
    if plan.rho is None and isinstance(shape, Hierarchy) and plan.noise == "exact" and fits:
        return next(name for name, each in MECHANISMS.items() if each.joint)
    return plainest(plan.unit)


def _best_split(plan: "Plan", shape: Shaped) -> dict[str, Fraction] | str:
    """Weights of the levels that minimise the geometric mean of their variances."""
    if isinstance(shape, Workload):
        return best_table_shares(plan, shape)
    nodes = dict(shape.describe())
    reach = {name: plan.reach(n) for name, n in nodes.items()}
    for name, known in _exact_nodes(_known(plan, shape), nodes).items():
        reach[name] *= known < nodes[name]
    if len([name for name, far in reach.items() if far]) < 2:
        return "even"
    shares = best_shares(
        tuple(nodes.values()),
        tuple(reach.values()),
        loss=float(cast(Fraction, plan.epsilon or plan.rho)),
        mechanism=plan.mechanism,
    )
    return {name: share for name, share in zip(nodes, shares, strict=True) if share}


def make_budget(plan: "Plan", shape: Shaped) -> Budget:
    """The loss and the noise of every level of a hierarchy, or of every measured table."""
    if OPEN in (plan.mechanism, plan.split):
        return make_budget(settle(plan, shape), shape)
    shape = _divided(plan, shape)
    if plan.pool:
        one_of(plan.pool, shape.by, what="pool", error=PlanError)
    nodes = _sizes(plan, shape)
    neighbours = cast(Neighbours, plan.neighbours)
    reach = {n: level_sensitivity(neighbours, rows=plan.rows, nodes=n) for n in nodes.values()}
    known = _known(plan, shape)
    exact = _exact_nodes(known, nodes)
    losses = _losses(
        plan, nodes, {level: 0 if exact[level] == n else reach[n] for level, n in nodes.items()}
    )
    levels = tuple(
        LevelBudget(
            level=level,
            nodes=n,
            moves=level_moves(neighbours, rows=plan.rows, nodes=n),
            loss=losses[level],
            law=_law(plan, losses[level], nodes=n, free=exact[level] == n or not reach[n]),
            exact=exact[level],
        )
        for level, n in nodes.items()
    )
    if isinstance(shape, Workload):
        refuse_undetermined(shape, nodes)
    return Budget(levels=levels, unit=plan.unit, joint=plan.joint, invariants=known)


def _divided(plan: "Plan", shape: Shaped) -> Shaped:
    """What losses are divided over: the levels of the tree, or the tables of the plan."""
    if isinstance(shape, Workload):
        return plan.workload(shape)
    if plan.by and plan.columns != shape.by:
        raise PlanError(
            f"the plan is for the levels {', '.join(plan.columns)}, the table has "
            f"{', '.join(shape.by)}."
        )
    return shape


def _sizes(plan: "Plan", shape: Shaped) -> dict[str, int]:
    """The counts of every level or table that is measured."""
    if not isinstance(shape, Workload):
        return dict(shape.describe())
    return {shape.name(each): shape.size(each) for each in measured_margins(plan, shape)}


def _known(plan: "Plan", shape: Shaped) -> Invariants | None:
    """What is released without noise, of shapes that are there as a whole."""
    if isinstance(shape, Workload):
        return known_counts(plan, shape, measured_margins(plan, shape))
    return plan.invariants(shape) if isinstance(shape, Hierarchy) else None


def _exact_nodes(known: Invariants | None, nodes: Mapping[str, int]) -> dict[str, int]:
    """How many nodes of each level are exact."""
    if known is None:
        return dict.fromkeys(nodes, 0)
    return {name: int(exact.sum()) for name, exact in zip(nodes, known.exact, strict=True)}


def _law(plan: "Plan", loss: Fraction, *, nodes: int, free: bool) -> IntegerLaw:
    """The noise that a level's loss buys; none only where no person moves what is not exact."""
    if free:
        return Exact()
    if loss <= 0:
        raise CountwiseError("counts that a person moves were given no loss, so no noise.")
    kind, neighbours = MECHANISMS[plan.mechanism].law, cast(Neighbours, plan.neighbours)
    if plan.unit == "rho":
        reach = squared_level_sensitivity(neighbours, rows=plan.rows, nodes=nodes)
        return kind(scale=gaussian_scale(loss, squared_sensitivity=reach))
    return kind(scale=level_sensitivity(neighbours, rows=plan.rows, nodes=nodes) / loss)


def _losses(plan: "Plan", nodes: dict[str, int], reach: dict[str, int]) -> dict[str, Fraction]:
    """The loss of each level; levels that no person can move cost nothing."""
    spending = [level for level in nodes if reach[level]]
    free = {level: Fraction(0) for level in nodes if not reach[level]}
    if not spending:
        return free
    loss = plan.epsilon if plan.rho is None else plan.rho
    if isinstance(loss, Mapping):
        given = cast(Mapping[str, Fraction], loss)
        _check_levels(given, spending, free, what=plan.unit)
        return free | {level: given[level] for level in spending}
    whole = cast(Fraction, loss)
    if isinstance(plan.split, Mapping):
        weights = cast(Mapping[str, Fraction], plan.split)
        _check_levels(weights, spending, free, what="weight")
        shares = split_by_weights(spending, weights)
    elif plan.split == "even":
        shares = split_evenly(spending)
    elif plan.unit == "rho":
        squares = {level: Fraction(nodes[level] * reach[level]) ** 2 for level in spending}
        shares = split_by_weights(spending, squares)
    else:
        shares = split_for_equal_relative_error(
            whole, {level: nodes[level] for level in spending}, reach
        )
    return free | {level: whole * share for level, share in shares.items()}


def _check_levels(
    given: Mapping[str, Fraction], spending: list[str], free: Mapping[str, Fraction], *, what: str
) -> None:
    for level in given:
        if level in free:
            raise PlanError(
                f"level {level!r} takes no {what}: it is released exactly, because it is declared "
                "so or because no replacement of a person can change it. To fix, leave it out."
            )
        one_of(level, spending, what=f"a level with {what}", error=PlanError)
    for level in spending:
        if level not in given:
            root = f" (the grand total is the level {ROOT!r})" if level == ROOT else ""
            raise PlanError(
                f"level {level!r} has no {what}{root}. To fix, give one for each of "
                f"{', '.join(spending)}."
            )
