"""Epsilon as the exact number the user wrote."""

import re
from decimal import Decimal
from fractions import Fraction

from countwise.errors import PlanError

SMALLEST, LARGEST = Fraction(1, 10**12), Fraction(10**6)
"""Beyond them a loss is no promise, or no noise can be drawn."""

LONGEST = 100
"""Characters of a number; the longest that a plan writes itself has far fewer."""
NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?)", re.ASCII | re.IGNORECASE)
"""A fraction, or a decimal whose exponent has three digits at most."""

Number = str | int | float | Decimal | Fraction


def exact(value: Number, *, what: str = "epsilon") -> Fraction:
    """A positive rational from a decimal or a fraction; 0.1 means one tenth.

    Numbers of NumPy mean what they print as. What is no such number, or too long to be read, is
    refused before anything is computed from it.
    """
    text = _text(value)
    try:
        number = Fraction(text if len(text) <= LONGEST and NUMBER.fullmatch(text) else "")
    except (ValueError, ZeroDivisionError):
        raise PlanError(
            f"{what} must be a positive decimal or fraction such as 0.5 or 1/3, of at most "
            f"{LONGEST} characters; got {_shown(text)}."
        ) from None
    if number <= 0:
        raise PlanError(f"{what} must be positive, got {text}.")
    if not SMALLEST <= number <= LARGEST:
        way = "larger" if number < SMALLEST else "smaller"
        raise PlanError(
            f"{what} must be between 1e-12 and 1e6, got {text}. To fix, choose a {way} {what}."
        )
    return number


def _text(value: Number) -> str:
    try:
        return str(value).strip()
    except ValueError:  # Python writes no whole number of more than some thousand digits
        return "a number of too many digits"


def _shown(text: str) -> str:
    return repr(text) if len(text) <= LONGEST else f"{text[:20]!r}… ({len(text):,} characters)"


def written(number: Fraction) -> str:
    """The shortest exact way to write a rational: a decimal if it ends, else a fraction.

    >>> written(Fraction(1, 8)), written(Fraction(1, 3))
    ('0.125', '1/3')
    """
    rest = number.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest != 1:
        return f"{number.numerator}/{number.denominator}"
    places = 0
    while (number * 10**places).denominator != 1:
        places += 1
    return f"{Decimal(int(number * 10**places)).scaleb(-places):f}"
