"""One printed number beside ours, and the verdict on it.

A number is *reproduced* when ours lies in the range the printed one allows: its rounding, and
five standard errors where chance is involved. It is *reproduced with a stated reading* when the
paper leaves something open and the reading that was taken is stated. It is *corrected* when ours
lies where the argument given says the right value is, and the printed one does not. Everything
else is *not reproduced*.
"""

from dataclasses import dataclass
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
ERRORS = 5.0  # standard errors of chance that a number is allowed


@dataclass(frozen=True, kw_only=True)
class PrintedNumber:
    """A number of a paper: as printed, ours, and the range ours must lie in.

    `value` is what is printed, as a number; it is missing where the paper has words.
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
    def note(self) -> str:
        """The reason of a correction, or the reading taken."""
        return self.correction or self.reading

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
        }


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
) -> PrintedNumber:
    """The paper has words; ours must lie in the range they are taken to mean."""
    return PrintedNumber(
        row=row, column=column, printed=printed, ours=float(ours), low=low, high=high,
        reading=reading,
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
