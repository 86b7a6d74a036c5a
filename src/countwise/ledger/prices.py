"""What a release or a verification costs in the relation that a ledger counts in.

A ledger can only add losses between the same pairs of neighbours. It fixes one relation for each
data set, and everything made from the data set is charged at the loss it has in that relation, or
refused where it has none. The derivation of every price is in docs/explain/one-account.md.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from countwise.choices import one_of
from countwise.errors import BudgetError, InputError
from countwise.noise.numbers import exact, written
from countwise.noise.zcdp import DELTA, epsilon_at

Relation = Literal["add-remove", "replace-one", "any-change"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
Unit = Literal["epsilon", "rho", "both"]
UNITS: tuple[Unit, ...] = get_args(Unit)
ANY: Relation = "any-change"
TOTAL = "total"
MICRO, PICO = 10**6, 10**12
FACTORS: dict[tuple[Relation, Relation], int] = {
    ("add-remove", "add-remove"): 1,
    ("add-remove", "replace-one"): 2,
    ("add-remove", "any-change"): 2,
    ("replace-one", "replace-one"): 1,
    ("any-change", "add-remove"): 1,
    ("any-change", "replace-one"): 1,
    ("any-change", "any-change"): 1,
}
"""By how much a loss grows from the relation it was made for to the one it is counted in."""


@dataclass(frozen=True, kw_only=True)
class Amount:
    """What is added up: whole millionths of ε, and whole millionths of millionths of ρ."""

    epsilon: int = 0
    rho: int = 0

    def in_words(self) -> str:
        """Such as ε = 0.5, ρ = 0.1, or both."""
        parts = []
        if self.epsilon or not self.rho:
            parts.append(f"ε = {in_epsilon(self.epsilon)}")
        if self.rho:
            parts.append(f"ρ = {in_rho(self.rho)}")
        return " and ".join(parts)


def micro(epsilon: Any) -> int:
    """ε in whole millionths, rounded up: never less is charged than is lost."""
    return -(-exact(epsilon) * MICRO // 1)


def pico(rho: Any) -> int:
    """ρ in whole millionths of millionths, rounded up."""
    return -(-exact(rho, what="rho") * PICO // 1)


def in_epsilon(amount: int) -> str:
    """Millionths of ε as people write ε."""
    return "0" if amount == 0 else written(Fraction(amount, MICRO))


def in_rho(amount: int) -> str:
    """Millionths of millionths of ρ as people write ρ."""
    return "0" if amount == 0 else written(Fraction(amount, PICO))


@dataclass(frozen=True, kw_only=True)
class Loss:
    """What a computation says of itself: its loss, and between which neighbours.

    `rows` is the most rows a person has that it is made for, None where any number is, and
    `bounded` says that it saw to that itself. `exact` are the counts it shows without noise; `plan`
    is the hash of all that was decided about it.
    """

    what: str
    epsilon: Fraction | None = None
    rho: Fraction | None = None
    neighbours: Relation
    rows: int | None = None
    bounded: bool = True
    exact: tuple[str, ...] = ()
    plan: str = ""

    def in_words(self) -> str:
        """Such as: release at ε = 0.5 (add-remove)."""
        if self.epsilon is not None:
            return f"{self.what} at ε = {written(self.epsilon)} ({self.neighbours})"
        assert self.rho is not None
        return f"{self.what} at ρ = {written(self.rho)} ({self.neighbours})"

    def to_text(self) -> str:
        """What an entry of the ledger keeps of it."""
        plain = asdict(self) | {
            name: None if number is None else str(number)
            for name, number in (("epsilon", self.epsilon), ("rho", self.rho))
        }
        return _as_text(plain)


@dataclass(frozen=True, kw_only=True)
class Terms:
    """How a data set is counted: its neighbours, the rows of a person, the unit, and δ.

    A data set counts pure ε, ρ (zCDP), or both with a cap for each; with ρ, δ is where the whole is
    told in ε as well. `most` is an ε at δ that the caps together may not go over.
    """

    neighbours: Relation = "add-remove"
    rows: int = 1
    unit: Unit = "epsilon"
    delta: Fraction = DELTA
    most: Fraction | None = None

    def __post_init__(self) -> None:
        one_of(self.neighbours, RELATIONS, what="neighbours")
        one_of(self.unit, UNITS, what="unit")
        if isinstance(self.rows, bool) or not isinstance(self.rows, int) or self.rows < 1:
            raise InputError(f"rows a person must be a whole number of 1 or more, got {self.rows}.")
        if not 0 < self.delta < 1:
            raise InputError(f"delta must be between 0 and 1, got {written(self.delta)}.")
        if self.most is not None and self.most <= 0:
            raise InputError(f"most must be positive, got {written(self.most)}.")

    def refuse_beyond(self, caps: "Amount", dataset: str) -> None:
        """Refuse caps that together come to more than the most at δ."""
        whole = at_delta(caps, self)
        if self.most is not None and whole > self.most:
            raise InputError(
                f"these caps would let data set {dataset!r} lose ε = {whole:.4g} at δ = "
                f"{float(self.delta):g}, and it may lose {written(self.most)} at most. To fix, "
                "grant less."
            )

    def in_words(self) -> str:
        """Between whom the loss is counted."""
        rows = "one row" if self.rows == 1 else f"up to {self.rows} rows"
        whom = {
            "add-remove": f"one person with {rows} comes or goes",
            "replace-one": f"one person's rows ({rows}) become any other's",
            "any-change": f"one person with {rows} comes, goes, or has any of them changed",
        }
        return f"{whom[self.neighbours]} ({self.neighbours})"

    def to_text(self) -> str:
        """What an entry of the ledger keeps of it."""
        fields = asdict(self) | {"delta": str(self.delta), "most": str(self.most)}
        if self.most is None:
            del fields["most"]  # as entries were before there was one
        return _as_text(fields)


def read_terms(text: str) -> Terms:
    """The terms that a cap's entry keeps."""
    fields = json.loads(text)
    numbers = {name: Fraction(fields[name]) for name in ("delta", "most") if name in fields}
    return Terms(**fields | numbers)


