"""The plan of a release: everything decided before a count is read."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import tomli_w

from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.histogram import ESTIMATORS, RELEASABLE, SIGNED, FromCells
from countwise.adjust.leastsquares import LeastSquares
from countwise.adjust.mode import Mode, Total
from countwise.adjust.protocol import Adjustment
from countwise.errors import PlanError
from countwise.privacy.epsilon import Number, exact, one_of, written
from countwise.privacy.laws import Geometric, IntegerLaw, RoundedLaplace
from countwise.privacy.sensitivity import NEIGHBOURS, Neighbours, level_sensitivity
from countwise.release.budget import (
    Budget,
    LevelBudget,
    noise_law,
    split_by_weights,
    split_evenly,
    split_for_equal_relative_error,
)
from countwise.tables.hierarchy import ROOT, Hierarchy

MECHANISMS: dict[str, type[IntegerLaw]] = {
    "geometric": Geometric,
    "laplace": RoundedLaplace,
    "joint": Geometric,
}
BACKENDS = ("exact", "opendp")
ADJUSTMENTS = ("mode", "least-squares", "draw-1", "draw-2", *RELEASABLE)
TOTALS = ("independent", "summed")
TIES = ("random", "last")
SPLITS = ("even", "relative")
DEFAULTS: dict[str, Any] = {
    "split": "even",
    "neighbours": "add-remove",
    "rows": 1,
    "mechanism": "geometric",
    "noise": "exact",
    "adjust": "mode",
    "total": "independent",
    "ties": "random",
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How to release: what each level may cost, the noise, and the adjustment.

    `epsilon` is the whole privacy loss, divided by `split` (`even`, `relative` for equal
    relative error, or weights by level), or the loss of each level by name; the level of the
    grand total is called `total`. `rows` is the most rows one person can have. `by` names the
    level columns; empty, it fits any table.
    """

    epsilon: Number | Mapping[str, Number]
    split: str | Mapping[str, Number] = DEFAULTS["split"]
    neighbours: str = DEFAULTS["neighbours"]
    rows: int = DEFAULTS["rows"]
    mechanism: str = DEFAULTS["mechanism"]
    noise: str = DEFAULTS["noise"]
    adjust: str = DEFAULTS["adjust"]
    total: str = DEFAULTS["total"]
    ties: str = DEFAULTS["ties"]
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.epsilon, Mapping):
            _set(
                self,
                "epsilon",
                {k: exact(v, what=f"epsilon of level {k!r}") for k, v in self.epsilon.items()},
            )
        else:
            _set(self, "epsilon", exact(self.epsilon))
        if isinstance(self.split, Mapping):
            _set(
                self,
                "split",
                {k: exact(v, what=f"weight of level {k!r}") for k, v in self.split.items()},
            )
        else:
            one_of(self.split, SPLITS, what="split")
        one_of(self.neighbours, NEIGHBOURS, what="neighbours")
        one_of(self.mechanism, MECHANISMS, what="mechanism")
        one_of(self.noise, BACKENDS, what="noise")
        if self.mechanism == "joint" and self.noise != "exact":
            raise PlanError("mechanism joint draws its own exact noise: noise=exact.")
        if self.adjust == SIGNED:
            raise PlanError(
                f"adjust {SIGNED} leaves negative counts, and a release has none. To fix, choose "
                f"one of {', '.join(ADJUSTMENTS)}; countwise adjust can use {SIGNED}."
            )
        one_of(self.adjust, ADJUSTMENTS, what="adjust")
        one_of(self.total, TOTALS, what="total")
        one_of(self.ties, TIES, what="ties")
        if self.adjust == "draw-2" and self.total == "summed":
            raise PlanError("adjust draw-2 takes the total's own noisy count: total=independent.")
        if not isinstance(self.rows, int) or self.rows < 1:
            raise PlanError(f"rows a person must be a whole number of 1 or more, got {self.rows}.")
        _set(self, "by", tuple(self.by))

    def budget(self, hierarchy: Hierarchy) -> Budget:
        """The loss and the noise of every level of a hierarchy."""
        if self.by and self.by != hierarchy.by:
            raise PlanError(
                f"the plan is for the levels {', '.join(self.by)}, the table has "
                f"{', '.join(hierarchy.by)}."
            )
        nodes = dict(hierarchy.describe())
        reach = {
            level: level_sensitivity(cast(Neighbours, self.neighbours), rows=self.rows, nodes=n)
            for level, n in nodes.items()
        }
        losses = self._losses(nodes, reach)
        kind = MECHANISMS[self.mechanism]
        return Budget(
            joint=self.mechanism == "joint",
            levels=tuple(
                LevelBudget(
                    level=level,
                    nodes=n,
                    sensitivity=reach[level],
                    epsilon=losses[level],
                    law=noise_law(kind, sensitivity=reach[level], epsilon=losses[level]),
                )
                for level, n in nodes.items()
            ),
        )

    def _losses(self, nodes: dict[str, int], reach: dict[str, int]) -> dict[str, Fraction]:
        """ε of each level; levels that no person can move cost nothing."""
        spending = [level for level in nodes if reach[level]]
        free = {level: Fraction(0) for level in nodes if not reach[level]}
        if not spending:
            return free
        if isinstance(self.epsilon, Mapping):
            given = cast(Mapping[str, Fraction], self.epsilon)
            _check_levels(given, spending, free, what="epsilon")
            return free | {level: given[level] for level in spending}
        epsilon = cast(Fraction, self.epsilon)
        if isinstance(self.split, Mapping):
            weights = cast(Mapping[str, Fraction], self.split)
            _check_levels(weights, spending, free, what="weight")
            shares = split_by_weights(spending, weights)
        elif self.split == "even":
            shares = split_evenly(spending)
        else:
            shares = split_for_equal_relative_error(
                epsilon, {level: nodes[level] for level in spending}, reach
            )
        return free | {level: epsilon * share for level, share in shares.items()}

    def adjustment(self, *, tie_key: int | None, rng: np.random.Generator) -> Adjustment:
        """The method that makes the counts add up, with its random choices given."""
        total = cast(Total, self.total)
        if self.adjust == "mode":
            return Mode(tie_key=tie_key, total=total)
        if self.adjust == "least-squares":
            return LeastSquares(tie_key=tie_key)
        if self.adjust in ESTIMATORS:
            return FromCells(estimator=ESTIMATORS[self.adjust])
        algorithm: Literal[1, 2] = 1 if self.adjust == "draw-1" else 2
        return MultinomialDraw(rng=rng, algorithm=algorithm, total=total)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, numbers as exact text."""
        return {
            "by": list(self.by),
            "epsilon": _plain(self.epsilon),
            "split": _plain(self.split),
            **{name: getattr(self, name) for name in DEFAULTS if name != "split"},
        }

    def to_toml(self) -> str:
        """The plan as the text of a plan file."""
        return tomli_w.dumps(self.to_dict())


def from_dict(data: Mapping[str, Any], *, where: str = "plan") -> Plan:
    """A plan from plain data; every unknown word is refused."""
    for key in data:
        one_of(key, ("epsilon", "by", *DEFAULTS), what=f"{where}: a key")
    if "epsilon" not in data:
        raise PlanError(f'{where}: no epsilon. To fix, add a line such as epsilon = "1".')
    return Plan(**data)


def read_plan(path: str | Path) -> Plan:
    """A plan from a TOML file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = tomllib.load(file)
    except FileNotFoundError:
        raise PlanError(f"{path}: there is no such plan file.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise PlanError(f"{path}: not a plan in TOML: {problem}") from None
    return from_dict(data, where=str(path))


def _set(plan: Plan, name: str, value: object) -> None:
    object.__setattr__(plan, name, value)


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
                f"level {level!r} takes no {what}: no replacement of a person can change it, so "
                "it is released exactly. To fix, leave it out."
            )
        one_of(level, spending, what=f"a level with {what}")
    for level in spending:
        if level not in given:
            root = f" (the grand total is the level {ROOT!r})" if level == ROOT else ""
            raise PlanError(
                f"level {level!r} has no {what}{root}. To fix, give one for each of "
                f"{', '.join(spending)}."
            )
