"""One printed number beside ours, and the verdict on it.

A number is *reproduced* when ours lies in the range the printed one allows: its rounding, and
five standard errors where chance is involved. It is *reproduced with a stated reading* when the
paper leaves something open and the reading that was taken is stated. It is *corrected* when ours
lies where the argument given says the right value is, and the printed one does not. Everything
else is *not reproduced*. What compares with no printed number of its own is *listed apart*.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan, nan, sqrt
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Verdict = Literal["reproduced", "reproduced with a stated reading", "corrected", "not reproduced"]
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "reproduced with a stated reading",
    "corrected",
    "not reproduced",
)
APART = "listed apart"
"""Shown with its verdict, and not counted."""
PICTURED = "the paper has a picture here, and no number"
NOWHERE = {"picture": PICTURED, "not printed": "no paper prints it", "–": "no paper prints it"}
"""What stands as printed where nothing is."""
ERRORS = 5.0  # standard errors of chance that a number is allowed


@dataclass(frozen=True, kw_only=True)
class PrintedNumber:
    """A number of a paper: as printed, ours, and the range ours must lie in.

    `value` is what is printed, as a number; it is missing where the paper has words. `elsewhere` is
    the reason, known beforehand, why it may not come out on another machine. `apart` says why it is
    listed and not counted: it stands beside a picture, or beside a number that no paper prints or
    that another row has.
    """

    row: str
    column: str
    printed: str
    ours: float
    low: float
    high: float
    value: float = nan
    reading: str = ""
    correction: str = ""
    elsewhere: str = ""
    apart: str = ""

    @property
    def verdict(self) -> Verdict:
        """What the comparison says."""
        if not self.low <= self.ours <= self.high:
            return "not reproduced"
        if self.correction:
            refuted = isnan(self.value) or not self.low <= self.value <= self.high
            return "corrected" if refuted else "not reproduced"
        return "reproduced with a stated reading" if self.reading else "reproduced"

    @property
    def uncounted(self) -> str:
        """Why it is listed apart; nothing where it is counted."""
        return self.apart or NOWHERE.get(self.printed, "")

    @property
    def note(self) -> str:
        """The reason of a correction or the reading taken, and why it is not counted."""
        missed = self.elsewhere if self.verdict == "not reproduced" else ""
        apart = f"not counted: {self.uncounted}" if self.uncounted else ""
        return "; ".join(filter(None, (self.correction or self.reading or missed, apart)))

    def to_dict(self) -> dict[str, Any]:
        """Everything, for machines."""
        return {
            "row": self.row,
            "column": self.column,
            "printed": self.printed,
            "ours": self.ours,
            "low": self.low,
            "high": self.high,
            "verdict": self.verdict,
            "note": self.note,
            "counted": not self.uncounted,
        }


def listed_apart(numbers: Iterable[PrintedNumber], why: str) -> list[PrintedNumber]:
    """The same numbers, not counted."""
    return [replace(each, apart=why) for each in numbers]


def near(
    row: str,
    column: str,
    printed: str,
    ours: float,
    *,
    error: float = 0.0,
    within: float | None = None,
    reading: str = "",
) -> PrintedNumber:
    """Ours must round to the printed number, give or take so many standard errors of size `error`.

    `within` is the distance allowed where it is not the rounding.
    """
    value = number(printed)
    reach = (rounding(printed) if within is None else within) + ERRORS * error
    return PrintedNumber(
        row=row,
        column=column,
        printed=printed,
        ours=float(ours),
        low=value - reach,
        high=value + reach,
        value=value,
        reading=reading,
    )


def between(
    row: str,
    column: str,
    printed: str,
    ours: float,
    low: float,
    high: float,
    *,
    reading: str = "",
    elsewhere: str = "",
) -> PrintedNumber:
    """The paper has words; ours must lie in the range they are taken to mean."""
    return PrintedNumber(
        row=row, column=column, printed=printed, ours=float(ours), low=low, high=high,
        reading=reading, elsewhere=elsewhere,
    )  # fmt: skip


def corrected(
    row: str,
    column: str,
    printed: str,
    ours: float,
    low: float,
    high: float,
    *,
    why: str,
    value: float | None = None,
) -> PrintedNumber:
    """The printed number is wrong; ours must lie where the argument says the right one is.

    `value` is the printed number, which must lie elsewhere; left out where the paper has words.
    """
    return PrintedNumber(
        row=row,
        column=column,
        printed=printed,
        ours=float(ours),
        low=low,
        high=high,
        value=nan if value is None else value,
        correction=why,
    )


def around(right: float, within: float) -> tuple[float, float]:
    """The range of a right value known by other means."""
    return right - within, right + within


def number(printed: str) -> float:
    """A printed number without its thousands separators."""
    return float(printed.replace(",", ""))


def rounding(printed: str) -> float:
    """Half a unit of the last printed digit, and a little for floating point."""
    mantissa, _, power = printed.replace(",", "").lower().partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5000001 * 10.0 ** (int(power or 0) - digits)


def moments(
    values: npt.ArrayLike, *, theirs: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Mean and variance of simulated values, each with the standard error of its distance from
    that of another simulation of `theirs` runs."""
    x = np.asarray(values, dtype=np.float64)
    mean, variance = float(x.mean()), float(x.var())
    share = 1 / len(x) + 1 / theirs
    fourth = float(((x - mean) ** 4).mean())
    return (
        (mean, sqrt(variance * share)),
        (variance, sqrt(max(fourth - variance**2, 0.0) * share)),
    )
