"""What `countwise risk advise` ranked, on the terminal and as data."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from countwise.cli.console import out, print_table
from countwise.cli.risk.claim_commands import plain
from countwise.front_door.advice_function import RiskAdvice, TableAdvice
from countwise.risk.advice import Option
from countwise.risk.table_advice import TableOption
from countwise.tables.hierarchy import Hierarchy

MARK = "✗"
RANKING = (
    "Ranked by the geometric mean of the errors of all {what}. ✗: at some totals 1.5 times the "
    "error of least squares or more: {spoiled}."
)
UNSPOILED = "Ranked by the geometric mean of the errors of all {what}; none spoils a total."


def advice_data(advice: RiskAdvice | TableAdvice) -> list[dict[str, Any]]:
    """The options as data."""
    if isinstance(advice, RiskAdvice):
        cells = advice.hierarchy.cells
        return [
            plain(asdict(o)) | {"overall": o.overall, "cell_rmse": o.cell_rmse(cells)}
            for o in advice.options
        ]
    return [plain(asdict(o)) | {"price": o.price, "overall": o.overall} for o in advice.options]


def print_advice(advice: RiskAdvice | TableAdvice) -> None:
    """The options, a table a loss."""
    prices = list(dict.fromkeys(each.price for each in advice.options))
    for price in prices:
        if len(prices) > 1:
            out.print(f"\n{price}")
        if isinstance(advice, RiskAdvice):
            _print_levels([e for e in advice.options if e.price == price], advice.hierarchy)
        else:
            _print_tables([e for e in advice.options if e.price == price])
    spoiled = dict.fromkeys(name for each in advice.options for name in each.spoiled)
    what = "levels" if isinstance(advice, RiskAdvice) else "tables"
    form = RANKING if spoiled else UNSPOILED
    out.print(form.format(what=what, spoiled=", ".join(spoiled)), markup=False)
    for name, problem in advice.refused if isinstance(advice, RiskAdvice) else ():
        out.print(f"Not simulated: {name}: {problem}")


def _print_levels(options: Sequence[Option], hierarchy: Hierarchy) -> None:
    """A row an option."""
    levels = (f"{level}, rmse" for level in hierarchy.levels)
    print_table(
        ("adjustment", "noise", *levels, "all levels", "", "cells, sse"),
        [
            (
                o.adjustment,
                o.mechanism,
                *(f"{value:,.2f}" for value in o.level_rmse),
                f"{o.overall:,.2f}",
                MARK if o.spoiled else "",
                f"{o.cells_sse:,.0f} ± {o.cells_error:,.0f}",
            )
            for o in options
        ],
    )


def _print_tables(options: Sequence[TableOption]) -> None:
    """A row a published table, and a column an option."""
    names = [f"{each.design}, {each.adjustment}" for each in options]
    rows = [
        (first.table, *(f"{o.errors[i].rmse:,.2f}" for o in options))
        for i, first in enumerate(options[0].errors)
    ]
    marks = [f"{each.overall:,.2f} {MARK if each.spoiled else ''}".rstrip() for each in options]
    print_table(("table, rmse", *names), [*rows, ("all tables", *marks)])
