"""A release charged to a ledger: before the table is read, and standing once noise is drawn."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from typing import Literal
from uuid import uuid4

from countwise.cli.ledger import open_ledger
from countwise.errors import InputError, PlanError
from countwise.release.plan import Plan

Drawing = Callable[[], None]


@contextmanager
def charged(url: str | None, plan: Plan, *, dataset: str | None) -> Iterator[Drawing]:
    """Reserve a plan's loss, run what is inside, and note that it was released.

    What is given must be called before noise is drawn. A table or plan refused before that was
    seen by whoever gave it and by nobody else: its charge is returned. Any other failure burns it.
    """
    with paying(url, plan, dataset=dataset, failed="burnt")(uuid4().hex) as drawing:
        yield drawing


def paying(
    url: str | None,
    plan: Plan,
    *,
    dataset: str | None,
    failed: Literal["burnt", "reserved"] = "reserved",
) -> Callable[[str], AbstractContextManager[Drawing]]:
    """The same for a charge with a name, which a run that was stopped goes on with.

    Until then it stays reserved: it stands, and the noise it paid for is not drawn again.
    """

    @contextmanager
    def pay(charge: str) -> Iterator[Drawing]:
        if url is None:
            yield lambda: None
            return
        if not dataset:
            raise PlanError(
                "a ledger needs to know whose budget it is. To fix, add --dataset NAME."
            )
        loss = _loss(plan)
        ledger = open_ledger(url)
        from countwise.privacy.ledger import Kind, micro

        drawn = False

        def drawing() -> None:
            nonlocal drawn
            drawn = True

        def note(kind: Kind, why: str = "") -> None:
            with ledger.writing() as book:
                book.advance(charge, kind, note=why)

        try:
            with ledger.writing() as book:
                if book.state(charge) != "reserved":
                    book.reserve(
                        charge, micro(loss), {"dataset": dataset}, note="countwise release"
                    )
            try:
                yield drawing
            except BaseException as problem:
                if isinstance(problem, InputError) and not drawn:
                    note("returned", "refused before noise was drawn")
                elif failed == "burnt":
                    note("burnt", "the release failed")
                raise
            note("computed")
            note("released")
        finally:
            ledger.engine.dispose()

    return pay


def _loss(plan: Plan) -> Fraction:
    """The whole loss of a plan, known before the table is."""
    if plan.epsilon is None:
        raise PlanError(
            "the ledger counts in ε, and this plan is in ρ. To fix, plan with --epsilon."
        )
    if isinstance(plan.epsilon, Mapping):
        return sum((Fraction(each) for each in plan.epsilon.values()), Fraction(0))
    return Fraction(plan.epsilon)
