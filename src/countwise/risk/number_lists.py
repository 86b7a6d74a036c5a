"""Lists of numbers as a person writes them: 0,16 or 0:100 or 0.1:3.0:0.1, ends included."""

from fractions import Fraction

from countwise.errors import InputError

LONGEST = 100_000  # numbers of a range: more is a slip of the pen
LARGEST = 10**15  # the largest count of a table
EPSILONS = (Fraction(1, 10**6), Fraction(500))  # what noise can be computed for


def number(text: str, *, what: str) -> Fraction:
    """One decimal or fraction."""
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f"{what}: {text.strip()!r} is not a number. To fix, write decimals or fractions such "
            "as 0.5 or 1/3."
        ) from None


def numbers(text: str, *, what: str, step: Fraction) -> list[Fraction]:
    """All numbers of a comma-separated list of numbers and ranges start:stop or start:stop:step."""
    values: list[Fraction] = []
    for part in text.split(","):
        if part.strip():
            values += _range(part, what=what, step=step)
    if not values:
        raise InputError(f"{what}: no number given. To fix, write 1,2,3 or 0:100 or 0.1:3.0:0.1.")
    return values


def _range(part: str, *, what: str, step: Fraction) -> list[Fraction]:
    ends = [number(each, what=what) for each in part.split(":")]
    if len(ends) == 1:
        return ends
    if len(ends) > 3:
        raise InputError(f"{what}: {part!r} must read start:stop or start:stop:step.")
    width = ends[2] if len(ends) == 3 else step
    if width <= 0 or ends[1] < ends[0]:
        raise InputError(f"{what}: {part!r} must go upwards in positive steps.")
    size = (ends[1] - ends[0]) // width + 1
    if size > LONGEST:
        raise InputError(f"{what}: {part!r} has {size:,} numbers; at most {LONGEST:,} are allowed.")
    return [ends[0] + i * width for i in range(size)]


def histogram(text: str) -> list[Fraction]:
    """The counts of a histogram, none negative."""
    if not text.strip():
        raise InputError("a histogram needs at least one bin, as in --histogram 0,16.")
    counts = [number(part, what="histogram") for part in text.split(",")]
    if any(count < 0 for count in counts):
        raise InputError("the counts of a histogram are 0 or more, as in --histogram 0,16.")
    if max(counts) > LARGEST:
        raise InputError("the counts of a histogram are at most 10^15.")
    return counts


def counts(text: str) -> list[int]:
    """Whole counts, none negative.

    >>> counts("0:4,9")
    [0, 1, 2, 3, 4, 9]
    """
    values = numbers(text, what="counts", step=Fraction(1))
    if any(value.denominator != 1 or not 0 <= value <= LARGEST for value in values):
        raise InputError("counts must be whole numbers from 0 to 10^15, as in --counts 0:100.")
    return [int(value) for value in values]


def epsilon(value: Fraction) -> Fraction:
    """A privacy loss that noise can be computed for."""
    least, most = EPSILONS
    if value <= 0:
        raise InputError("epsilon must be positive, as in 0.1:3.0:0.1 or 1.")
    if not least <= value <= most:
        raise InputError(f"epsilon must be from {float(least):g} to {most}, got {float(value):g}.")
    return value


def epsilons(text: str) -> list[Fraction]:
    """Privacy losses, all positive."""
    return [epsilon(each) for each in numbers(text, what="epsilons", step=Fraction(1, 10))]
