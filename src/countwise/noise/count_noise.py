"""The noise there is for counts: what a plan calls it, its law, and what its loss is counted in.

A new law is a class in `laws` and an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sinh
from typing import Literal

from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, IntegerLaw, RoundedLaplace

Unit = Literal["epsilon", "rho"]
FAR = 300.0  # beyond, sinh has no number, and the noise is zero


def geometric_variance(scale: float) -> float:
    """2α/(1-α)² with α = exp(-1/scale)."""
    return 0.5 / sinh(min(0.5 / scale, FAR)) ** 2


@dataclass(frozen=True, kw_only=True)
class Mechanism:
    """Noise of one law, whose scale follows from the loss and from how far a person moves counts.

    In ε the scale is the L1 distance over the loss; in ρ the square of it is the squared L2
    distance over twice the loss.
    """

    law: type[IntegerLaw]
    variance: Callable[[float], float]
    """Of a scale that need not be rational, nor the variance exact: loss is divided by it."""
    unit: Unit = "epsilon"
    words: str = "random whole numbers"
    """For people who do not know the law."""
    joint: bool = False
    """Drawn for the whole tree at once, so that it adds up."""

    def scale(self, reach: float, loss: float) -> float:
        """What a loss buys, where a person moves counts this far in the measure of the scale."""
        return (reach / (2 * loss)) ** 0.5 if self.unit == "rho" else reach / loss


MECHANISMS: dict[str, Mechanism] = {
    "geometric": Mechanism(
        law=Geometric,
        variance=geometric_variance,
        words="random whole numbers, two-sided geometric",
    ),
    "laplace": Mechanism(
        law=RoundedLaplace,
        variance=lambda scale: 2 * scale**2 + 1 / 12,
        words="random numbers of Laplace's law, rounded",
    ),
    "joint": Mechanism(
        law=Geometric,
        variance=geometric_variance,
        words="random whole numbers that add up themselves",
        joint=True,
    ),
    "gaussian": Mechanism(
        law=DiscreteGaussian,
        variance=lambda scale: scale**2,
        words="random whole numbers, discrete Gaussian",
        unit="rho",
    ),
}


def law_named(name: str) -> type[IntegerLaw]:
    """The law of a name, as a release has it; that of a count without noise is `exact`."""
    laws: list[type[IntegerLaw]] = [Exact, *(each.law for each in MECHANISMS.values())]
    return next(law for law in laws if law.name == name)


def plainest(unit: Unit) -> str:
    """The mechanism for losses in a unit that anybody would take first."""
    return next(name for name, each in MECHANISMS.items() if each.unit == unit)
