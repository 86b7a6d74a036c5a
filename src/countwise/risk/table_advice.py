"""What a plan could do with tables that cross, by every published table: public stand-ins only."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np

from countwise.arrays import IntArray
from countwise.margins.shares import NORMAL
from countwise.margins.spending import Unit
from countwise.margins.whole import Method
from countwise.noise.numbers import written
from countwise.release.budget import SYMBOLS
from countwise.release.plan import Plan
from countwise.release.table_accuracy import table_accuracy
from countwise.risk.advice import SPOILING, SURE
from countwise.risk.simulated_tables import SimulatedError, overall, repeated, table_errors
from countwise.risk.simulation import simulate_measurements, simulated_adjustment
from countwise.tables.hierarchy import build
from countwise.tables.workload import Workload

ONE_TREE = "one tree"
OPTIONS = 5  # for each plan
METHODS: tuple[Method, ...] = ("auto", "least-squares")


@dataclass(frozen=True, kw_only=True)
class TableOption:
    """One way to publish the tables at one loss, and its error at each."""

    unit: Unit
    loss: Fraction
    design: str
    adjustment: str
    errors: list[SimulatedError]
    spoiled: tuple[str, ...]
    """Totals whose error is 1.5 times that of least squares as planned, or more."""

    @property
    def overall(self) -> float:
        """The geometric mean over all tables of their errors: what options are ranked by."""
        return overall(self.errors)

    @property
    def price(self) -> str:
        """The loss in words."""
        return f"{SYMBOLS[self.unit]} = {written(self.loss)}"


def advise_tables(
    space: Workload,
    cells: IntArray,
    plans: Sequence[Plan],
    *,
    rng: np.random.Generator,
    repetitions: int,
    tell: Callable[[str], None] = lambda _: None,
) -> list[TableOption]:
    """For each plan, which differ in their loss, its options from best to worst.

    Measured as the planner finds best or evenly, with what cells share or by least squares alone,
    and as one tree of all levels.
    """
    found, seed = [], int(rng.integers(2**63))  # options differ by method more than by luck
    for plan in plans:
        options = _options(space, cells, plan, seed, repetitions, tell)
        found += sorted(options, key=lambda each: each.overall)
    return found


def _options(
    space: Workload,
    cells: IntArray,
    plan: Plan,
    seed: int,
    repetitions: int,
    tell: Callable[[str], None],
) -> Iterator[TableOption]:
    workload, planned = plan.workload(space), plan.settled(space)
    fitted = {e.table: e.fitted / NORMAL for e in table_accuracy(workload, planned.budget(space))}
    finest = {workload.name(m) for m in workload.margins if not _is_total(workload, m.levels)}

    def option(design: str, adjustment: str, errors: list[SimulatedError]) -> TableOption:
        spoiled = tuple(
            each.table
            for each in errors
            if each.table not in finest
            and each.rmse - SURE * each.uncertain > SPOILING * fitted[each.table]
        )
        loss = plan.epsilon if plan.rho is None else plan.rho
        return TableOption(
            unit=plan.unit,
            loss=cast(Fraction, loss),
            design=design,
            adjustment=adjustment,
            errors=errors,
            spoiled=spoiled,
        )

    for split in ("auto", "even"):
        chosen = replace(plan, split=split).settled(space)
        for adjustment in METHODS:
            tell(f"{split} split, {adjustment}")
            made = table_errors(
                workload,
                cells,
                chosen.budget(space),
                method=adjustment,
                repetitions=repetitions,
                rng=np.random.default_rng(seed),
            )
            yield option(f"{split} split", adjustment, made.errors)
    if not plan.exact and not plan.zeros:
        tell(ONE_TREE)
        yield option(ONE_TREE, "auto", _one_tree(workload, cells, plan, repetitions, seed))


def _is_total(workload: Workload, levels: tuple[int, ...]) -> bool:
    """Whether another published table has these counts as its sums."""
    return any(
        each.levels != levels and all(a >= b for a, b in zip(each.levels, levels, strict=True))
        for each in workload.margins
    )


def _one_tree(
    workload: Workload, cells: IntArray, plan: Plan, repetitions: int, seed: int
) -> list[SimulatedError]:
    """Errors of the same tables as sums of the cells of one tree, as it is released by default."""
    hierarchy, order = build(workload.frame(workload.finest).select(workload.by))
    alone = Plan(
        by=hierarchy.by,
        epsilon=plan.epsilon,
        rho=plan.rho,
        neighbours=plan.neighbours,
        rows=plan.rows,
    ).settled(hierarchy)
    rng = np.random.default_rng(seed)
    budget, true = alone.budget(hierarchy), hierarchy.sums(cells.reshape(-1)[order])

    def table() -> IntArray:
        drawn = simulate_measurements(hierarchy, true, budget, rng=rng)
        found = np.empty(workload.cells, np.int64)
        found[order] = simulated_adjustment(alone, rng=rng)([drawn])[-1]
        return found.reshape(workload.shape)

    return repeated(workload, cells, table, repetitions=repetitions, rounding=0.0).errors
