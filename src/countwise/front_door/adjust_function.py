"""Counts that were noised elsewhere made to add up, or the tables of a release made anew."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

import numpy as np
import polars as pl

from countwise.adjust.histogram import ESTIMATORS, SIGNED, FromCells
from countwise.arrays import IntArray
from countwise.choices import one_of
from countwise.errors import InputError, TableError
from countwise.front_door.output_files import write_frame
from countwise.front_door.words import PathLike, PlanWords, make_plan, names, spelled_out
from countwise.margins.whole import Method
from countwise.noise.count_noise import Unit, plainest
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import check_counts, stacked
from countwise.release.folder import refuse_existing
from countwise.release.plan import Plan
from countwise.release.run import adjusted_tables
from countwise.release.wanted import CROSSING
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named, refuse_contradictions
from countwise.tables.measurements import Measurements
from countwise.tables.noisy import read_noisy
from countwise.tables.workload import stacked_margins


@dataclass(frozen=True, kw_only=True, eq=False)
class AdjustedCounts:
    """Counts that add up, a row a node; the method that made them, and why it was taken."""

    table: pl.DataFrame
    nodes: int
    method: str
    reason: str
    tie_key: int | None
    """What ties were broken with, where the order is random."""
    crossed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As plain data, without the counts."""
        reason = {"reason": self.reason} if self.reason else {}
        if self.crossed:
            return {"counts": self.nodes, "method": self.method} | reason
        key = None if self.tie_key is None else f"{self.tie_key:016x}"
        return {"nodes": self.nodes, "method": self.method, "tie_key": key} | reason


@spelled_out
def adjust(
    table: PathLike,
    out: PathLike | None = None,
    *,
    plan: Plan | PathLike | None = None,
    noisy: str | Sequence[str] = ("noisy",),
    method: str | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
    **words: Unpack[PlanWords],
) -> AdjustedCounts:
    """Make noisy counts whole, non-negative and additive; a plan or its words declare their noise.

    The `table` is a file with one row a node, level columns empty below it, or the folder of a
    release of tables that cross. A `noisy` column `name@loss` has a loss of its own; several are
    noisy values of the same counts. With `out` the counts are written to a file too.
    """
    file = None if out is None else Path(out)
    if file is not None:
        refuse_existing(file, overwrite=overwrite)
    if Path(table).is_dir():
        made = _again(Path(table), method, tell)
    else:
        made = _anew(Path(table), plan, names(noisy) or ("noisy",), method, dict(words), tell)
    if file is not None:
        tell("writing")
        write_frame(made.table, file, overwrite=overwrite)
    return made


def _anew(
    table: Path,
    plan: Plan | PathLike | None,
    noisy: Sequence[str],
    method: str | None,
    words: dict[str, Any],
    tell: Tell,
) -> AdjustedCounts:
    """Counts of one tree that were noised elsewhere."""
    columns = [name.partition("@") for name in noisy]
    plans = _plans(plan, method, words, [loss for _, _, loss in columns])
    tie_key = secrets.randbits(64) if plans[0].ties == "random" else None
    tell("reading")
    hierarchy, values = read_noisy(table, by=plans[0].by, noisy=[name for name, *_ in columns])
    tell("making counts add up")
    measurements = [
        _declared(hierarchy, each, value) for each, value in zip(plans, values, strict=True)
    ]
    _refuse_disagreement(measurements, [name for name, *_ in columns])
    used, reason = method or "", ""
    if method == SIGNED:
        counts = FromCells(estimator=ESTIMATORS[SIGNED])(measurements)
    else:
        adjustment = plans[0].adjustment(tie_key=tie_key, rng=np.random.default_rng())
        made = adjustment.adjusted(measurements)
        counts, reason = made.counts, made.reason
        used = made.method
        check_counts(hierarchy, counts)
    return AdjustedCounts(
        table=stacked(hierarchy, count=counts),
        nodes=hierarchy.nodes,
        method=used,
        reason=reason,
        tie_key=tie_key,
    )


def _plans(
    plan: Plan | PathLike | None, method: str | None, words: dict[str, Any], losses: Sequence[str]
) -> list[Plan]:
    """The plan of each noisy column; without a plan, noise has the plainest law there is."""
    words |= {"adjust": None if method == SIGNED else method}
    unit: Unit = "epsilon" if words.get("rho") is None else "rho"
    if plan is None:
        words["split"] = words.get("split") or "even"
        words["mechanism"] = words.get("mechanism") or plainest(unit)
    return [make_plan(plan, words | {unit: loss or words.get(unit)}) for loss in losses]


def _again(folder: Path, method: str | None, tell: Tell) -> AdjustedCounts:
    """The noisy tables of a release folder, made to add up anew."""
    made = read_release(folder)
    if not isinstance(made, CrossedRelease):
        raise InputError(
            f"{folder} is the release of one tree. To fix, adjust its measurements.parquet, and "
            "declare the noise as release.json has it."
        )
    chosen = cast(Method, one_of(method or "auto", CROSSING, what="--method"))
    tell("making counts add up")
    again = adjusted_tables(made.workload, made.measurements, method=chosen)
    return AdjustedCounts(
        table=stacked_margins(made.workload, count=again.counts),
        nodes=made.size,
        method=again.method,
        reason=again.reason,
        tie_key=None,
        crossed=True,
    )


def _declared(hierarchy: Hierarchy, plan: Plan, values: tuple[IntArray, ...]) -> Measurements:
    """Noisy counts with the noise and the invariants that a plan declares."""
    budget = plan.budget(hierarchy)
    if budget.invariants is not None:
        values = budget.invariants.completed(hierarchy, values)
        refuse_contradictions(hierarchy, budget.invariants.exact, values)
    return Measurements(hierarchy=hierarchy, laws=budget.laws, noisy=values, exact=budget.exact)


def _refuse_disagreement(measurements: list[Measurements], columns: list[str]) -> None:
    """Exact counts are the same in every noisy column."""
    first = measurements[0]
    for name, each in zip(columns[1:], measurements[1:], strict=True):
        for level, exact in enumerate(first.exact or ()):
            off = exact & (each.noisy[level] != first.noisy[level])
            if off.any():
                node = named(first.hierarchy, level, int(np.argmax(off)))
                raise TableError(
                    f"{node} is declared exact, and columns {columns[0]!r} and {name!r} differ "
                    "there. To fix, correct one of them."
                )