def read_loss(text: str) -> Loss:
    """The loss that a charge's entry keeps."""
    fields: Mapping[str, Any] = json.loads(text)
    numbers = {
        name: None if fields[name] is None else Fraction(fields[name])
        for name in ("epsilon", "rho")
    }
    return Loss(**{**fields, **numbers, "exact": tuple(fields["exact"])})


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a loss costs under some terms, and the counts that must be taken as known for that."""

    amount: Amount
    factor: int = 1
    given: tuple[str, ...] = ()


def price(loss: Loss, terms: Terms | None, *, dataset: str) -> Price:
    """What a loss costs where a data set is counted by these terms; refused if it has no price.

    Without terms only what costs the same in every relation has one: verification, in ε.
    """
    if terms is None:
        if loss.neighbours != ANY:
            raise BudgetError(
                f"the ledger does not say yet whose change it counts for data set {dataset!r}. To "
                f"fix: countwise ledger grant … --dataset {dataset} --neighbours add-remove (or "
                "replace-one, any-change; once, before the first release)."
            )
        terms = Terms(neighbours=ANY, rows=loss.rows or 1)
    factor = _factor(loss, terms, dataset)
    return Price(
        amount=_amount(loss, terms, factor, dataset),
        factor=factor,
        given=() if _only_the_total(loss, terms) else loss.exact,
    )


def _factor(loss: Loss, terms: Terms, dataset: str) -> int:
    counted = f"data set {dataset!r} is counted between tables where {terms.in_words()}"
    if loss.rows is not None and not loss.bounded and loss.rows < terms.rows:
        raise BudgetError(
            f"{counted}, and this {loss.what} takes on trust that nobody has more than "
            f"{_rows(loss.rows)}; it has no price there. To fix, plan for --rows {terms.rows}, or "
            "have the rows bounded by naming the column of persons."
        )
    factor = FACTORS.get((loss.neighbours, terms.neighbours))
    if factor is None:
        raise BudgetError(
            f"{counted}, and a {loss.neighbours} {loss.what} does not hide how many people there "
            "are (with one row each the total is exact); it has no price there. To fix, plan with "
            "--neighbours add-remove."
        )
    if loss.exact and terms.neighbours != "replace-one":
        raise BudgetError(
            f"{counted}, and exact counts show who comes or goes: this {loss.what} has no price "
            "there. To fix, leave --exact out; only a data set counted by --neighbours replace-one "
            "takes exact counts."
        )
    return factor


def _amount(loss: Loss, terms: Terms, factor: int, dataset: str) -> Amount:
    if loss.rho is not None:
        if terms.unit == "epsilon":
            raise BudgetError(
                f"data set {dataset!r} is counted in ε alone, and Gaussian noise (ρ) has no finite "
                "ε. To fix, plan with --epsilon and another mechanism, or charge a data set that "
                "was granted --rho."
            )
        return Amount(rho=pico(factor * loss.rho))
    assert loss.epsilon is not None
    epsilon = factor * loss.epsilon
    if terms.unit == "rho":
        return Amount(rho=pico(epsilon**2 / 2))
    return Amount(epsilon=micro(epsilon))


def _only_the_total(loss: Loss, terms: Terms) -> bool:
    """Whether all that is exact stays the same anyway: the number of people, of a row each."""
    reach = terms.rows
    if loss.bounded and loss.rows is not None:
        reach = min(reach, loss.rows)
    return reach == 1 and set(loss.exact) <= {TOTAL}


def at_delta(amount: Amount, terms: Terms) -> float:
    """The ε at the terms' δ that sums of ε and of ρ are together."""
    return amount.epsilon / MICRO + epsilon_at(Fraction(amount.rho, PICO), delta=terms.delta)


def _rows(rows: int) -> str:
    return "one row" if rows == 1 else f"{rows} rows"


def _as_text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What was charged to whom, in words, and what its data set has left."""

    dataset: str
    words: str
    balance: str

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return {"dataset": self.dataset, "charge": self.words, "balance": self.balance}
