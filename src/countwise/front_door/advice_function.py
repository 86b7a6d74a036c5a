"""What plans could do, ranked by all of their tables on public or made-up counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.errors import InputError
from countwise.front_door.output_files import PAGES, output_files, write_frame, write_text
from countwise.front_door.words import PathLike, make_plan, names
from countwise.progress import Tell, counted, silent
from countwise.release.plan import Plan
from countwise.reports.risk_page import advice_page
from countwise.risk.advice import PURE, RANKED, Option, advise
from countwise.risk.table_advice import OPTIONS, TableOption, advise_tables
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.reading import read_public_cells, read_public_counts

REPETITIONS = 50
"""Simulated releases an option: enough to tell apart what differs by a tenth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RiskAdvice:
    """Options for one tree, from best to worst at each loss, and what could not be simulated."""

    hierarchy: Hierarchy
    options: Sequence[Option]
    refused: Sequence[tuple[str, str]]

    def table(self) -> pl.DataFrame:
        """A row a level of every option."""
        names = ["loss", "adjustment", "noise", "overall", "level", "counts", "rmse", "spoiled"]
        levels = list(zip(self.hierarchy.levels, self.hierarchy.sizes, strict=True))
        rows = [
            (o.price, o.adjustment, o.mechanism, o.overall, level, size, rmse, level in o.spoiled)
            for o in self.options
            for (level, size), rmse in zip(levels, o.level_rmse, strict=True)
        ]
        return pl.DataFrame(rows, schema=names, orient="row")


@dataclass(frozen=True, kw_only=True)
class TableAdvice:
    """Options for tables that cross, from best to worst at each loss."""

    options: Sequence[TableOption]

    def table(self) -> pl.DataFrame:
        """A row a table of every option."""
        rows = [
            {
                "loss": o.price,
                "design": o.design,
                "adjustment": o.adjustment,
                "overall": o.overall,
                "table": each.table,
                "counts": each.counts,
                "rmse": each.rmse,
                "uncertain": each.uncertain,
                "spoiled": each.table in o.spoiled,
            }
            for o in self.options
            for each in o.errors
        ]
        return pl.DataFrame(rows)


def risk_advise(
    table: PathLike,
    *,
    by: Any,
    across: Any = None,
    tables: Any = None,
    epsilon: Any = None,
    rho: Any = None,
    count: str = "count",
    repetitions: int = REPETITIONS,
    seed: int = 0,
    csv: PathLike | None = None,
    out: PathLike | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> RiskAdvice | TableAdvice:
    """Rank what plans could do by all their tables, on a stand-in. Never on confidential counts.

    The stand-in has public or made-up counts, one row a cell. Of a tree, adjustments and mechanisms
    are ranked; of variables `across` it, what is measured and how it is adjusted. `epsilon` or, of
    tables that cross, `rho` may list several losses. Every figure is written to `csv`, and, of one
    tree at one loss, a page to `out`.
    """
    plans = _plans_at(epsilon, rho, {"by": names(by) or None, "across": across, "tables": tables})
    file, page = csv and Path(csv), out and Path(out)
    output_files({"--csv": file or None}, {"--out": (page or None, PAGES)}, overwrite=overwrite)
    found: RiskAdvice | TableAdvice
    if plans[0].across:
        if page:
            raise InputError("--out draws the options of one tree. To fix, write --csv.")
        space, cells = read_public_cells(Path(table), names=plans[0].variables, count=count)
        options = advise_tables(
            space,
            cells,
            plans,
            rng=np.random.default_rng(seed),
            repetitions=repetitions,
            tell=counted(tell, len(plans) * OPTIONS),
        )
        found = TableAdvice(options=options)
    else:
        if rho is not None:
            raise InputError(
                "--rho is for tables that cross: the noise of one tree is ranked at one ε. To fix, "
                "give --epsilon."
            )
        if page and len(plans) > 1:
            raise InputError("--out draws one loss. To fix, give one, or write --csv.")
        found = _of_tree(Path(table), plans, count, repetitions, seed, tell)
        if page:
            text = advice_page(
                found.options, found.hierarchy, epsilon=str(epsilon or ""), repetitions=repetitions
            )
            write_text(text, page, overwrite=overwrite)
    if file:
        write_frame(found.table(), file, overwrite=overwrite)
    return found


def _of_tree(
    table: Path, plans: Sequence[Plan], count: str, repetitions: int, seed: int, tell: Tell
) -> RiskAdvice:
    hierarchy, cells = read_public_counts(table, by=plans[0].by, count=count)
    tell = counted(tell, len(plans) * len(RANKED) * len(PURE))
    options: list[Option] = []
    for plan in plans:
        ranked, refused = advise(
            hierarchy,
            cells,
            plan,
            rng=np.random.default_rng(seed),
            repetitions=repetitions,
            tell=tell,
        )
        options += ranked
    return RiskAdvice(hierarchy=hierarchy, options=options, refused=refused)


def _plans_at(epsilon: Any, rho: Any, words: Mapping[str, Any]) -> list[Plan]:
    """The same plan at each of several losses, a list or a text with commas."""
    if epsilon is not None and rho is not None:
        raise InputError("--epsilon and --rho are two units of one loss. To fix, give one.")
    unit, given = ("epsilon", epsilon) if rho is None else ("rho", rho)
    if isinstance(given, str) and "=" not in given:
        given = names(given)
    losses = list(given) if isinstance(given, list | tuple) else [given]
    return [make_plan(None, {**words, unit: each}) for each in losses]
