"""What is charged to a ledger: planned, and paid before a row is read, whatever the rows."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from countwise.errors import PlanError
from countwise.front_door.ledger_functions import ledger_at
from countwise.front_door.words import PathLike, make_plan
from countwise.ledger.prices import Charge, Loss
from countwise.ledger.series import Series, loss_left, series, unit_left
from countwise.noise.numbers import written
from countwise.release.aims import ANY_LOSS
from countwise.release.payment import FREE, Payment
from countwise.release.plan import Plan
from countwise.release.plan_loss import loss_of
from countwise.toml_files import read_toml


def payment(url: str | None, loss: Loss, *, dataset: str | None) -> Payment:
    """How a run is paid for; a loss that has no price in the ledger is refused here.

    The charge is spent at once, in one entry; none is added to it when the run ends.
    """
    if url is None or not dataset:
        refuse_half(url, dataset)
        return FREE
    with ledger_at(url) as ledger, ledger.reading() as book:
        price = book.price(dataset, loss)

    def pay(charge: str) -> None:
        with ledger_at(url) as ledger, ledger.writing() as book:
            if book.state(charge) is None:
                book.charge(charge, loss, {"dataset": dataset}, kind="spent")

    about = "\n".join((url, dataset, loss.to_text()))
    return Payment(
        pay=pay,
        purpose=hashlib.sha256(about.encode()).hexdigest(),
        words=f"{price.amount.in_words()} of data set {dataset!r}",
    )


def refuse_half(url: str | None, dataset: str | None) -> None:
    """A ledger and a data set belong together."""
    if url is not None and not dataset:
        raise PlanError("a ledger needs to know whose budget it is. To fix, add --dataset NAME.")
    if dataset and url is None:
        raise PlanError("--dataset names a budget of a ledger. To fix, add --ledger URL.")


def dataset_of(bound: str | None, url: str | None, dataset: str | None) -> str | None:
    """The data set that a release charges: the one its cells were counted for, if they say so."""
    if bound is None:
        return dataset
    if url is None:
        raise PlanError(
            f"the table was counted for data set {bound!r} of a ledger, which its release must "
            "charge. To fix, add --ledger URL."
        )
    if dataset not in (None, bound):
        raise PlanError(
            f"the table was counted for data set {bound!r}, not {dataset!r}. To fix, leave "
            "--dataset out."
        )
    return bound


def bind(url: str | None, loss: Loss, *, dataset: str | None) -> str | None:
    """Note in a ledger that cells are counted from a data set; its name, for their file."""
    if url is None or not dataset:
        refuse_half(url, dataset)
        return None
    with ledger_at(url) as ledger, ledger.writing() as book:
        book.tabulated(uuid4().hex, loss, dataset)
    return dataset


def charged(url: str | None, dataset: str | None, paid: Payment) -> Charge | None:
    """What was charged and what is left; nothing without a ledger."""
    if url is None or not dataset:
        return None
    with ledger_at(url) as ledger, ledger.reading() as book:
        balance = book.balance("dataset", dataset)
    return Charge(dataset=dataset, words=paid.words, balance=balance.in_words())


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
