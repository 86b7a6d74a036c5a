"""What is charged to a ledger: before a row is read, and the same whatever the rows."""

import hashlib
from pathlib import Path
from uuid import uuid4

from countwise.errors import PlanError
from countwise.front_door.ledger_functions import ledger_at
from countwise.ledger.prices import Charge, Loss
from countwise.release.payment import FREE, Payment
from countwise.tables.tabulate import counted_for


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


def dataset_of(table: Path | None, url: str | None, dataset: str | None) -> str | None:
    """The data set that a release charges: the one its cells were counted for, if they say so."""
    bound = None if table is None else counted_for(table)
    if bound is None:
        return dataset
    if url is None:
        raise PlanError(
            f"{table} was counted for data set {bound!r} of a ledger, which its release must "
            "charge. To fix, add --ledger URL."
        )
    if dataset not in (None, bound):
        raise PlanError(
            f"{table} was counted for data set {bound!r}, not {dataset!r}. To fix, leave --dataset "
            "out."
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
