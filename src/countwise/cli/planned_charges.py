"""What a plan would be charged in a ledger, and the loss that its budget leaves for one."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from countwise.cli import options
from countwise.cli.charging import refuse_half
from countwise.cli.console import out
from countwise.cli.ledger_command import ledger_at
from countwise.errors import PlanError
from countwise.ledger.series import Series, loss_left, series, unit_left
from countwise.noise.numbers import written
from countwise.release.aims import ANY_LOSS
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.toml_files import read_toml

LOSSES = ("epsilon", "rho", "unit")


@dataclass(frozen=True, kw_only=True)
class Account:
    """The budget that a number of releases is planned for; none if no ledger is named."""

    url: str | None = None
    dataset: str | None = None
    releases: int = 1

    def __post_init__(self) -> None:
        refuse_half(self.url, self.dataset)

    def plan(self, plan_file: Path | None, flags: Mapping[str, Any]) -> Plan:
        """The plan that was asked for; where no loss was, with what the budget has left for it."""
        if self.url is None or self.dataset is None or _states_loss(plan_file, flags):
            return options.make_plan(plan_file, flags)
        with ledger_at(self.url) as ledger, ledger.reading() as book:
            unit = unit_left(book, self.dataset)
            made = options.make_plan(plan_file, {**flags, unit: ANY_LOSS})
            loss = loss_left(book, self.dataset, loss_of(made), self.releases)
        return options.make_plan(plan_file, {**flags, unit: written(loss)})

    def charges(self, plan: Plan) -> Series:
        """What the releases of a plan cost; refused if it has no price in the ledger."""
        loss = loss_of(plan)
        if self.url is None or self.dataset is None:
            return series(loss, self.releases)
        with ledger_at(self.url) as ledger, ledger.reading() as book:
            return series(loss, self.releases, book=book, dataset=self.dataset)


def _states_loss(plan_file: Path | None, flags: Mapping[str, Any]) -> bool:
    """Whether a loss, or that one is looked for, was said on the command line or in a file."""
    if any(flags.get(each) is not None for each in LOSSES):
        return True
    if plan_file is None:
        return False
    words = read_toml(plan_file, what="plan", error=PlanError)
    return any(each in words for each in LOSSES)


def as_data(costs: Series) -> dict[str, Any]:
    """What is shown of the charges as JSON: nothing where there is one release and no ledger."""
    return {"series": costs.to_dict()} if costs.sentences() else {}


def print_charges(costs: Series) -> None:
    """The same in sentences."""
    for sentence in costs.sentences():
        out.print(sentence, markup=False, soft_wrap=True, style=None if costs.enough else "bold")
