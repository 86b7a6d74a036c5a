"""What a plan would be charged in a ledger, and the loss that its budget leaves for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countwise.errors import PlanError
from countwise.front_door.charging import refuse_half
from countwise.front_door.ledger_functions import ledger_at
from countwise.front_door.words import PathLike, make_plan
from countwise.ledger.series import Series, loss_left, series, unit_left
from countwise.noise.numbers import written
from countwise.release.aims import ANY_LOSS
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.toml_files import read_toml

LOSSES = ("epsilon", "rho")


@dataclass(frozen=True, kw_only=True)
class Account:
    """The budget that a number of releases is planned for; none if no ledger is named."""

    url: str | None = None
    dataset: str | None = None
    releases: int = 1

    def __post_init__(self) -> None:
        refuse_half(self.url, self.dataset)

    def plan(
        self, plan: Plan | PathLike | None, words: Mapping[str, Any], *, unit: str | None = None
    ) -> Plan:
        """The plan that was asked for; where no loss was, with what the budget has left for it."""
        if self.url is None or self.dataset is None or _states_loss(plan, words, unit):
            return make_plan(plan, words, unit=unit)
        with ledger_at(self.url) as ledger, ledger.reading() as book:
            left = unit_left(book, self.dataset)
            made = make_plan(plan, {**words, left: ANY_LOSS})
            loss = loss_left(book, self.dataset, loss_of(made), self.releases)
        return make_plan(plan, {**words, left: written(loss)})

    def charges(self, plan: Plan) -> Series:
        """What the releases of a plan cost; refused if it has no price in the ledger."""
        loss = loss_of(plan)
        if self.url is None or self.dataset is None:
            return series(loss, self.releases)
        with ledger_at(self.url) as ledger, ledger.reading() as book:
            return series(loss, self.releases, book=book, dataset=self.dataset)


def _states_loss(plan: Plan | PathLike | None, words: Mapping[str, Any], unit: str | None) -> bool:
    """Whether a loss, or that one is looked for, was said in words or in a plan."""
    if unit is not None or any(words.get(each) is not None for each in LOSSES):
        return True
    if plan is None or isinstance(plan, Plan):
        return plan is not None
    said = read_toml(Path(plan), what="plan", error=PlanError)
    return any(each in said for each in (*LOSSES, "unit"))
