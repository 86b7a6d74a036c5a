"""Charts as inline SVG that follow the page's colours, fit any screen, print well and read out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

from markupsafe import Markup

from countwise.pages.page import render

NARROW = 260  # pixels of a chart on the smallest phone
MARGIN = 0.02  # of the width, on either side
LETTER, GAP = 7.5, 14.0  # pixels of a digit, and between two labels


@dataclass(frozen=True, kw_only=True)
class Interval:
    """One row of an interval chart: a released value and a range around it."""

    label: str
    value: float
    lower: float
    upper: float
    hollow: float | None = None


def intervals(rows: Sequence[Interval], *, title: str, axis: str) -> Markup:
    """Dots with ranges, one row each on a common axis; a hollow dot marks a second value."""
    ends = [end for row in rows for end in (row.lower, row.upper, row.value, row.hollow or 0.0)]
    low, high = min(*ends, 0.0), max(*ends, 1.0)
    room = MARGIN * (high - low)  # so that no bar and no dot is cut at the edge
    low, high = low - (room if low < 0.0 else 0.0), high + room

    def x(value: float) -> float:
        return share(value, low, high)

    marks = [
        {
            "label": row.label,
            "value": x(row.value),
            "lower": x(row.lower),
            "upper": x(row.upper),
            "hollow": None if row.hollow is None else x(row.hollow),
            "words": f"{row.label}: {said(row.value)}, from {said(row.lower)} to {said(row.upper)}",
        }
        for row in rows
    ]
    ticks = [tick(value, low, high) for value in fitting_ticks(low, high)]
    zero = x(0.0) if low < 0.0 else None
    return Markup(
        render("intervals.html", title=title, axis=axis, marks=marks, ticks=ticks, zero=zero)
    )


def chart_height(rows: int) -> int:
    """Pixels that an interval chart of so many rows takes, with its heading, on a phone too."""
    return 130 + 48 * rows if rows < 6 else 150 + 30 * rows


def said(value: float) -> str:
    """A number as it is read out: to hundredths, without zeros at its end."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def chance(p: float) -> str:
    """A probability in four places, or in two digits where that would show nothing."""
    return f"{p:.4f}" if p >= 0.001 or p == 0.0 else f"{p:.1e}"


def share(value: float, low: float, high: float) -> float:
    """Where a value stands between two others, in percent."""
    return round(100 * (value - low) / (high - low), 2)


def tick_text(value: float) -> str:
    """A number beside an axis."""
    return f"{value:,.0f}" if value == round(value) else f"{value:,g}"


@dataclass(frozen=True)
class Tick:
    """A number under an axis: its place in percent, its text, and which part of that is there."""

    x: float
    text: str
    anchor: str


def tick(value: float, low: float, high: float, *, width: int = NARROW) -> Tick:
    """A number under an axis, its text kept inside the picture where that is narrowest."""
    x, text = share(value, low, high), tick_text(value)
    half, at = len(text) * LETTER / 2, x * width / 100
    anchor = "start" if at < half - GAP else "end" if at > width - half + GAP else "middle"
    return Tick(x, text, anchor)


def fitting_ticks(low: float, high: float, *, width: int = NARROW) -> list[float]:
    """Round numbers that cover a range, few enough for their labels to stand side by side."""
    for about in (6, 5, 4, 3, 2, 1):
        ticks = round_ticks(low, high, about=about)
        ends = [_ends(tick(each, low, high, width=width), width) for each in ticks]
        if all(a[1] + GAP <= b[0] for a, b in pairwise(ends)):
            return ticks
    return ticks[len(ticks) // 2 :][:1]


def _ends(label: Tick, width: int) -> tuple[float, float]:
    """Where the text of a label begins and ends, in pixels."""
    long = len(label.text) * LETTER
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}[label.anchor] * long
    return label.x * width / 100 - before, label.x * width / 100 - before + long


def round_ticks(low: float, high: float, *, about: int = 6) -> list[float]:
    """Round numbers that cover a range."""
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [i * step for i in range(ceil(low / step), floor(high / step) + 1)]
