"""countwise adjust: counts that were noised elsewhere made to add up."""

import secrets
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import polars as pl
import typer

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.adjust.histogram import ESTIMATORS, SIGNED, FromCells
from countwise.arrays import IntArray
from countwise.choices import one_of
from countwise.cli import options
from countwise.cli.console import out, print_json, progress
from countwise.errors import InputError, TableError
from countwise.margins.whole import Method
from countwise.noise.count_noise import Unit, plainest
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import check_counts, stacked
from countwise.release.folder import refuse_existing, whole
from countwise.release.plan import Plan
from countwise.release.run import adjusted_tables
from countwise.release.wanted import CROSSING
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import named, refuse_contradictions
from countwise.tables.measurements import Measurements
from countwise.tables.noisy import read_noisy
from countwise.tables.workload import stacked_margins

EXAMPLE = (
    "Example: countwise adjust noisy.csv --by region,county --noisy n --epsilon 1 --out counts.csv"
)


def adjust(
    table: Annotated[
        Path,
        typer.Argument(
            help="Noisy counts, one row a node, level columns empty below the node; or a release "
            "folder of tables that cross."
        ),
    ],
    file: Annotated[Path, typer.Option("--out", help="CSV or Parquet file to write.")],
    by: options.By = None,
    noisy: Annotated[
        list[str] | None,
        typer.Option(
            help="Noisy column, or column@loss if its loss differs from the given one. Repeat for "
            "several noisy values of the same counts."
        ),
    ] = None,
    epsilon: options.Epsilon = None,
    rho: options.Rho = None,
    split: options.Split = None,
    neighbours: options.Neighbours = None,
    rows: options.Rows = None,
    mechanism: options.Mechanism = None,
    method: Annotated[
        str | None,
        typer.Option(help=f"Adjustment: {', '.join(ADJUSTMENTS)}, or {SIGNED} (keeps signs)."),
    ] = None,
    pool: options.Pool = None,
    total: options.Total = None,
    ties: options.Ties = None,
    exact: options.Exact = None,
    zeros: options.Zeros = None,
    plan_file: options.PlanFile = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Make noisy counts whole, non-negative and additive; the flags declare their noise."""
    flags = locals() | {"adjust": None if method == SIGNED else method}
    refuse_existing(file, overwrite=overwrite)
    if table.is_dir():
        _adjust_again(table, file, method, overwrite=overwrite, json=json)
        return
    columns = [name.partition("@") for name in noisy or ["noisy"]]
    unit: Unit = "epsilon" if rho is None else "rho"
    loss = epsilon if rho is None else rho
    # Noise that was drawn elsewhere has the law that is said, or the plainest.
    if plan_file is None:
        plain = plainest(unit)
        flags |= {"split": split or "even", "mechanism": mechanism or plain}
    plans = [options.make_plan(plan_file, flags | {unit: own or loss}) for _, _, own in columns]
    used, reason = method, ""
    tie_key = secrets.randbits(64) if plans[0].ties == "random" else None
    with progress(3) as tell:
        tell("reading")
        hierarchy, values = read_noisy(table, by=plans[0].by, noisy=[name for name, *_ in columns])
        tell("making counts add up")
        measurements = [
            _declared(hierarchy, plan, value) for plan, value in zip(plans, values, strict=True)
        ]
        _refuse_disagreement(measurements, [name for name, *_ in columns])
        if method == SIGNED:
            counts = FromCells(estimator=ESTIMATORS[SIGNED])(measurements)
        else:
            adjustment = plans[0].adjustment(tie_key=tie_key, rng=np.random.default_rng())
            made = adjustment.adjusted(measurements)
            counts, reason = made.counts, made.reason
            used = made.method
            check_counts(hierarchy, counts)
        tell("writing")
        frame = stacked(hierarchy, count=counts)
        with whole(file, overwrite=overwrite) as partial:
            _write(frame, file, partial)
    key = None if tie_key is None else f"{tie_key:016x}"
    if json:
        data = {"file": str(file), "nodes": hierarchy.nodes, "method": used, "tie_key": key}
        print_json(data | ({"reason": reason} if reason else {}))
        return
    out.print(f"Adjusted counts of {hierarchy.nodes:,} nodes written to {file}.")
    if reason:
        out.print(f"Adjustment: {used}; {reason}.")
    if key is not None and used == "mode":
        out.print(f"Ties were broken in the random order of key {key}.")


def _adjust_again(
    folder: Path, file: Path, method: str | None, *, overwrite: bool, json: bool
) -> None:
    """The noisy tables of a release folder, made to add up anew."""
    made = read_release(folder)
    if not isinstance(made, CrossedRelease):
        raise InputError(
            f"{folder} is the release of one tree. To fix, adjust its measurements.parquet, and "
            "declare the noise as release.json has it."
        )
    chosen = cast(Method, one_of(method or "auto", CROSSING, what="--method"))
    with progress(2) as tell:
        tell("making counts add up")
        again = adjusted_tables(made.workload, made.measurements, method=chosen)
        tell("writing")
        with whole(file, overwrite=overwrite) as partial:
            _write(stacked_margins(made.workload, count=again.counts), file, partial)
    if json:
        data = {"file": str(file), "counts": made.size, "method": again.method}
        print_json(data | ({"reason": again.reason} if again.reason else {}))
        return
    out.print(f"Adjusted counts of {made.size:,} nodes written to {file}.")
    if again.reason:
        out.print(f"Adjustment: {again.method}; {again.reason}.")


def _write(frame: pl.DataFrame, file: Path, partial: Path) -> None:
    if file.suffix.lower() == ".parquet":
        frame.write_parquet(partial)
    else:
        frame.write_csv(partial)


def _declared(hierarchy: Hierarchy, plan: Plan, values: tuple[IntArray, ...]) -> Measurements:
    """Noisy counts with the noise and the invariants that the flags declare."""
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
