"""Pages about risk: mechanisms side by side, and advice on a table."""

from collections.abc import Sequence
from math import sqrt

from markupsafe import Markup

from countwise.noise.numbers import written
from countwise.pages.charts import Interval, intervals
from countwise.pages.lines import Line, lines
from countwise.pages.page import render
from countwise.risk.advice import WARNING, Option
from countwise.risk.mechanisms import MECHANISMS, CountError, HistogramError
from countwise.tables.hierarchy import Hierarchy


def mechanisms_page(
    pairs: Sequence[tuple[CountError, HistogramError]], *, bins: int, draws: int, delta: float
) -> str:
    """Variance on log axes, L1 error with its band, and the table of both."""
    epsilons = [one.epsilon for one, _ in pairs]
    return render(
        "risk_mechanisms.html",
        title="What noise costs",
        first=written(min(epsilons)),
        last=written(max(epsilons)),
        delta=f"{delta:g}",
        bins=bins,
        draws=draws,
        variance=variance_chart([one for one, _ in pairs]),
        distance=distance_chart([whole for _, whole in pairs]),
        rows=[_row(one, whole) for one, whole in pairs],
    )


def variance_chart(errors: Sequence[CountError]) -> Markup:
    """Variance against ε, both axes logarithmic. Coleman 2020, first figure."""
    curves = []
    for name in MECHANISMS:
        mine = [error for error in errors if error.mechanism == name and error.variance > 1e-6]
        if mine:
            x = [float(each.epsilon) for each in mine]
            curves.append(Line(label=name, x=x, y=[each.variance for each in mine]))
    return lines(
        curves, title="Variance of a count", x_axis="ε", y_axis="variance", log_x=True, log_y=True
    )


def distance_chart(errors: Sequence[HistogramError]) -> Markup:
    """L1 error against ε with a band of one standard deviation. Coleman 2020, third figure."""
    curves = []
    for name in MECHANISMS:
        mine = [error for error in errors if error.mechanism == name]
        curves.append(
            Line(
                label=name,
                x=[float(each.epsilon) for each in mine],
                y=_floor([each.l1 for each in mine]),
                lower=_floor([each.l1 - each.l1_sd for each in mine]),
                upper=_floor([each.l1 + each.l1_sd for each in mine]),
            )
        )
    return lines(curves, title="L1 error", x_axis="ε", y_axis="L1 error", log_y=True)


def _floor(values: Sequence[float]) -> list[float]:
    """On a log axis an error below a tenth of a person is drawn as that."""
    return [max(value, 0.1) for value in values]


def _row(one: CountError, whole: HistogramError) -> tuple[str, ...]:
    return (
        one.mechanism,
        written(one.epsilon),
        f"{one.variance:,.4g}",
        f"{one.mean_absolute:,.4g}",
        f"±{one.within['0.95']:,.3g}",
        f"{whole.l1:,.4g} ± {whole.l1_sd:,.2g}",
        f"{whole.l2:,.4g} ± {whole.l2_sd:,.2g}",
    )


def advice_page(
    options: Sequence[Option], hierarchy: Hierarchy, *, epsilon: str, repetitions: int
) -> str:
    """The ranking with its plot, under a warning."""
    return render(
        "risk_advice.html",
        title="Which adjustment, which noise",
        warning=WARNING,
        cells=hierarchy.cells,
        epsilon=epsilon,
        repetitions=repetitions,
        chart=advice_chart(options, hierarchy.cells),
        levels=list(hierarchy.levels),
        rows=[
            (
                f"{option.adjustment}, {option.mechanism}",
                *(f"{value:,.2f}" for value in option.level_rmse),
                f"{option.cells_sse:,.1f} ± {option.cells_error:,.1f}",
            )
            for option in options
        ],
    )


def advice_chart(options: Sequence[Option], cells: int) -> Markup:
    """The typical error of a cell under each option."""
    rows = []
    for option in options:
        low = max(option.cells_sse - 2 * option.cells_error, 0.0)
        high = max(option.cells_sse + 2 * option.cells_error, 0.0)
        rows.append(
            Interval(
                label=f"{option.adjustment}, {option.mechanism}",
                value=option.cell_rmse(cells),
                lower=sqrt(low / cells),
                upper=sqrt(high / cells),
            )
        )
    return intervals(
        rows, title="Typical error of a cell", axis="root mean squared error of a cell"
    )
