"""What a request costs, as a ledger is told it."""

from countwise.ledger.prices import ANY, Loss
from countwise.verification.canonical import query_hash
from countwise.verification.request import Request


def loss_of(request: Request, *, dataset: str, version: str) -> Loss:
    """The loss of a request, known before a row is read.

    One person is in one partition, so any change of any number of their rows is covered: unless
    every row is taken for another person.
    """
    named = request.schema.person_id is not None
    return Loss(
        what="verification",
        epsilon=request.epsilon,
        neighbours=ANY,
        rows=None if named else 1,
        bounded=named,
        plan=query_hash(request, dataset=dataset, version=version),
    )
