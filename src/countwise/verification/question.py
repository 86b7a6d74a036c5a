"""A question to confidential data, before anything is known of the data.

The command, the pages, the API, the client, the queue and the process that reads rows all hold it
as this one class. What a page or the API received becomes one; `to_dict` is its JSON everywhere.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from countwise.noise.numbers import Number, exact, written


@dataclass(frozen=True, kw_only=True)
class Question:
    """A claim about a model, how it is to be answered, and the privacy it may cost.

    `dataset` names the data set of a server, and `project` who else pays there; both are empty
    where the rows are at hand.

    >>> Question(model="hours ~ age", claim="age > 0", epsilon=0.5).to_dict()["epsilon"]
    '0.5'
    """

    model: str
    claim: str
    epsilon: Number
    partitions: int = 50
    family: str = "ols"
    mechanism: str = "lattice"
    alpha: tuple[float, ...] = (1.0,)
    dataset: str = ""
    project: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, with ε as exact text; `read_question` reads it."""
        return vars(self) | {"epsilon": written(exact(self.epsilon)), "alpha": list(self.alpha)}

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the question as plain data: the same if the same is asked."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()


def read_question(data: Mapping[str, Any]) -> Question:
    """A question that `to_dict` wrote."""
    return Question(**{**data, "alpha": tuple(data["alpha"])})
