"""The plan of a release: everything decided before a count is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import tomli_w

from countwise.adjust.auto import Auto
from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.histogram import ESTIMATORS, RELEASABLE, SIGNED, FromCells
from countwise.adjust.mode import Mode, Total
from countwise.adjust.protocol import Adjustment
from countwise.adjust.tree_least_squares import LeastSquares
from countwise.choices import one_of, only_keys
from countwise.errors import CountwiseError, PlanError
from countwise.noise.joint import QUICK_DRAWS, expected_draws
from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, IntegerLaw, RoundedLaplace
from countwise.noise.numbers import Number, exact, written
from countwise.noise.sensitivity import (
    NEIGHBOURS,
    Neighbours,
    level_moves,
    level_sensitivity,
    squared_level_sensitivity,
)
from countwise.noise.zcdp import gaussian_scale
from countwise.release.budget import (
    Budget,
    LevelBudget,
    Unit,
    split_by_weights,
    split_evenly,
    split_for_equal_relative_error,
)
from countwise.release.split import best_shares
from countwise.release.wanted import (
    Wanted,
    best_table_shares,
    chosen_workload,
    crossed_facts,
    crossed_fields,
    declared_variables,
    known_counts,
    measured_margins,
    read_wanted,
    refuse_trees_only,
    refuse_undetermined,
)
from countwise.tables.crossed_cells import variables_of
from countwise.tables.hierarchy import ROOT, Hierarchy, Shaped, listed
from countwise.tables.invariants import Invariants, find_invariants
from countwise.tables.notation import Names, read_variables
from countwise.tables.pattern import Pattern, read_patterns
from countwise.tables.tabulate import OUTSIDE
from countwise.tables.workload import Workload
from countwise.toml_files import read_toml

MECHANISMS: dict[str, type[IntegerLaw]] = {
    "geometric": Geometric,
    "laplace": RoundedLaplace,
    "joint": Geometric,
    "gaussian": DiscreteGaussian,
}
BACKENDS = ("exact", "opendp")
ADJUSTMENTS = ("mode", "least-squares", "bayes", "auto", "draw-1", "draw-2", *RELEASABLE)
TOTALS = ("independent", "summed")
TIES = ("random", "last")
SPLITS = ("auto", "even", "relative")
FITTED = ("auto", "bayes", "least-squares")
"""Adjustments that weigh the noisy counts of all levels, so that a split can count on it."""
OPEN = "auto"
Patterns = tuple[Pattern, ...]
DEFAULTS: dict[str, Any] = {
    "split": OPEN,
    "neighbours": "add-remove",
    "rows": 1,
    "mechanism": OPEN,
    "noise": "exact",
    "adjust": "auto",
    "total": "independent",
    "ties": "random",
    "pool": "",
    "person": "",
    "outside": "refuse",
    "exact": (),
    "zeros": (),
}
PATTERNS = ("exact", "zeros")
CROSSED = ("variables", "tables")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to release: what each level may cost, the noise, and the adjustment.

    `epsilon` is the whole privacy loss, divided by `split` (`auto` for the most accurate counts,
    `even`, `relative` for equal relative error, or weights by level), or the loss of each level by
    name; the level of the grand total is called `total`. The mechanism `auto` is joint noise where
    that can be drawn quickly, else geometric. With `adjust` `bayes` or `auto`, cells learn from
    those with the same label of the level `pool`, or from all of them. Gaussian noise has its loss
    as `rho` instead (zCDP). `rows` is the most rows one person can have. Where records are
    tabulated, the column `person` keeps that bound, and `outside` says what becomes of records in
    no cell of the domain: `refuse`, or `other`. `by` names the level columns; empty, it fits any
    table.
    Variables `across` (`age: band > year, sex`, or levels by name) cross that of the levels `by`.
    What is then published are the `tables`: notation such as `county*age*sex, tract:race`, or a
    list of such wishes, each of which may have a weight; losses are by table. Nodes picked by
    `exact` are public and released as they are, and those picked by `zeros` can
    only be zero: patterns such as `county` or `county=Wake,race=Asian`, or a file of nodes.

    >>> plan = Plan(epsilon="1/3", mechanism="geometric", neighbours="replace-one")
    >>> plan.epsilon, plan.to_dict()["adjust"]
    (Fraction(1, 3), 'auto')
    """

    epsilon: Number | Mapping[str, Number] | None = None
    rho: Number | Mapping[str, Number] | None = None
    split: str | Mapping[str, Number] = DEFAULTS["split"]
    neighbours: str = DEFAULTS["neighbours"]
    rows: int = DEFAULTS["rows"]
    mechanism: str = DEFAULTS["mechanism"]
    noise: str = DEFAULTS["noise"]
    adjust: str = DEFAULTS["adjust"]
    total: str = DEFAULTS["total"]
    ties: str = DEFAULTS["ties"]
    pool: str = DEFAULTS["pool"]
    person: str = DEFAULTS["person"]
    outside: str = DEFAULTS["outside"]
    exact: Sequence[str | Mapping[str, Any] | Pattern] = ()
    zeros: Sequence[str | Mapping[str, Any] | Pattern] = ()
    by: tuple[str, ...] = ()
    across: str | Mapping[str, Sequence[str]] = ""
    tables: str | Sequence[Any] = ()

    def __post_init__(self) -> None:
        for unit in ("epsilon", "rho"):
            _set(self, unit, _exact_loss(getattr(self, unit), what=unit))
        if isinstance(self.split, Mapping):
            _set(self, "split", _exact_loss(self.split, what="weight"))
        else:
            _choice(self.split, SPLITS, what="split")
        _choice(self.neighbours, NEIGHBOURS, what="neighbours")
        _choice(self.mechanism, (OPEN, *MECHANISMS), what="mechanism")
        self._check_unit()
        _choice(self.noise, BACKENDS, what="noise")
        if self.mechanism == "joint" and self.noise != "exact":
            raise PlanError("mechanism joint draws its own exact noise: noise=exact.")
        if self.adjust == SIGNED:
            raise PlanError(
                f"adjust {SIGNED} leaves negative counts, and a release has none. To fix, choose "
                f"one of {', '.join(ADJUSTMENTS)}; countwise adjust can use {SIGNED}."
            )
        _choice(self.adjust, ADJUSTMENTS, what="adjust")
        _choice(self.total, TOTALS, what="total")
        _choice(self.ties, TIES, what="ties")
        _choice(self.outside, OUTSIDE, what="outside")
        if self.adjust == "auto" and self.total == "summed":
            raise PlanError(
                "a summed total is made by adjust mode or draw-1; adjust auto weighs the noisy "
                "counts of all levels anyway. To fix, choose adjust=mode, or total=independent."
            )
        if self.adjust == "draw-2" and self.total == "summed":
            raise PlanError("adjust draw-2 takes the total's own noisy count: total=independent.")
        if not isinstance(self.rows, int) or self.rows < 1:
            raise PlanError(f"rows a person must be a whole number of 1 or more, got {self.rows}.")
        _set(self, "by", listed(self.by) if self.by else ())
        for kind in PATTERNS:
            _set(self, kind, read_patterns(getattr(self, kind), by=self.by))
        _set(self, "across", read_variables(self.across) if self.across else {})
        _set(self, "tables", read_wanted(self.tables))
        self._check_crossed()

    def _check_crossed(self) -> None:
        """What only trees, or only tables that cross, can have; their names in one spelling."""
        if not self.across:
            if self.tables:
                raise PlanError(
                    "tables are of variables that cross. To fix, name those with --across, or "
                    "leave --tables out: every level of --by is published."
                )
            return
        refuse_trees_only(self)
        for field, each in crossed_fields(self):
            _set(self, field, each)

    @property
    def variables(self) -> Names:
        """Of tables that cross, all variables by name with their levels; else none."""
        return variables_of(self.by, cast(Names, self.across)) if self.across else {}

    @property
    def columns(self) -> tuple[str, ...]:
        """All level columns, those of the first variable first."""
        return (*self.by, *(level for own in cast(Names, self.across).values() for level in own))

    @property
    def wishes(self) -> tuple[Wanted, ...]:
        """The tables that are to be published, as they were asked for."""
        return cast(tuple[Wanted, ...], self.tables)

    def workload(self, cells: Workload) -> Workload:
        """The variables of a table with the margins that are to be published."""
        return chosen_workload(self, cells)

    def _check_unit(self) -> None:
        if (self.epsilon is None) == (self.rho is None):
            raise PlanError("a plan has either epsilon, or rho for Gaussian noise.")
        if self.mechanism != OPEN and (self.mechanism == "gaussian") != (self.rho is not None):
            raise PlanError(
                "Gaussian noise has no finite epsilon: mechanism gaussian takes its loss as rho "
                "(--rho 0.5), and the other mechanisms take theirs as epsilon (--epsilon 1)."
            )

    @property
    def unit(self) -> Unit:
        """What losses are counted in: ε, or ρ for Gaussian noise."""
        return "epsilon" if self.rho is None else "rho"

    def settled(self, shape: Shaped) -> "Plan":
        """The plan with what it leaves open chosen from the shape of the table alone."""
        plan, shape = self, self._shape(shape)
        if plan.mechanism == OPEN:
            plan = replace(plan, mechanism=self._mechanism(shape))
        if plan.split == OPEN:
            divided = not isinstance(plan.epsilon or plan.rho, Mapping)
            best = divided and plan.adjust in FITTED
            plan = replace(plan, split=plan._best_split(shape) if best else "even")
        if self.mechanism == OPEN and plan.mechanism == "joint":
            drawn = expected_draws([n for _, n in shape.describe()], plan.budget(shape).laws)
            if drawn > QUICK_DRAWS:
                return replace(plan, mechanism="geometric")
        return plan

    def _mechanism(self, shape: Shaped) -> str:
        """The mechanism that suits best, were it drawn quickly enough."""
        if self.rho is not None:
            return "gaussian"
        whole = isinstance(shape, Hierarchy) and self.noise == "exact" and self.adjust in FITTED
        return "joint" if whole else "geometric"

    def reach(self, nodes: int) -> int:
        """How far a person moves so many counts, in the measure of the mechanism's scale."""
        how = level_sensitivity if self.rho is None else squared_level_sensitivity
        return how(cast(Neighbours, self.neighbours), rows=self.rows, nodes=nodes)

    def _best_split(self, shape: Shaped) -> dict[str, Fraction] | str:
        """Weights of the levels that minimise the geometric mean of their variances."""
        if isinstance(shape, Workload):
            return best_table_shares(self, shape)
        nodes = dict(shape.describe())
        reach = {name: self.reach(n) for name, n in nodes.items()}
        for name, known in self._exact_nodes(shape, nodes).items():
            reach[name] *= known < nodes[name]
        if len([name for name, far in reach.items() if far]) < 2:
            return "even"
        shares = best_shares(
            tuple(nodes.values()),
            tuple(reach.values()),
            loss=float(cast(Fraction, self.epsilon or self.rho)),
            mechanism=self.mechanism,
        )
        return {name: share for name, share in zip(nodes, shares, strict=True) if share}

    def _shape(self, shape: Shaped) -> Shaped:
        """What losses are divided over: the levels of the tree, or the tables of the plan."""
        if isinstance(shape, Workload):
            return self.workload(shape)
        if self.by and self.columns != shape.by:
            raise PlanError(
                f"the plan is for the levels {', '.join(self.columns)}, the table has "
                f"{', '.join(shape.by)}."
            )
        return shape

    def _sizes(self, shape: Shaped) -> dict[str, int]:
        """The counts of every level or table that is measured."""
        if not isinstance(shape, Workload):
            return dict(shape.describe())
        return {shape.name(each): shape.size(each) for each in measured_margins(self, shape)}

    def budget(self, hierarchy: Shaped) -> Budget:
        """The loss and the noise of every level of a hierarchy, or of every measured table."""
        if OPEN in (self.mechanism, self.split):
            return self.settled(hierarchy).budget(hierarchy)
        hierarchy = self._shape(hierarchy)
        if self.pool:
            _choice(self.pool, hierarchy.by, what="pool")
        nodes = self._sizes(hierarchy)
        neighbours = cast(Neighbours, self.neighbours)
        reach = {n: level_sensitivity(neighbours, rows=self.rows, nodes=n) for n in nodes.values()}
        known = self._known(hierarchy)
        exact = _exact_nodes(known, nodes)
        losses = self._losses(
            nodes, {level: 0 if exact[level] == n else reach[n] for level, n in nodes.items()}
        )
        levels = tuple(
            LevelBudget(
                level=level,
                nodes=n,
                moves=level_moves(neighbours, rows=self.rows, nodes=n),
                loss=losses[level],
                law=self._law(losses[level], nodes=n, free=exact[level] == n or not reach[n]),
                exact=exact[level],
            )
            for level, n in nodes.items()
        )
        if isinstance(hierarchy, Workload):
            refuse_undetermined(hierarchy, nodes)
        joint = self.mechanism == "joint"
        return Budget(levels=levels, unit=self.unit, joint=joint, invariants=known)

    def _exact_nodes(self, shape: Shaped, nodes: Mapping[str, int]) -> dict[str, int]:
        return _exact_nodes(self._known(shape), nodes)

    def _known(self, shape: Shaped) -> Invariants | None:
        """What is released without noise, of shapes that are there as a whole."""
        if isinstance(shape, Workload):
            return known_counts(self, shape, measured_margins(self, shape))
        return self.invariants(shape) if isinstance(shape, Hierarchy) else None

    def invariants(self, hierarchy: Hierarchy) -> Invariants | None:
        """The nodes of a hierarchy that are released without noise, if any."""
        exact, zeros = cast(Patterns, self.exact), cast(Patterns, self.zeros)
        known = find_invariants(hierarchy, exact, zeros)
        if known is not None and known.exact[-1].all():
            raise PlanError(
                "every cell is declared exact or zero, so there is nothing to protect. To fix, "
                "declare fewer, or publish the table as it is."
            )
        return known

    def _law(self, loss: Fraction, *, nodes: int, free: bool) -> IntegerLaw:
        """The noise that a level's loss buys; none only where no person moves what is not exact."""
        if free:
            return Exact()
        if loss <= 0:
            raise CountwiseError("counts that a person moves were given no loss, so no noise.")
        kind, neighbours = MECHANISMS[self.mechanism], cast(Neighbours, self.neighbours)
        if self.unit == "rho":
            reach = squared_level_sensitivity(neighbours, rows=self.rows, nodes=nodes)
            return kind(scale=gaussian_scale(loss, squared_sensitivity=reach))
        return kind(scale=level_sensitivity(neighbours, rows=self.rows, nodes=nodes) / loss)

    def _losses(self, nodes: dict[str, int], reach: dict[str, int]) -> dict[str, Fraction]:
        """The loss of each level; levels that no person can move cost nothing."""
        spending = [level for level in nodes if reach[level]]
        free = {level: Fraction(0) for level in nodes if not reach[level]}
        if not spending:
            return free
        loss = self.epsilon if self.rho is None else self.rho
        if isinstance(loss, Mapping):
            given = cast(Mapping[str, Fraction], loss)
            _check_levels(given, spending, free, what=self.unit)
            return free | {level: given[level] for level in spending}
        whole = cast(Fraction, loss)
        if isinstance(self.split, Mapping):
            weights = cast(Mapping[str, Fraction], self.split)
            _check_levels(weights, spending, free, what="weight")
            shares = split_by_weights(spending, weights)
        elif self.split == "even":
            shares = split_evenly(spending)
        elif self.unit == "rho":
            squares = {level: Fraction(nodes[level] * reach[level]) ** 2 for level in spending}
            shares = split_by_weights(spending, squares)
        else:
            shares = split_for_equal_relative_error(
                whole, {level: nodes[level] for level in spending}, reach
            )
        return free | {level: whole * share for level, share in shares.items()}

    def adjustment(self, *, tie_key: int | None, rng: np.random.Generator) -> Adjustment:
        """The method that makes the counts add up, with its random choices given."""
        total = cast(Total, self.total)
        if self.adjust == "mode":
            return Mode(tie_key=tie_key, total=total)
        if self.adjust == "least-squares":
            return LeastSquares(tie_key=tie_key)
        if self.adjust == "bayes":
            return EmpiricalBayes(tie_key=tie_key, pool=self.pool)
        if self.adjust == "auto":
            return Auto(tie_key=tie_key, pool=self.pool)
        if self.adjust in ESTIMATORS:
            return FromCells(estimator=ESTIMATORS[self.adjust])
        algorithm: Literal[1, 2] = 1 if self.adjust == "draw-1" else 2
        return MultinomialDraw(rng=rng, algorithm=algorithm, total=total)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, numbers as exact text."""
        return {
            "by": list(self.by),
            self.unit: _plain(self.epsilon if self.rho is None else self.rho),
            "split": _plain(self.split),
            **{name: getattr(self, name) for name in DEFAULTS if name not in ("split", *PATTERNS)},
            **{name: [each.to_dict() for each in getattr(self, name)] for name in PATTERNS},
            **crossed_facts(self),
        }

    def to_toml(self) -> str:
        """The plan as the text of a plan file."""
        return tomli_w.dumps(self.to_dict())


def _exact_nodes(known: Invariants | None, nodes: Mapping[str, int]) -> dict[str, int]:
    """How many nodes of each level are exact."""
    if known is None:
        return dict.fromkeys(nodes, 0)
    return {name: int(exact.sum()) for name, exact in zip(nodes, known.exact, strict=True)}


def from_dict(data: Mapping[str, Any], *, where: str = "plan") -> Plan:
    """A plan from plain data; every unknown word is refused."""
    only_keys(data, ("epsilon", "rho", "by", *DEFAULTS, *CROSSED), where=where, error=PlanError)
    if "epsilon" not in data and "rho" not in data:
        raise PlanError(f'{where}: no epsilon. To fix, add a line such as epsilon = "1".')
    across = declared_variables(data.get("variables", {}), where=where)
    return Plan(**{key: each for key, each in data.items() if key != "variables"}, across=across)


def read_plan(path: str | Path) -> Plan:
    """A plan from a TOML file."""
    path = Path(path)
    data = read_toml(path, what="plan", error=PlanError)
    return from_dict(data, where=str(path))


def _choice(value: str, options: Iterable[str], *, what: str) -> str:
    return one_of(value, options, what=what, error=PlanError)


def _set(plan: Plan, name: str, value: object) -> None:
    object.__setattr__(plan, name, value)


def _exact_loss(value: Any, *, what: str) -> Fraction | dict[str, Fraction] | None:
    if value is None:
        return None
    if isinstance(value, Mapping):
        return {k: exact(v, what=f"{what} of level {k!r}") for k, v in value.items()}
    return exact(value, what=what)


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return written(value) if isinstance(value, Fraction) else value


def _check_levels(
    given: Mapping[str, Fraction], spending: list[str], free: Mapping[str, Fraction], *, what: str
) -> None:
    for level in given:
        if level in free:
            raise PlanError(
                f"level {level!r} takes no {what}: it is released exactly, because it is declared "
                "so or because no replacement of a person can change it. To fix, leave it out."
            )
        _choice(level, spending, what=f"a level with {what}")
    for level in spending:
        if level not in given:
            root = f" (the grand total is the level {ROOT!r})" if level == ROOT else ""
            raise PlanError(
                f"level {level!r} has no {what}{root}. To fix, give one for each of "
                f"{', '.join(spending)}."
            )
