"""Several equal releases of the same people: what they cost in all, and how many a budget bears."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from countwise.errors import BudgetError, InputError
from countwise.ledger.prices import MICRO, PICO, Amount, Loss, Price, at_delta
from countwise.noise.numbers import written
from countwise.noise.zcdp import DELTA, epsilon_at

if TYPE_CHECKING:
    from countwise.ledger.ledger import Balance, Book

MOST_RELEASES = 10_000  # one a day for 27 years
DIGITS = 4  # of a loss that is found: more would promise what no reader can tell apart


@dataclass(frozen=True, kw_only=True)
class Series:
    """So many releases at the same loss, and, where a ledger was named, what they cost there."""

    loss: Loss
    releases: int
    dataset: str = ""
    price: Price | None = None
    balance: "Balance | None" = None

    @property
    def cost(self) -> Amount:
        """What all of them cost the data set."""
        one = Amount() if self.price is None else self.price.amount
        return Amount(epsilon=self.releases * one.epsilon, rho=self.releases * one.rho)

    @property
    def affordable(self) -> int:
        """How many of them what is left pays for."""
        if self.price is None or self.balance is None:
            return self.releases
        one, left = self.price.amount, self.balance
        pairs = ((left.left, one.epsilon), (left.rho_left, one.rho))
        return min(rest // each for rest, each in pairs if each)

    @property
    def enough(self) -> bool:
        """Whether the budget bears all of them."""
        return self.affordable >= self.releases

    def sentences(self) -> list[str]:
        """What they cost together, and what that leaves."""
        found = []
        if self.releases > 1:
            found.append(f"{self.releases:,} such releases of the same people: {self._together()}.")
        if self.price is None or self.balance is None:
            return found
        times = f", times {self.price.factor}" if self.price.factor > 1 else ""
        found.append(
            f"Data set {self.dataset} would be charged {self.cost.in_words()} for "
            f"{_releases(self.releases)}{times}. Now: {self.balance.in_words()}"
        )
        if not self.enough:
            enough = f"only for {_releases(self.affordable)}" if self.affordable else "for none"
            found.append(f"What is left is enough {enough}.")
        return found

    def _together(self) -> str:
        """Their losses added up: of ρ, with the ε that it is at δ."""
        if self.loss.rho is None:
            assert self.loss.epsilon is not None
            return f"ε = {written(self.releases * self.loss.epsilon)}"
        rho = self.releases * self.loss.rho
        return f"ρ = {written(rho)}, which is ε = {epsilon_at(rho):.4g} at δ = {float(DELTA):g}"

    def to_dict(self) -> dict[str, Any]:
        """As data."""
        data: dict[str, Any] = {"releases": self.releases, "words": self.sentences()}
        if self.balance is None:
            return data
        left = Amount(epsilon=self.balance.left, rho=self.balance.rho_left)
        terms = self.balance.terms
        return data | {
            "dataset": self.dataset,
            "cost": self.cost.in_words(),
            "left": left.in_words(),
            "affordable": self.affordable,
            **({} if terms is None else {"cost_at_delta": at_delta(self.cost, terms)}),
        }


def series(
    loss: Loss, releases: int = 1, *, book: "Book | None" = None, dataset: str = ""
) -> Series:
    """So many releases at a loss; refused if that has no price in the ledger."""
    _check(releases)
    if book is None:
        return Series(loss=loss, releases=releases)
    return Series(
        loss=loss,
        releases=releases,
        dataset=dataset,
        price=book.price(dataset, loss),
        balance=book.balance("dataset", dataset),
    )


def unit_left(book: "Book", dataset: str) -> Literal["epsilon", "rho"]:
    """The unit in which a data set has something left; Gaussian noise where it has both."""
    balance = book.balance("dataset", dataset)
    return "rho" if balance.rho_left else "epsilon"


def loss_left(book: "Book", dataset: str, loss: Loss, releases: int = 1) -> Fraction:
    """The largest loss at which the budget of a data set bears so many releases like this one.

    In the unit of `loss`, of which only the neighbours, rows and exact counts are looked at.
    """
    _check(releases)
    factor, balance = book.price(dataset, loss).factor, book.balance("dataset", dataset)
    left = (balance.left, MICRO) if loss.rho is None else (balance.rho_left, PICO)
    whole = _down(left[0] // (releases * factor))
    if whole == 0:
        raise BudgetError(
            f"nothing is left of the budget of data set {dataset!r} for {_releases(releases)} of "
            f"this kind: {balance.in_words()}"
        )
    return Fraction(whole, left[1])


def _down(whole: int) -> int:
    """A whole number to four digits, never more."""
    grain: int = 10 ** max(len(str(whole)) - DIGITS, 0)
    return whole // grain * grain


def _check(releases: int) -> None:
    if isinstance(releases, bool) or not isinstance(releases, int) or releases < 1:
        raise InputError(f"releases must be a whole number of 1 or more, got {releases!r}.")
    if releases > MOST_RELEASES:
        raise InputError(f"releases may be at most {MOST_RELEASES:,}, got {releases:,}.")


def _releases(count: int) -> str:
    return "one release" if count == 1 else f"{count:,} releases"
