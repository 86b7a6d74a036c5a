"""A release charged to a ledger: before the table is read, and standing once noise is drawn."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from uuid import uuid4

from countwise.cli.ledger import open_ledger
from countwise.errors import InputError, PlanError
from countwise.release.plan import Plan


@contextmanager
def charged(url: str | None, plan: Plan, *, dataset: str | None) -> Iterator[Callable[[], None]]:
    """Reserve a plan's loss, run what is inside, and note that it was released.

    What is given must be called before noise is drawn. A table or plan refused before that was
    seen by whoever gave it and by nobody else: its charge is returned. Any other failure burns it.
    """
    if url is None:
        yield lambda: None
        return
    if not dataset:
        raise PlanError("a ledger needs to know whose budget it is. To fix, add --dataset NAME.")
    loss = _loss(plan)
    ledger = open_ledger(url)
    from countwise.privacy.ledger import Kind, micro

    charge, drawn = uuid4().hex, False

    def drawing() -> None:
        nonlocal drawn
        drawn = True

    def note(kind: Kind, why: str = "") -> None:
        with ledger.writing() as book:
            book.advance(charge, kind, note=why)

    try:
        with ledger.writing() as book:
            book.reserve(charge, micro(loss), {"dataset": dataset}, note="countwise release")
        try:
            yield drawing
        except BaseException as problem:
            if isinstance(problem, InputError) and not drawn:
                note("returned", "refused before noise was drawn")
            else:
                note("burnt", "the release failed")
            raise
        note("computed")
        note("released")
    finally:
        ledger.engine.dispose()


def _loss(plan: Plan) -> Fraction:
    """The whole loss of a plan, known before the table is."""
    if plan.epsilon is None:
        raise PlanError(
            "the ledger counts in ε, and this plan is in ρ. To fix, plan with --epsilon."
        )
    if isinstance(plan.epsilon, Mapping):
        return sum((Fraction(each) for each in plan.epsilon.values()), Fraction(0))
    return Fraction(plan.epsilon)
