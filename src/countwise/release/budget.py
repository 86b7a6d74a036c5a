"""What each level may cost, what noise that buys, and how the costs add up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import asinh

from countwise.arrays import BoolArray
from countwise.noise.count_noise import Unit
from countwise.noise.laws import IntegerLaw
from countwise.noise.numbers import written
from countwise.noise.zcdp import DELTA, epsilon_at, epsilon_of_levels, rounded_up
from countwise.tables.invariants import Invariants

MICRO = 1_000_000  # shares are whole millionths: short in a plan file, and exact

SYMBOLS: dict[Unit, str] = {"epsilon": "ε", "rho": "ρ"}


@dataclass(frozen=True, kw_only=True)
class LevelBudget:
    """One level: its nodes, its privacy loss, how far a person can move it, and its noise."""

    level: str
    nodes: int
    moves: tuple[int, ...]
    """How far one person moves its counts at worst, count by count."""
    loss: Fraction
    law: IntegerLaw
    exact: int = 0
    """How many of the nodes are invariant and carry no noise."""

    @property
    def sensitivity(self) -> int:
        """The L1 distance that one person moves it."""
        return sum(self.moves)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The levels of a plan from the root to the cells, with losses in ε or in ρ.

    Under `joint` noise the laws are those of the likelihood; the noise of a count is then no
    wider than its level's law.
    """

    levels: tuple[LevelBudget, ...]
    unit: Unit = "epsilon"
    joint: bool = False
    invariants: Invariants | None = None

    @property
    def laws(self) -> tuple[IntegerLaw, ...]:
        """The noise law of each level."""
        return tuple(level.law for level in self.levels)

    @property
    def exact(self) -> tuple[BoolArray, ...] | None:
        """Which nodes of each level carry no noise, where the plan has invariants."""
        return None if self.invariants is None else self.invariants.exact

    @property
    def loss(self) -> Fraction:
        """The whole privacy loss: levels are measured one after another, so theirs add up."""
        return sum((level.loss for level in self.levels), Fraction(0))

    @property
    def symbol(self) -> str:
        """The letter of the unit."""
        return SYMBOLS[self.unit]

    def epsilon_of_noise(self, *, twice: bool = False) -> float:
        """The ε at DELTA of the Gaussian noise itself; `twice` if rows leave and enter counts."""
        times = 2 if twice else 1
        return epsilon_of_levels(
            [(level.moves * times, level.law.scale) for level in self.levels if level.loss]
        )

    def in_words(self) -> str:
        """The whole loss with its unit; that of ρ with the ε of its noise and the bound for any."""
        if self.unit == "epsilon":
            return f"ε = {written(self.loss)}"
        return (
            f"ρ = {written(self.loss)} (ε = {rounded_up(self.epsilon_of_noise())} at δ = "
            f"{float(DELTA):g}; {rounded_up(epsilon_at(self.loss))} from ρ alone)"
        )

    def warning(self) -> str:
        """Levels where so much is spent that there is hardly any noise; empty if there are none."""
        bare = [level.level for level in self.levels if level.loss and not level.law.margin(0.95)]
        if not bare:
            return ""
        return (
            f"At this {self.symbol} at least 95 of 100 counts of {', '.join(bare)} carry no noise "
            "at all, so next to nothing is hidden there."
        )

    def sum_in_words(self) -> str:
        """How the loss adds up, level by level."""
        terms = [f"{written(level.loss)} ({level.level})" for level in self.levels]
        return " + ".join(terms) + f" = {written(self.loss)}"


def counts_in_words(each: LevelBudget) -> str:
    """The number of counts of a level, and how many of them are exact."""
    return f"{each.nodes:,}" + (f" ({each.exact:,} exact)" if each.exact else "")


def split_evenly(levels: Sequence[str]) -> dict[str, Fraction]:
    """The same share for every level."""
    return {level: Fraction(1, len(levels)) for level in levels}


def split_by_weights(levels: Sequence[str], weights: Mapping[str, Fraction]) -> dict[str, Fraction]:
    """Shares in proportion to given weights."""
    total = sum((weights[level] for level in levels), Fraction(0))
    return {level: weights[level] / total for level in levels}


def split_for_equal_relative_error(
    epsilon: Fraction, nodes: Mapping[str, int], sensitivity: Mapping[str, int]
) -> dict[str, Fraction]:
    """Shares that make the noise as large relative to a typical count at every level.

    A level of n nodes has typical counts of 1/n of the total. Geometric noise at ε/Δ has standard
    deviation 1/(√2·sinh(ε/(2Δ))); so the losses are 2Δ·asinh(n·x) for the x at which they add
    up to ε. They are rounded to millionths of ε; the largest takes the remainder.
    """

    def losses(x: float) -> list[float]:
        return [2 * sensitivity[name] * asinh(n * x) for name, n in nodes.items()]

    low, high = 0.0, 1.0
    while sum(losses(high)) < epsilon:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(losses(middle)) < epsilon else (low, middle)
    shares = {
        name: max(Fraction(round(loss / float(epsilon) * MICRO), MICRO), Fraction(1, MICRO))
        for name, loss in zip(nodes, losses(low), strict=True)
    }
    largest = max(shares, key=lambda name: shares[name])
    shares[largest] += 1 - sum(shares.values(), Fraction(0))
    return shares
