"""What `countwise risk advise` ranked, on the terminal, as data and as CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from countwise.cli.console import out, print_table
from countwise.cli.output_files import write_frame
from countwise.risk.advice import Option
from countwise.risk.table_advice import TableOption
from countwise.tables.hierarchy import Hierarchy

MARK = "✗"
RANKING = (
    "Ranked by the geometric mean of the errors of all {what}. ✗: at some totals 1.5 times the "
    "error of least squares or more: {spoiled}."
)
UNSPOILED = "Ranked by the geometric mean of the errors of all {what}; none spoils a total."


def print_levels(ranked: Sequence[tuple[str, Sequence[Option]]], hierarchy: Hierarchy) -> None:
    """The options for one tree, a table a loss."""
    for price, options in ranked:
        if len(ranked) > 1:
            out.print(f"\n{price}")
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
    spoiled = [level for _, options in ranked for each in options for level in each.spoiled]
    _print_ranking(spoiled, "levels")


def print_options(options: Sequence[TableOption]) -> None:
    """The options for tables that cross, a table a loss: a column an option."""
    for price in dict.fromkeys(each.price for each in options):
        these = [each for each in options if each.price == price]
        out.print(f"\n{price}")
        names = [f"{each.design}, {each.adjustment}" for each in these]
        rows = [
            (first.table, *(f"{o.errors[i].rmse:,.2f}" for o in these))
            for i, first in enumerate(these[0].errors)
        ]
        marks = [f"{each.overall:,.2f} {MARK if each.spoiled else ''}".rstrip() for each in these]
        print_table(("table, rmse", *names), [*rows, ("all tables", *marks)])
    _print_ranking([table for each in options for table in each.spoiled], "tables")


def _print_ranking(spoiled: Sequence[str], what: str) -> None:
    form = RANKING if spoiled else UNSPOILED
    text = form.format(what=what, spoiled=", ".join(dict.fromkeys(spoiled)))
    out.print(text, markup=False)


def option_data(options: Sequence[TableOption]) -> list[dict[str, Any]]:
    """As data, from best to worst at each loss."""
    return [
        {
            "loss": each.price,
            "design": each.design,
            "adjustment": each.adjustment,
            "overall": each.overall,
            "spoiled": list(each.spoiled),
            "tables": [
                {"table": e.table, "counts": e.counts, "rmse": e.rmse, "uncertain": e.uncertain}
                for e in each.errors
            ],
        }
        for each in options
    ]


def write_options(options: Sequence[TableOption], file: Path, *, overwrite: bool) -> None:
    """A row a table of every option."""
    rows = [
        (o.price, o.design, o.adjustment, o.overall, e.table, e.counts, e.rmse, e.uncertain,
         e.table in o.spoiled)
        for o in options
        for e in o.errors
    ]  # fmt: skip
    names = ["loss", "design", "adjustment", "overall", "table", "counts", "rmse", "uncertain",
             "spoiled"]  # fmt: skip
    write_frame(pl.DataFrame(rows, schema=names, orient="row"), file, overwrite=overwrite)


def write_levels(
    ranked: Sequence[tuple[str, Sequence[Option]]],
    hierarchy: Hierarchy,
    file: Path,
    *,
    overwrite: bool,
) -> None:
    """A row a level of every option for one tree."""
    rows = [
        (price, o.adjustment, o.mechanism, o.overall, level, size, value, level in o.spoiled)
        for price, options in ranked
        for o in options
        for level, size, value in zip(hierarchy.levels, hierarchy.sizes, o.level_rmse, strict=True)
    ]
    names = ["loss", "adjustment", "noise", "overall", "level", "counts", "rmse", "spoiled"]
    write_frame(pl.DataFrame(rows, schema=names, orient="row"), file, overwrite=overwrite)
