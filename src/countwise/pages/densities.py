"""The density of a share, drawn with its interval. Draws; computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from countwise.pages.page import render

HEIGHT, TOP, BASE = 310, 30, 262  # pixels: labels above and below stand in the rest


@dataclass(frozen=True, kw_only=True)
class Density:
    """A curve over 0 to 1, the interval to shade, and the points to mark."""

    x: Sequence[float]
    y: Sequence[float]
    lower: float
    upper: float
    mode: float
    median: float


def density(curve: Density, *, title: str, axis: str, threshold: float = 0.5) -> Markup:
    """The curve, its interval shaded, its mode and median marked, a threshold as a dashed line."""
    top = max(*curve.y, 1e-9)
    points = list(zip(curve.x, curve.y, strict=True))
    shaded = [(x, y) for x, y in points if curve.lower <= x <= curve.upper]
    if shaded:
        shaded = [(shaded[0][0], 0.0), *shaded, (shaded[-1][0], 0.0)]
    return Markup(
        render(
            "density.html",
            title=title,
            words=f"Highest at {curve.mode:.2f}; the middle of the probability is at "
            f"{curve.median:.2f}; the shaded part goes from {curve.lower:.2f} to "
            f"{curve.upper:.2f}.",
            axis=axis,
            height=HEIGHT,
            top=TOP,
            base=BASE,
            line=" ".join(_point(x, y, top) for x, y in points),
            area=" ".join(_point(x, y, top) for x, y in shaded),
            ticks=[{"x": 10 * i, "text": f"{i / 10:g}"} for i in range(11)],
            threshold=_x(threshold),
            mode=_x(curve.mode),
            median=_x(curve.median),
            lower=_x(curve.lower),
            upper=_x(curve.upper),
        )
    )


def _x(value: float) -> float:
    return round(100 * value, 2)


def _point(x: float, y: float, top: float) -> str:
    return f"{_x(x):g},{(BASE - TOP) * (1 - y / top):.1f}"
