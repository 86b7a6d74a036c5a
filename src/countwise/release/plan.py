"""The plan of a release: everything decided before a count is read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import tomli_w

from countwise.adjust.adjustments import ADJUSTMENTS, Choices
from countwise.adjust.histogram import SIGNED
from countwise.adjust.mode import Total
from countwise.adjust.protocol import Adjustment
from countwise.choices import one_of, only_keys
from countwise.errors import PlanError
from countwise.noise.count_noise import MECHANISMS, Unit
from countwise.noise.numbers import Number, exact, written
from countwise.noise.sensitivity import (
    NEIGHBOURS,
    Neighbours,
    level_sensitivity,
    squared_level_sensitivity,
)
from countwise.pages.notebook import frame_html
from countwise.release.budget import (
    Budget,
)
from countwise.release.noise_budget import OPEN, make_budget, settle
from countwise.release.wanted import (
    Wanted,
    chosen_workload,
    crossed_facts,
    crossed_fields,
    declared_variables,
    read_wanted,
    refuse_trees_only,
)
from countwise.tables.crossed_cells import variables_of
from countwise.tables.hierarchy import Hierarchy, Shaped, listed
from countwise.tables.invariants import Invariants, find_invariants
from countwise.tables.notation import Names, read_variables
from countwise.tables.pattern import Pattern, read_patterns
from countwise.tables.tabulate import OUTSIDE
from countwise.tables.workload import Workload
from countwise.toml_files import read_toml

BACKENDS = ("exact", "opendp")
TOTALS = ("independent", "summed")
TIES = ("random", "last")
SPLITS = ("auto", "even", "relative")
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
IMPRINT = ("title", "producer", "contact")
"""What a plan may say of the publication, for its pages."""
CROSSED = ("variables", "tables")


@dataclass(frozen=True, kw_only=True, repr=False)
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
    list of such wishes, each of which may have a weight; losses are by table. `title`, `producer`
    and `contact` stand on every page. Nodes picked by
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
    title: str = ""
    producer: str = ""
    contact: str = ""

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
        if self.joint and self.noise != "exact":
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
        for word in IMPRINT:
            if not isinstance(getattr(self, word), str):
                raise PlanError(f"{word} must be a text, got {getattr(self, word)!r}.")
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

    def __repr__(self) -> str:
        return f"Plan({', '.join(f'{name}={value!r}' for name, value in self._stated().items())})"

    def _repr_html_(self) -> str:
        """What the plan states, a line each; the rest is as usual."""
        words = [(name, str(value)) for name, value in self._stated().items()]
        frame = pl.DataFrame(words, schema=["plan", "value"], orient="row")
        return frame_html(frame, about="Plan; what is not named is as usual.")

    def _stated(self) -> dict[str, Any]:
        """What is not as usual, as plain data."""
        usual = {name: value for name, value in DEFAULTS.items() if name not in PATTERNS}
        return {
            name: value
            for name, value in self.to_dict().items()
            if value not in ("", [], {}) and (name not in usual or value != usual[name])
        }

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
        if self.mechanism != OPEN and MECHANISMS[self.mechanism].unit != self.unit:
            raise PlanError(
                "Gaussian noise has no finite epsilon: mechanism gaussian takes its loss as rho "
                "(--rho 0.5), and the other mechanisms take theirs as epsilon (--epsilon 1)."
            )

    @property
    def unit(self) -> Unit:
        """What losses are counted in: ε, or ρ for Gaussian noise."""
        return "epsilon" if self.rho is None else "rho"

    @property
    def joint(self) -> bool:
        """Whether its noise is drawn for a whole tree at once."""
        return self.mechanism != OPEN and MECHANISMS[self.mechanism].joint

    def settled(self, shape: Shaped) -> "Plan":
        """The plan with what it leaves open chosen from the shape of the table alone."""
        return settle(self, shape)

    def budget(self, shape: Shaped) -> Budget:
        """The loss and the noise of every level of a hierarchy, or of every measured table."""
        return make_budget(self, shape)

    def reach(self, nodes: int) -> int:
        """How far a person moves so many counts, in the measure of the mechanism's scale."""
        how = level_sensitivity if self.rho is None else squared_level_sensitivity
        return how(cast(Neighbours, self.neighbours), rows=self.rows, nodes=nodes)

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

    def adjustment(self, *, tie_key: int | None, rng: np.random.Generator) -> Adjustment:
        """The method that makes the counts add up, with its random choices given."""
        total = cast(Total, self.total)
        choices = Choices(tie_key=tie_key, rng=rng, total=total, pool=self.pool)
        return ADJUSTMENTS[self.adjust].make(choices)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, numbers as exact text."""
        return {
            "by": list(self.by),
            self.unit: _plain(self.epsilon if self.rho is None else self.rho),
            "split": _plain(self.split),
            **{name: getattr(self, name) for name in DEFAULTS if name not in ("split", *PATTERNS)},
            **{name: [each.to_dict() for each in getattr(self, name)] for name in PATTERNS},
            **crossed_facts(self),
            **{name: text for name in IMPRINT if (text := getattr(self, name))},
        }

    def to_toml(self) -> str:
        """The plan as the text of a plan file."""
        return tomli_w.dumps(self.to_dict())


def from_dict(data: Mapping[str, Any], *, where: str = "plan") -> Plan:
    """A plan from plain data; every unknown word is refused."""
    known = ("epsilon", "rho", "by", *DEFAULTS, *CROSSED, *IMPRINT)
    only_keys(data, known, where=where, error=PlanError)
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
