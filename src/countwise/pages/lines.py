"""Line charts as inline SVG: several curves, an optional band around each, linear or log axes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from markupsafe import Markup

from countwise.pages.charts import fitting_ticks, tick_text
from countwise.pages.page import render

HEIGHT, TOP, BASE = 410, 28, 366  # pixels: labels above and below stand in the rest
STYLES = 5  # of lines in the style sheet, told apart without colour too


@dataclass(frozen=True, kw_only=True)
class Line:
    """A curve through points; `lower` and `upper`, if given, are the band around it.

    By its `key` a script on the page finds it.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] = ()
    upper: Sequence[float] = ()
    key: str = ""


@dataclass(frozen=True)
class Axis:
    """From values to places on the page."""

    low: float
    high: float
    start: float
    stop: float
    log: bool

    def place(self, value: float) -> float:
        """Where a value stands; values off the axis stand at its end."""
        turn: Callable[[float], float] = log10 if self.log else float
        inside = min(max(value, self.low), self.high)
        share = (turn(inside) - turn(self.low)) / (turn(self.high) - turn(self.low))
        return round(self.start + share * (self.stop - self.start), 2)

    def ticks(self) -> list[float]:
        """Round values: powers of ten, with 2 and 5 between them where there is room."""
        if not self.log:
            return fitting_ticks(self.low, self.high)
        powers = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        ticks = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in ticks if self.low * 0.999 <= tick <= self.high * 1.001]


def lines(
    curves: Sequence[Line],
    *,
    title: str,
    x_axis: str,
    y_axis: str,
    log_x: bool = False,
    log_y: bool = False,
    marker: str = "",
) -> Markup:
    """Curves with a legend, told apart by colour and by dashes.

    A `marker` is an upright line of this name, which a script on the page shows and moves.
    """
    xs = [value for curve in curves for value in curve.x]
    ys = [v for c in curves for v in (*c.y, *c.lower, *c.upper) if v > 0 or not log_y]
    across = Axis(*_apart(min(xs), max(xs)), 0, 100, log_x)
    low = min(ys) if log_y else min(*ys, 0.0)
    upwards = Axis(*_apart(low, max(ys)), BASE - TOP, 0, log_y)
    names = ", ".join(curve.label for curve in curves)
    svg = render(
        "lines.html",
        title=title,
        words=f"Curves of {names}. {y_axis} from {low:,.3g} to {max(ys):,.3g}; {x_axis} from "
        f"{min(xs):g} to {max(xs):g}.",
        x_axis=x_axis,
        y_axis=y_axis,
        curves=[_drawn(curve, i, across, upwards) for i, curve in enumerate(curves)],
        x_ticks=[{"at": across.place(t), "text": tick_text(t)} for t in across.ticks()],
        y_ticks=[{"at": TOP + upwards.place(t), "text": tick_text(t)} for t in upwards.ticks()],
        marker=marker,
        height=HEIGHT,
        top=TOP,
        base=BASE,
    )
    return Markup(svg)


def _apart(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis, also when there is one value only."""
    return (low, high) if high > low else (low / 2, 2 * low) if low > 0 else (low, low + 1)


def _drawn(curve: Line, number: int, across: Axis, upwards: Axis) -> dict[str, str | int]:
    def path(values: Sequence[float]) -> list[str]:
        places = zip(curve.x, values, strict=True)
        return [f"{across.place(x)},{upwards.place(y)}" for x, y in places]

    band = [*path(curve.lower), *reversed(path(curve.upper))] if curve.lower else []
    return {
        "label": curve.label,
        "key": curve.key,
        "style": number % STYLES,
        "path": " ".join(path(curve.y)),
        "band": " ".join(band),
    }
