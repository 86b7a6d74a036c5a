"""What a plan costs, as a ledger is told it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, cast

from countwise.ledger.prices import Loss, Relation
from countwise.release.noise_budget import OPEN
from countwise.release.plan import Plan

MOST_NAMES = 20  # of exact counts in a ledger entry, which stays short
SETTLED = ("mechanism", "split")


def loss_of(plan: Plan, *, bounded: bool = False, what: str = "release") -> Loss:
    """The whole loss of a plan, known before the table is.

    `bounded` says that the rows of a person were bounded, so that nothing is taken on trust.
    """
    return Loss(
        what=what,
        epsilon=_sum(plan.epsilon),
        rho=_sum(plan.rho),
        neighbours=cast(Relation, plan.neighbours),
        rows=plan.rows,
        bounded=bounded or bool(plan.person),
        exact=_names(plan.exact),
        plan=plan_hash(plan.to_dict()),
    )


def plan_hash(plan: Mapping[str, Any]) -> str:
    """SHA-256 of a plan as plain data: sorted keys, no spaces, ASCII.

    What it leaves open is left out, because a release settles it by the shape of its table.
    """
    said = {name: each for name, each in plan.items() if name not in SETTLED or each != OPEN}
    text = json.dumps(said, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def is_plan_of(plan: Mapping[str, Any], hashed: str) -> bool:
    """Whether a release with this plan, as `release.json` has it, is of a plan with this hash."""
    asked = (
        {**plan, **dict.fromkeys(opened, OPEN)}
        for size in range(len(SETTLED) + 1)
        for opened in combinations(SETTLED, size)
    )
    return any(plan_hash(each) == hashed for each in asked)


def _names(patterns: Sequence[Any]) -> tuple[str, ...]:
    """Exact counts by name, the first of many; the hash of the plan covers them all."""
    names = tuple(map(str, patterns))
    more = len(names) - MOST_NAMES
    return names if more <= 0 else (*names[:MOST_NAMES], f"{more} more")


def _sum(loss: Any) -> Fraction | None:
    if loss is None or isinstance(loss, Fraction):
        return loss
    return sum(loss.values(), Fraction(0))
