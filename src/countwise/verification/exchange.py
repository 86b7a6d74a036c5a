"""What a server and those who ask it tell each other, as typed data: the JSON is these fields."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class BudgetState:
    """Budget of a user, data set or project: in all, spent and left, as exact decimals.

    `unit` is the letter of what they count, and `words` say between whom.
    """

    scope: str
    name: str
    cap: str
    spent: str
    left: str
    unit: str = "ε"
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column's public facts."""

    name: str
    type: str
    low: float | None = None
    high: float | None = None
    levels: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set as the public knows it, with its budget."""

    name: str
    version: str
    title: str
    persons: int | None
    columns: tuple[Column, ...]
    budget: BudgetState


@dataclass(frozen=True, kw_only=True)
class Power:
    """Chances of the verdicts if the estimate is so many standard errors beyond the threshold."""

    distance: float
    supported: float
    contradicted: float
    undecided: float


@dataclass(frozen=True, kw_only=True)
class QuestionPlan:
    """What asking would cost, whether the budgets allow it, and what it could tell.

    `stored` if the answer was paid for before; `power` is empty for a claim with cuts. `border` is
    what verdicts on the whole data rely on; without one there are none, and `power` is that of
    symmetric estimates. `note` says why there are none where they could not be computed.
    """

    cost: str
    stored: bool
    allowed: bool
    budgets: tuple[BudgetState, ...]
    outcomes: tuple[str, ...]
    power: tuple[Power, ...]
    border: float | None = None
    note: str = ""
