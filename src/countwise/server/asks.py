"""What is asked of a data set: sent, stored, and checked against the public schema."""

import json
from dataclasses import dataclass

from countwise.server.config import Dataset
from countwise.verification.request import Request, make_request


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A claim about a model of a data set, and what it may cost."""

    dataset: str
    model: str
    claim: str
    epsilon: str
    partitions: int = 50
    family: str = "ols"
    mechanism: str = "lattice"
    alpha: tuple[float, ...] = (1.0,)
    project: str = ""


def read_ask(ask: Ask, known: Dataset) -> Request:
    """The checked request of what is asked; a refusal depends on it and the schema alone."""
    return make_request(
        known.schema,
        model=ask.model,
        claim=ask.claim,
        epsilon=ask.epsilon,
        partitions=ask.partitions,
        family=ask.family,
        mechanism=ask.mechanism,
        alpha=ask.alpha,
    )


def stored_ask(text: str) -> Ask:
    """What was asked, as it was stored."""
    fields = json.loads(text)
    return Ask(**fields | {"alpha": tuple(fields["alpha"])})
