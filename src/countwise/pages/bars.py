"""Bar charts of probabilities as inline SVG, one bar a whole number."""

from collections.abc import Sequence

from markupsafe import Markup

from countwise.pages.charts import chance, fitting_ticks, round_ticks, share, tick
from countwise.pages.page import render

HEIGHT, TOP, BASE = 180, 8, 140  # pixels: the labels below stand in the rest
WIDTH = 170  # pixels of the narrowest such chart
BAR = 0.82  # share of its place that a bar fills


def bars(
    low: int,
    chances: Sequence[float],
    *,
    title: str,
    axis: str,
    step: int = 1,
    marked: int | None = None,
) -> Markup:
    """P(low), P(low + step), … as bars; a line marks one value, such as the released one."""
    most = max(chances)
    span, pace = BASE - TOP, 100 / len(chances)
    last = low + step * (len(chances) - 1)
    start, stop = low - BAR / 2 * step, last + (1 - BAR / 2) * step
    columns = [
        {
            "x": round(i * pace, 2),
            "y": round(TOP + span * (1 - p / most), 2),
            "width": round(pace * BAR, 2),
            "height": round(span * p / most, 2),
            "words": f"{low + i * step:,}: {chance(p)}",
        }
        for i, p in enumerate(chances)
    ]
    ticks = [
        tick(value, start, stop, width=WIDTH)
        for value in fitting_ticks(start, stop, width=WIDTH)
        if value == int(value) and low <= value <= last
    ]
    heights = [
        {"y": round(TOP + span * (1 - value / most), 1), "text": f"{value:g}"}
        for value in round_ticks(0.0, most, about=3)
    ]
    inside = marked is not None and low <= marked <= last
    likeliest = low + step * max(range(len(chances)), key=chances.__getitem__)
    return Markup(
        render(
            "bars.html",
            title=title,
            words=f"Bars from {low:,} to {last:,}, the highest at {likeliest:,}.",
            axis=axis,
            columns=columns,
            ticks=ticks,
            heights=heights,
            mark=share(marked, start, stop) if inside and marked is not None else None,
            height=HEIGHT,
            base=BASE,
            top=TOP,
        )
    )
