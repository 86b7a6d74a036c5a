"""Formulas in two variables made of terms c · aⁱ · e^{-ka} · bʲ · e^{-lb}, with exact bounds.

Every plain risk of two bins under Laplace noise is such a formula with rational coefficients.
A formula whose coefficients are all negative is negative on the whole quarter-plane, which is a
proof without any arithmetic that rounds. Otherwise a factor aⁱ·e^{-ka} has one hump, at i/k, so
its range on an interval, an unbounded one too, is known from the ends and the hump.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from flint import arb, fmpq

Exponents = tuple[int, int, int, int]  # i, k, j, l
ONE: Exponents = (0, 0, 0, 0)  # the powers of a constant
Interval = tuple[float, float]


@dataclass(frozen=True)
class TermSum:
    """A sum of terms, by their exponents; a number is the term without variables."""

    coefficients: dict[Exponents, Fraction]

    def __add__(self, other: "TermSum | float") -> "TermSum":
        total = dict(self.coefficients)
        for key, value in formula(other).coefficients.items():
            total[key] = total.get(key, Fraction(0)) + value
        return TermSum({key: value for key, value in total.items() if value})

    def __mul__(self, other: "TermSum | float") -> "TermSum":
        total: dict[Exponents, Fraction] = {}
        for mine, left in self.coefficients.items():
            for theirs, right in formula(other).coefficients.items():
                key = (
                    mine[0] + theirs[0],
                    mine[1] + theirs[1],
                    mine[2] + theirs[2],
                    mine[3] + theirs[3],
                )
                total[key] = total.get(key, Fraction(0)) + left * right
        return TermSum({key: value for key, value in total.items() if value})

    def __neg__(self) -> "TermSum":
        return self * -1

    def __sub__(self, other: "TermSum | float") -> "TermSum":
        return self + formula(other) * -1

    def __rsub__(self, other: float) -> "TermSum":
        return formula(other) - self

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def never_positive(self) -> bool:
        """True if no coefficient is positive: then the formula is ≤ 0 for all a, b ≥ 0."""
        return all(value <= 0 for value in self.coefficients.values())

    def slope(self, variable: int) -> "TermSum":
        """The derivative by a (0) or b (1)."""
        total = TermSum({})
        for key, value in self.coefficients.items():
            power, rate = key[2 * variable], key[2 * variable + 1]
            if power:
                lower = list(key)
                lower[2 * variable] -= 1
                total += TermSum({(lower[0], lower[1], lower[2], lower[3]): value * power})
            total += TermSum({key: -rate * value} if rate else {})
        return total

    def range(self, a: Interval, b: Interval) -> arb:
        """A ball that contains every value on a × b; either interval may be unbounded."""
        total = arb(0)
        for (i, k, j, m), value in self.coefficients.items():
            total += arb(fmpq(value.numerator, value.denominator)) * hump(i, k, a) * hump(j, m, b)
        return total

    def __str__(self) -> str:
        return " ".join(_written(key, value) for key, value in sorted(self.coefficients.items()))


A = TermSum({(1, 0, 0, 0): Fraction(1)})
B = TermSum({(0, 0, 1, 0): Fraction(1)})
D = B  # the second variable where it stands for b - a


def formula(value: "TermSum | float | Fraction") -> TermSum:
    """A number as a formula."""
    if isinstance(value, TermSum):
        return value
    return TermSum({ONE: Fraction(value)} if value else {})


def exponential(of: TermSum) -> TermSum:
    """e to a linear form -ka-lb with whole k, l."""
    rates = {(1, 0, 0, 0): 0, (0, 0, 1, 0): 0}
    for key, value in of.coefficients.items():
        rates[key] = int(-value)
    return TermSum({(0, rates[1, 0, 0, 0], 0, rates[0, 0, 1, 0]): Fraction(1)})


def hump(power: int, rate: int, over: Interval) -> arb:
    """The range of xᵖ·e^{-rx} on an interval of the half-line; r > 0 if it is unbounded."""

    def value(x: arb) -> arb:
        return x**power * (-rate * x).exp()

    low, high = over
    if power == 0 and rate == 0:
        return arb(1)
    ends = value(arb(low)).union(arb(0) if high == inf else value(arb(high)))
    # A hump left out would need its top strictly inside; a top at an end is an end.
    if rate > 0 and rate * low < power and (high == inf or rate * high > power):
        ends = ends.union(value(arb(fmpq(power, rate))))
    return ends


def _written(key: Exponents, value: Fraction) -> str:
    i, k, j, m = key
    size = abs(value)
    words = [
        "" if size == 1 and key != ONE else str(size),
        _power("a", i),
        _power("b", j),
        f"e^(-{_linear(k, m)})" if k or m else "",
    ]
    return ("- " if value < 0 else "+ ") + "·".join(word for word in words if word)


def _power(name: str, exponent: int) -> str:
    return "" if exponent == 0 else name if exponent == 1 else f"{name}^{exponent}"


def _linear(k: int, m: int) -> str:
    parts = [("" if n == 1 else str(n)) + name for n, name in ((k, "a"), (m, "b")) if n]
    return parts[0] if len(parts) == 1 else f"({'+'.join(parts)})"
