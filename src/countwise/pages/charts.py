"""Charts as inline SVG that follow the page's colours, print well and read out."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

from countwise.pages.page import render

WIDTH, LABEL, RIGHT, ROW, TOP, AXIS = 720, 210, 24, 26, 8, 34


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
    span = WIDTH - LABEL - RIGHT

    def x(value: float) -> float:
        return round(LABEL + span * (value - low) / (high - low), 1)

    marks = [
        {
            "label": row.label,
            "y": TOP + ROW * i + ROW / 2,
            "value": x(row.value),
            "lower": x(row.lower),
            "upper": x(row.upper),
            "hollow": None if row.hollow is None else x(row.hollow),
            "words": f"{row.label}: {row.value:,.0f}, from {row.lower:,.0f} to {row.upper:,.0f}",
        }
        for i, row in enumerate(rows)
    ]
    bottom = TOP + ROW * len(rows)
    ticks = [{"x": x(value), "text": f"{value:,g}"} for value in round_ticks(low, high)]
    svg = render(
        "intervals.svg",
        title=title,
        axis=axis,
        marks=marks,
        ticks=ticks,
        width=WIDTH,
        label_end=LABEL - 12,
        plot_end=WIDTH - RIGHT,
        top=TOP,
        bottom=bottom,
        height=bottom + AXIS,
    )
    return Markup(svg)


def round_ticks(low: float, high: float, *, about: int = 6) -> list[float]:
    """Round numbers that cover a range."""
    raw = (high - low) / about
    power = 10.0 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [i * step for i in range(ceil(low / step), floor(high / step) + 1)]
