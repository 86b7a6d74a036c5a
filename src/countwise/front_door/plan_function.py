"""What a release would cost and how good it would be, before anything is spent."""

from pathlib import Path
from typing import Unpack

import numpy as np

from countwise.errors import PlanError
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
    make_plan,
    spelled_out,
    with_zeros_of,
)
from countwise.progress import Tell, silent
from countwise.release.aims import TREES_HAVE_NONE, least_plan
from countwise.release.folder import whole
from countwise.release.plan import Plan
from countwise.risk.simulation import expected_errors
from countwise.tables.crossed_cells import read_crossed_domain
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain, read_public_counts

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
    overwrite: bool = False,
    tell: Tell = silent,
    **words: Unpack[ReleaseAndFileWords],
) -> LevelOutlook | TableOutlook:
    """Levels or tables, privacy loss and expected errors. Reads no count and spends nothing.

    `cells` are a public list, or a TOML file of levels. Words such as `epsilon=1` are laid over a
    `plan`. With a `unit`, `rho` or `epsilon`, the least loss is found at which `tables` meet their
    targets. On a `stand_in`, public counts of the same cells, the release is simulated. The plan,
    as it was asked for or found, is written to `out`; the one it settles on is `chosen`.
    """
    cells = Path(cells)
    asked = with_zeros_of(cells, make_plan(plan, words, unit=unit))
    layout = make_layout(words)
    if asked.across:
        if stand_in is not None:
            raise PlanError(
                "--stand-in simulates releases of one tree, and these tables cross. To fix, leave "
                "it out: the errors after least squares are known without it."
            )
        crossing = read_crossed_domain(cells, asked.variables, count=count, layout=layout)
        if unit is not None:
            asked = least_plan(asked, crossing.workload)
        found: LevelOutlook | TableOutlook = table_outlook(
            asked, crossing.workload, least=unit is not None
        )
    elif unit is not None:
        raise PlanError(TREES_HAVE_NONE)
    else:
        found = _levels(
            asked, cells, layout, None if stand_in is None else Path(stand_in),
            count=count, repetitions=repetitions, seed=seed, tell=tell,
        )  # fmt: skip
    if out is not None:
        with whole(Path(out), overwrite=overwrite) as partial:
            partial.write_text(asked.to_toml(), encoding="utf-8")
    return found


def _levels(
    asked: Plan,
    cells: Path,
    layout: Layout,
    stand_in: Path | None,
    *,
    count: str,
    repetitions: int,
    seed: int,
    tell: Tell,
) -> LevelOutlook:
    hierarchy = read_domain(cells, by=asked.by, count=count, layout=layout)
    if stand_in is None:
        return level_outlook(asked, hierarchy)
    chosen = asked.settled(hierarchy)
    _, public = read_public_counts(
        stand_in, by=chosen.by, count=count, domain=hierarchy, loader=layout
    )
    errors = expected_errors(
        hierarchy,
        public,
        chosen,
        repetitions=repetitions,
        rng=np.random.default_rng(seed),
        tell=tell,
    )
    return level_outlook(asked, hierarchy, errors=errors)
