"""Bar charts of probabilities as inline SVG, one bar a whole number."""

from collections.abc import Sequence

from markupsafe import Markup

from countwise.pages.charts import fitting_ticks, round_ticks, tick_text
from countwise.pages.page import render

HEIGHT, TOP, BASE = 180, 8, 140
WIDTH = 170  # pixels of the narrowest such chart


def bars(
    low: int, chances: Sequence[float], *, title: str, axis: str, marked: int | None = None
) -> Markup:
    """P(low), P(low + 1), … as bars; a line marks one value, such as the released one."""
    most = max(chances)
    step = 100 / len(chances)
    span = BASE - TOP
    columns = [
        {
            "x": round(i * step, 2),
            "y": round(TOP + span * (1 - p / most), 2),
            "width": round(step * 0.82, 2),
            "height": round(span * p / most, 2),
            "words": f"{low + i:,}: {p:.4f}",
        }
        for i, p in enumerate(chances)
    ]
    last = low + len(chances) - 1
    ticks = [
        {"x": round((value - low + 0.41) * step, 2), "text": tick_text(value)}
        for value in fitting_ticks(low, max(last, low + 1), width=WIDTH)
        if value == int(value) and low <= value <= last
    ]
    heights = [
        {"y": round(TOP + span * (1 - value / most), 1), "text": f"{value:g}"}
        for value in round_ticks(0.0, most, about=3)
    ]
    inside = marked is not None and low <= marked <= last
    likeliest = low + max(range(len(chances)), key=chances.__getitem__)
    return Markup(
        render(
            "bars.html",
            title=title,
            words=f"Bars from {low:,} to {last:,}, the highest at {likeliest:,}.",
            axis=axis,
            columns=columns,
            ticks=ticks,
            heights=heights,
            mark=round((marked - low + 0.41) * step, 2) if inside and marked is not None else None,
            height=HEIGHT,
            base=BASE,
            top=TOP,
        )
    )
