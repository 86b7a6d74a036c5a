"""The density of a share, drawn with its interval. Draws; computes nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from countwise.pages.page import render

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 24, 24, 34, 262


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
    shaded = [
        (x, y) for x, y in zip(curve.x, curve.y, strict=True) if curve.lower <= x <= curve.upper
    ]
    line = " ".join(_point(x, y, top) for x, y in zip(curve.x, curve.y, strict=True))
    area = " ".join(
        [
            _point(shaded[0][0], 0.0, top),
            *(_point(x, y, top) for x, y in shaded),
            _point(shaded[-1][0], 0.0, top),
        ]
        if shaded
        else []
    )
    ticks = [{"x": _x(i / 10), "text": f"{i / 10:g}"} for i in range(11)]
    return Markup(
        render(
            "verification_density.svg",
            title=title,
            axis=axis,
            width=WIDTH,
            height=HEIGHT,
            left=LEFT,
            right=WIDTH - RIGHT,
            top=TOP,
            bottom=BOTTOM,
            line=line,
            area=area,
            ticks=ticks,
            threshold=_x(threshold),
            mode={"x": _x(curve.mode), "text": f"{curve.mode:.2f}"},
            median=_x(curve.median),
            lower={"x": _x(curve.lower), "text": f"{curve.lower:.2f}"},
            upper={"x": _x(curve.upper), "text": f"{curve.upper:.2f}"},
        )
    )


def _x(value: float) -> float:
    return round(LEFT + (WIDTH - LEFT - RIGHT) * value, 1)


def _point(x: float, y: float, top: float) -> str:
    return f"{_x(x):g},{BOTTOM - (BOTTOM - TOP) * y / top:.1f}"
