"""What a release promises to the people behind it: in sentences, in facts, and as data.

Counts published as they are (invariants) make the promise conditional: it then holds between
tables that agree on all of them. Where a person comes or goes, the exact counts they are in would
change, so only someone counted in none of them is hidden at the stated loss. Whoever is counted in
one may be elsewhere within it: as many rows leave some counts as enter others, so every level
moves twice as far, at twice the loss.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Any

from countwise.noise.count_noise import Unit
from countwise.noise.numbers import written
from countwise.noise.zcdp import DELTA, rounded_up
from countwise.release.budget import Budget

WHO = {
    "add-remove": "Whether or not any one person is in the records",
    "replace-one": "If the rows of any one person were those of another who is in the records too",
}
OUTSIDE = "Whether or not someone who is counted in no exact count is in the records"
WITHIN = {
    "add-remove": "had they been counted elsewhere within the same exact counts",
    "replace-one": "If the rows of any one person were those of another who is counted in the same "
    "exact counts",
}
ZEROS = (
    "Cells that can only be zero are published as zeros. A table with someone in one is refused, "
    "and no promise covers that it was."
)
LARGEST_FACTOR = 20  # ε beyond which e^ε is not written out: half a billion times says nothing more


@dataclass(frozen=True, kw_only=True)
class StatedLoss:
    """A privacy loss in its unit; that of Gaussian noise also as ε at DELTA."""

    unit: Unit
    amount: Fraction
    epsilon: float | None = None

    def in_words(self) -> str:
        """Such as ε = 0.5."""
        if self.epsilon is None:
            return f"ε = {written(self.amount)}"
        return f"ρ = {written(self.amount)} (ε = {rounded_up(self.epsilon)} at δ = {_delta()})"

    def bound(self, *, would: bool = False) -> str:
        """What the loss means for the chances of releases."""
        becomes, stay = ("would have become", "would have stayed") if would else ("becomes", "stay")
        if self.epsilon is None:
            power = f"e^{written(self.amount)}"
            if self.amount < LARGEST_FACTOR:
                power += f" ≈ {exp(self.amount):.2f}"
            return f"no possible release {becomes} more than {power} times more or less likely"
        epsilon = rounded_up(self.epsilon)
        return (
            f"the chances of releases {stay} close in the sense of zero-concentrated differential "
            f"privacy, ρ = {written(self.amount)}. In two numbers, ε = {epsilon} at δ = {_delta()}"
            f": any set of releases {becomes} at most e^{epsilon} times likelier, plus {_delta()}"
        )

    def to_dict(self) -> dict[str, Any]:
        """In its unit, and as ε where that is another number."""
        data: dict[str, Any] = {self.unit: written(self.amount)}
        return data if self.epsilon is None else data | {"epsilon_of_noise": self.epsilon}


@dataclass(frozen=True, kw_only=True)
class Promise:
    """Under which relation, at which loss, and around how many exact counts a promise holds."""

    neighbours: str
    stated: StatedLoss
    within: StatedLoss
    """The loss of whoever differs without changing an exact count."""
    exact: int
    """Counts published as they are that people are counted in."""
    zeros: bool
    """Whether there are cells that can only be zero."""
    total: bool
    """Whether everyone is counted in an exact count."""

    @property
    def conditional(self) -> bool:
        """Whether exact counts limit what is promised."""
        return self.exact > 0

    @property
    def outside(self) -> StatedLoss | None:
        """The loss of someone who is counted in no exact count and comes or goes."""
        comes_and_goes = self.neighbours == "add-remove" and not self.total
        return self.stated if comes_and_goes else None

    @property
    def spent_as(self) -> str:
        """What the loss that was spent is called: nobody's privacy loss where counts are exact."""
        return "Spent on noise:" if self.conditional else "Privacy loss"

    def sentences(self) -> str:
        """The promise in words, conditional where it is."""
        return " ".join(self.paragraphs())

    def paragraphs(self) -> list[str]:
        """The same, idea by idea."""
        words = self._conditional() if self.conditional else self._unconditional()
        return [*words, ZEROS] if self.zeros else words

    def _unconditional(self) -> list[str]:
        return [f"{WHO[self.neighbours]}, {self.stated.bound()}."]

    def _conditional(self) -> list[str]:
        if self.exact == 1:
            what, it, them = "1 count is published exactly as it is: it is", "it", "it"
        else:
            what = f"{self.exact:,} counts are published exactly as they are: they are"
            it, them = "one of them", "all of them"
        words = [
            f"{what} not protected, and nothing is promised about what changes {it}. Between "
            f"tables that agree on {them} this is promised."
        ]
        if self.neighbours == "replace-one":
            return [*words, f"{WITHIN['replace-one']}, {self.within.bound()}."]
        hidden = "Everyone is counted in the exact total, so that someone is in the records is "
        if self.outside is not None:
            words.append(f"{OUTSIDE}, {self.outside.bound()}.")
            hidden = "That someone is counted in an exact count is "
        where = f"{hidden}not hidden; hidden is where below the exact counts, at a loss of at most"
        moved = f"{WITHIN['add-remove']}, {self.within.bound(would=True)}."
        return [*words, f"{where} {self.within.in_words()}: {moved}"]

    def facts(self) -> list[tuple[str, str]]:
        """The losses, each with the people it is for."""
        if not self.conditional:
            return [("Privacy loss in all", self.stated.in_words())]
        facts = [("Exact counts, not protected", f"{self.exact:,}")]
        if self.outside is not None:
            facts.append(("Privacy loss of who is in no exact count", self.outside.in_words()))
        return [*facts, ("Privacy loss within the exact counts", self.within.in_words())]

    def to_dict(self) -> dict[str, Any]:
        """Fields of `privacy` in release.json, beside the loss that was spent."""
        data: dict[str, Any] = {"promise": self.sentences()}
        if self.stated.epsilon is not None:
            data["epsilon_of_noise"] = self.stated.epsilon
        if self.conditional:
            outside = None if self.outside is None else self.outside.to_dict()
            data["conditional"] = {
                "exact_counts": self.exact,
                "outside": outside,
                "within": self.within.to_dict(),
            }
        if self.conditional or self.zeros:
            data["given"] = self.sentences()
        return data


def make_promise(neighbours: str, budget: Budget) -> Promise:
    """The promise of releases under a neighbour relation and a budget."""
    known, exact, zeros, total = budget.invariants, 0, False, False
    if known is not None:
        peopled = [e & ~z for e, z in zip(known.exact, known.zeros, strict=True)]
        exact = int(sum(each.sum() for each in peopled))
        total = any(bool(each.all()) for each in known.exact)
        zeros = any(bool(each.any()) for each in known.zeros)
    twice = exact > 0 and neighbours == "add-remove"
    return Promise(
        neighbours=neighbours,
        stated=_loss(budget, twice=False),
        within=_loss(budget, twice=twice),
        exact=exact,
        zeros=zeros,
        total=total,
    )


def _loss(budget: Budget, *, twice: bool) -> StatedLoss:
    gaussian = budget.unit == "rho"
    return StatedLoss(
        unit=budget.unit,
        amount=budget.loss * (2 if twice else 1),
        epsilon=budget.epsilon_of_noise(twice=twice) if gaussian else None,
    )


def _delta() -> str:
    return f"{float(DELTA):g}"
