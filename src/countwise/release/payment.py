"""What a run pays before it reads a row, and that it pays once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from countwise.errors import BudgetError, InputError
from countwise.release.checkpoints import Staging
from countwise.release.folder import discard
from countwise.release.piece_tasks import TOP


@dataclass(frozen=True, kw_only=True)
class Payment:
    """How a run is paid for.

    `pay` charges under a name, unless that was charged before; `purpose` says for what, so that a
    run finds its own; `words` are what was charged to whom.
    """

    pay: Callable[[str], None]
    purpose: str
    words: str


FREE = Payment(pay=lambda _: None, purpose="", words="")


@contextmanager
def paid(staging: Staging, payment: Payment) -> Iterator[None]:
    """Pay for a run, and do what is inside.

    The entry in the ledger is the same whatever comes of the run. Input that is refused before
    noise was drawn leaves the name of the charge, so that the next run for the same purpose is not
    charged again; refused while noise is drawn, the run leaves nothing.
    """
    try:
        payment.pay(staging.settings()["charge"])
    except BudgetError:
        if not staging.drawn:
            discard(staging.folder)
        raise
    try:
        yield
    except InputError as problem:
        if payment.purpose and not staging.drawn:
            problem.add_note(
                f"{payment.words} stays charged; no noise was drawn. Correct the input and run the "
                "same command again: it is not charged a second time."
            )
        elif not staging.has(TOP):
            discard(staging.folder)
            if payment.purpose:
                problem.add_note(
                    f"{payment.words} is spent: the run had come to where its noise is drawn."
                )
        raise
