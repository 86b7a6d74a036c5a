"""What a release would cost and how good it would be, before anything is spent."""

from dataclasses import replace
from pathlib import Path
from typing import Unpack, cast

import numpy as np

from countwise.front_door.charging import Account
from countwise.front_door.plan_outlooks import (
    LevelOutlook,
    TableOutlook,
    level_outlook,
    table_outlook,
)
from countwise.front_door.words import (
    PathLike,
    ReleaseAndFileWords,
    make_layout,
    spelled_out,
    targets_of_tree,
    with_zeros_of,
)
from countwise.margins.whole import Method
from countwise.progress import Tell, counted, silent
from countwise.release.aims import least_plan
from countwise.release.folder import whole
from countwise.release.plan import Plan
from countwise.release.savings import largest_saving
from countwise.reports.plan_page import plan_page
from countwise.risk.closed_form import closed_form
from countwise.risk.loss_curve import POINTS, loss_curve
from countwise.risk.simulated_tables import table_errors
from countwise.risk.simulation import LevelError, expected_errors
from countwise.risk.tree_targets import least_tree_plan
from countwise.tables.crossed_cells import read_crossed_domain
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain, read_public_cells, read_public_counts
from countwise.tables.workload import Workload

REPETITIONS = 100
"""Simulated releases: 95% quantiles of thousands of errors are then known to a few percent."""


@spelled_out
def plan(
    cells: PathLike,
    plan: Plan | PathLike | None = None,
    *,
    unit: str | None = None,
    stand_in: PathLike | None = None,
    count: str = "count",
    repetitions: int = REPETITIONS,
    seed: int = 0,
    out: PathLike | None = None,
    page: PathLike | None = None,
    ledger: str | None = None,
    dataset: str | None = None,
    releases: int = 1,
    overwrite: bool = False,
    tell: Tell = silent,
    **words: Unpack[ReleaseAndFileWords],
) -> LevelOutlook | TableOutlook:
    """Levels or tables, privacy loss and expected errors. Reads no count and spends nothing.

    `cells` are a public list, or a TOML file of levels. Words such as `epsilon=1` are laid over a
    `plan`. With a `unit`, `rho` or `epsilon`, the least loss is found at which `tables` meet their
    targets. On a `stand_in`, public counts of the same cells, the release is simulated. The plan,
    as it was asked for or found, is written to `out`; the one it settles on is `chosen`. A `page`
    has sliders for the loss and its shares. A `ledger` says what `releases` of the `dataset` would
    cost and what is left; where no loss was said, all of that is planned with. Nothing is charged.
    """
    cells = Path(cells)
    account = Account(url=ledger, dataset=dataset, releases=releases)
    asked = with_zeros_of(cells, account.plan(plan, words, unit=unit))
    layout = make_layout(words)
    found: LevelOutlook | TableOutlook
    if asked.across:
        crossing = read_crossed_domain(cells, asked.variables, count=count, layout=layout)
        saving = largest_saving(asked, crossing.workload, least=unit is not None)
        if unit is not None:
            asked = least_plan(asked, crossing.workload)
        costs = account.charges(asked)
        found = table_outlook(
            asked, crossing.workload, least=unit is not None, saving=saving, costs=costs
        )
        if stand_in is not None:
            found = _with_trial(
                found, crossing.workload, layout, Path(stand_in),
                count=count, repetitions=repetitions, seed=seed, tell=tell,
            )  # fmt: skip
        shape: Hierarchy | Workload = crossing.workload
    else:
        hierarchy = shape = read_domain(cells, by=asked.by, count=count, layout=layout)
        if unit is not None:
            asked = least_tree_plan(asked, hierarchy, targets_of_tree(plan, words.get("tables")))
        costs, errors = account.charges(asked), None
        if stand_in is not None:
            errors = _simulated(
                asked, hierarchy, layout, Path(stand_in),
                count=count, repetitions=repetitions, seed=seed, tell=tell,
            )  # fmt: skip
        found = level_outlook(asked, hierarchy, errors=errors, costs=costs)
    if out is not None:
        with whole(Path(out), overwrite=overwrite) as partial:
            partial.write_text(asked.to_toml(), encoding="utf-8")
    if page is not None:
        _write_page(found, shape, Path(page), overwrite=overwrite, tell=tell)
    return found


def _write_page(
    outlook: LevelOutlook | TableOutlook,
    shape: Hierarchy | Workload,
    page: Path,
    *,
    overwrite: bool,
    tell: Tell,
) -> None:
    """The page of a settled plan."""
    chosen = outlook.chosen
    with whole(page, overwrite=overwrite) as partial:
        curve = loss_curve(chosen, shape, tell=counted(tell, POINTS))
        form = closed_form(chosen, shape, curve.planned)
        within = outlook.within if isinstance(outlook, TableOutlook) else {}
        text = plan_page(chosen, chosen.budget(shape), curve, form, within=within)
        partial.write_text(text, encoding="utf-8")


def _simulated(
    asked: Plan,
    hierarchy: Hierarchy,
    layout: Layout,
    stand_in: Path,
    *,
    count: str,
    repetitions: int,
    seed: int,
    tell: Tell,
) -> list[LevelError]:
    """The errors of releases of public counts of the same cells."""
    chosen = asked.settled(hierarchy)
    _, public = read_public_counts(
        stand_in, by=chosen.by, count=count, domain=hierarchy, loader=layout
    )
    return expected_errors(
        hierarchy,
        public,
        chosen,
        repetitions=repetitions,
        rng=np.random.default_rng(seed),
        tell=tell,
    )


def _with_trial(
    outlook: TableOutlook,
    cells: Workload,
    layout: Layout,
    stand_in: Path,
    *,
    count: str,
    repetitions: int,
    seed: int,
    tell: Tell,
) -> TableOutlook:
    """The outlook with the errors of releases of public counts of the same cells."""
    chosen = outlook.chosen
    _, public = read_public_cells(
        stand_in, names=chosen.variables, count=count, cells=cells, loader=layout
    )
    trial = table_errors(
        chosen.workload(cells),
        public,
        outlook.budget,
        method=cast(Method, chosen.adjust),
        repetitions=repetitions,
        rng=np.random.default_rng(seed),
        tell=tell,
    )
    return replace(outlook, trial=trial)
