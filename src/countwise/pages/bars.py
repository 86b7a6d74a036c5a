"""Bar charts of probabilities as inline SVG, one bar a whole number."""

from collections.abc import Sequence

from markupsafe import Markup

from countwise.pages.charts import round_ticks
from countwise.pages.page import render

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 170, 44, 34, 8


def bars(
    low: int, chances: Sequence[float], *, title: str, axis: str, marked: int | None = None
) -> Markup:
    """P(low), P(low + 1), … as bars; a line marks one value, such as the released one."""
    most = max(chances)
    step = (WIDTH - LEFT - 6) / len(chances)
    span = HEIGHT - TOP - BOTTOM
    columns = [
        {
            "x": round(LEFT + i * step, 2),
            "y": round(TOP + span * (1 - p / most), 2),
            "width": round(max(step * 0.82, 0.6), 2),
            "height": round(span * p / most, 2),
            "words": f"{low + i:,}: {p:.4f}",
        }
        for i, p in enumerate(chances)
    ]
    last = low + len(chances) - 1
    about = 4 if last < 100_000 else 2
    ticks = [
        {"x": round(LEFT + (value - low + 0.41) * step, 1), "text": f"{value:,.0f}"}
        for value in round_ticks(low, max(last, low + 1), about=about)
        if value == int(value) and low <= value <= last
    ]
    heights = [
        {"y": round(TOP + span * (1 - value / most), 1), "text": f"{value:g}"}
        for value in round_ticks(0.0, most, about=3)
    ]
    mark = None
    if marked is not None and low <= marked <= last:
        mark = round(LEFT + (marked - low + 0.41) * step, 1)
    return Markup(
        render(
            "posterior_bars.svg",
            title=title,
            axis=axis,
            columns=columns,
            ticks=ticks,
            heights=heights,
            mark=mark,
            width=WIDTH,
            height=HEIGHT,
            left=LEFT,
            right=WIDTH - 6,
            base=HEIGHT - BOTTOM,
            top=TOP,
        )
    )
