"""How far tables that cross are from the truth, margin by margin, and what their ranges hold.

    python benchmarks/crossed.py --repetitions 10 --out docs/crossed-accuracy.md

`--only` takes the tables whose name has a text, `--minutes` ends each table at each loss after so
long; `--json` keeps the figures, and `--page one.json two.json` makes the page of figures found
before, releases of a table at the same loss taken together. The larger table is released a third as
often. Methods that start from noisy margins are fed the same ones, drawn anew in every release; the
trees draw noise of their own at the same loss. `--former` is the interpreter of an environment with
an earlier version, whose default release of one tree is one more column, and `--mbi` that
of one with mbi 2.
"""

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, permutations
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import polars as pl

import countwise as cw
from accuracy_tables import Table, counted
from countwise.margins.ranges import fitted
from countwise.margins.shares import design
from countwise.release.crossed_release import CrossedRelease
from countwise.release.measure import measure
from countwise.release.plan import Plan
from countwise.tables.confidential import Confidential
from countwise.tables.workload import Margin, Workload
from crossed_page import as_page
from other_programs import Former, former, mbi_cells
from provenance import in_words
from top_down import top_down
from untuned_tables import INCOME, LONG, PLACES, TRACTS, income

Found = dict[Margin, np.ndarray]
LITTLE = Fraction(1, 10_000)  # of the loss: a level that is best not measured
PLACE = "place in the table"
FEWEST = 2  # releases tell a standard error
SIZES = {"0": (0, 0), "1–9": (1, 9), "10–99": (10, 99), "100+": (100, 10**18)}


@dataclass(frozen=True, kw_only=True)
class Crossed:
    """A table to release as tables that cross, and as one tree of all variables."""

    name: str
    make: Callable[[], Table]
    variables: tuple[tuple[str, ...], ...]
    """The levels of each, the one that the others cross first."""
    tables: str
    losses: tuple[tuple[str, str], ...]
    """Each a unit and a loss in it."""
    needs: Path | None = None
    rarely: int = 1
    """One release for so many of the others'."""
    level_by_level: bool = False
    """Whether the noisy margins are also solved level by level, as TopDown does."""

    @cached_property
    def tree(self) -> Table:
        """Every combination of labels with its count."""
        return self.make()

    @cached_property
    def truth(self) -> Confidential[Workload]:
        """The same counts, of variables that cross."""
        tree = self.tree.hierarchy
        rows = tree.frame(len(tree.by), count=self.tree.cells).drop("level")
        found = cw.read_counts(
            rows, by=self.variables[0], across=self.across, count="count", cells_are_public=True
        )
        space = found.space
        labels = rows.drop("count").rows()
        if space.frame(space.finest).drop("level").rows() != labels:
            raise ValueError(f"{self.name}: the tree and the crossed cells differ in order.")
        return found

    @property
    def across(self) -> dict[str, tuple[str, ...]]:
        """The variables after the first."""
        return {levels[-1]: levels for levels in self.variables[1:]}

    def plan(self, unit: str, loss: str) -> Plan:
        """All else as it comes."""
        given: dict[str, Any] = {unit: loss}
        plan = Plan(**given, by=self.variables[0], across=self.across, tables=self.tables)
        return plan.settled(self.truth.space)

    def tree_plan(self, unit: str, loss: str, split: str) -> Plan:
        """One tree of all levels."""
        given: dict[str, Any] = {unit: loss}
        return Plan(**given, split=split).settled(self.tree.hierarchy)

    def best_tree(self, unit: str, loss: str) -> tuple[tuple[str, ...], dict[str, Fraction]]:
        """The order of all levels, and the share of each, that are best for what is published.

        By the geometric mean of the mean variances after least squares, over every order that
        keeps the levels of a variable in theirs.
        """
        plan = self.plan(unit, loss)
        workload = plan.workload(self.truth.space)
        axes = {name: i for i, names in enumerate(self.variables) for name in names}
        found: list[tuple[float, tuple[str, ...], dict[str, Fraction]]] = []
        for order in permutations(axes):
            if any(sorted(names, key=order.index) != list(names) for names in self.variables):
                continue
            levels = [0] * len(self.variables)
            chain = {Margin(tuple(levels)): "total"}
            for name in order:
                levels[axes[name]] += 1
                chain[Margin(tuple(levels))] = name
            reach = {each: plan.reach(workload.size(each)) for each in chain}
            weights = dict.fromkeys(workload.margins, 1.0)
            made = design(workload, weights, unit=plan.unit, loss=Fraction(loss), reach=reach)
            score = float(np.log(list(made.mean_variances.values())).mean())
            shares = {name: made.shares.get(each, LITTLE) for each, name in chain.items()}
            found.append((score, order, shares))
        _, order, split = min(found, key=lambda each: each[0])
        return order, split

    def reordered(self, order: tuple[str, ...]) -> "Ordered":
        """The same counts as a tree in another order of levels."""
        hierarchy = self.tree.hierarchy
        by = list(hierarchy.by)
        rows = hierarchy.frame(len(by), count=self.tree.cells).drop("level")
        rows = rows.with_columns(pl.col(by).cast(pl.String)).with_row_index(PLACE)
        found = cw.read_counts(rows.drop(PLACE), by=order, count="count", cells_are_public=True)
        cells = found.space.frame(len(order)).select(pl.col(order).cast(pl.String))
        places = cells.join(rows.select(PLACE, *order), on=order, how="left", maintain_order="left")
        return Ordered(table=found, places=places[PLACE].to_numpy())


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """A tree of another order, and where each of its cells is in the order of the table."""

    table: Confidential
    places: np.ndarray

    def release(self, plan: Plan, rng: np.random.Generator) -> np.ndarray:
        """The released cells, in the order of the table."""
        noisy = measure(self.table, plan.budget(self.table.space))
        method = plan.adjustment(tie_key=int(rng.integers(2**62)), rng=rng)
        cells = np.zeros(len(self.places), np.int64)
        cells[self.places] = method.adjusted([noisy]).counts[-1]
        return cells


PAIRS = ", ".join("*".join(pair) for pair in combinations(LONG, 2))

TABLES = (
    Crossed(
        name="census income by five variables",
        make=lambda: income(LONG, {}),
        variables=tuple((name,) for name in LONG),
        tables=f"{PAIRS}, {':'.join(LONG)}",
        losses=(
            ("epsilon", "0.5"),
            ("epsilon", "1"),
            ("epsilon", "2"),
            ("epsilon", "4"),
            ("rho", "1/2"),
        ),
        needs=INCOME,
    ),
    Crossed(
        name="North Carolina tracts by race and Hispanic origin",
        make=lambda: counted(TRACTS, PLACES, {}),
        variables=(("county", "tract"), ("race",), ("hispanic",)),
        tables="(county + tract)*race*hispanic",
        losses=tuple(("rho", loss) for loss in ("0.05", "1/2", "2")),
        needs=TRACTS,
        rarely=3,
        level_by_level=True,
    ),
    Crossed(
        name="census income, pairs of five variables alone",
        make=lambda: income(LONG, {}),
        variables=tuple((name,) for name in LONG),
        tables=PAIRS,
        losses=(("epsilon", "1"), ("rho", "1/2")),
        needs=INCOME,
    ),
)


def kind(workload: Workload, margin: Margin) -> str:
    """The total, the cells, or how many variables a margin crosses."""
    crossing = sum(level > 0 for level in margin.levels)
    if margin == workload.finest:
        return "cells"
    return f"{crossing}-way" if crossing else "total"


def of_cells(workload: Workload, cells: np.ndarray) -> Found:
    """Every published margin as sums of cells."""
    grid = cells.reshape(workload.shape)
    return {each: workload.sums(grid, each) for each in workload.margins}


@dataclass(frozen=True, kw_only=True)
class Others:
    """Interpreters of environments with other programs."""

    former: Path | None = None
    mbi: Path | None = None


def from_margins(
    table: Crossed, release: CrossedRelease, others: Others
) -> Iterator[tuple[str, Found]]:
    """What the noisy margins of a release become, method by method."""
    workload = release.workload
    yield "default", dict(zip(workload.margins, release.counts, strict=True))
    signed = fitted(workload, release.measurements).cells
    yield "signed least squares", of_cells(workload, signed)
    whole = np.rint(np.maximum(signed, 0)).astype(np.int64)
    yield "clipped and rounded", of_cells(workload, whole)
    if table.level_by_level:
        yield "level by level", of_cells(workload, top_down(workload, release.measurements))
    if others.mbi is not None and all(len(each.levels) == 1 for each in workload.variables):
        cells = mbi_cells(others.mbi, workload, release.measurements)
        yield "mbi, fractional", of_cells(workload, cells)


def from_tree(table: Crossed, workload: Workload, plan: Plan, rng: np.random.Generator) -> Found:
    """The margins of one tree's released cells."""
    hierarchy, cells = table.tree.hierarchy, table.tree.cells
    noisy = measure(Confidential(hierarchy, cells), plan.budget(hierarchy))
    method = plan.adjustment(tie_key=int(rng.integers(2**62)), rng=rng)
    return of_cells(workload, method([noisy])[-1])


def held(release: CrossedRelease, true: Found) -> tuple[list[list[float]], list[list[float]]]:
    """Cases, those whose range holds the truth, and widths: by margin, and by true size."""
    ranges, parts = release.ranges, []
    assert ranges is not None
    for margin, low, high in zip(release.workload.margins, ranges.low, ranges.high, strict=True):
        t = true[margin]
        good = (low <= t) & (t <= high)
        parts.append(np.stack([np.ones(t.size), good.ravel(), (high - low).ravel()]))
    rows, sizes = np.concatenate(parts, axis=1), np.concatenate([true[m].ravel() for m in true])
    by_size = [rows[:, (a <= sizes) & (sizes <= b)].sum(axis=1) for a, b in SIZES.values()]
    return [each.sum(axis=1).tolist() for each in parts], [each.tolist() for each in by_size]


def figures(
    table: Crossed,
    unit: str,
    loss: str,
    *,
    repetitions: int,
    minutes: float = float("inf"),
    others: Others = Others(),
) -> dict[str, Any]:
    """Mean squared errors of every margin, release by release, and what ranges held."""
    with ExitStack() as stack:
        earlier = None
        if others.former is not None:
            earlier = stack.enter_context(former(others.former, table.tree, unit, loss))
        return _figures(table, unit, loss, repetitions, minutes, others, earlier)


def _figures(
    table: Crossed,
    unit: str,
    loss: str,
    repetitions: int,
    minutes: float,
    others: Others,
    earlier: Former | None,
) -> dict[str, Any]:
    rng, plan = np.random.default_rng(), table.plan(unit, loss)
    workload = plan.workload(table.truth.space)
    true = of_cells(workload, table.truth.reveal())
    trees = {f"tree, {each} split": table.tree_plan(unit, loss, each) for each in ("auto", "even")}
    order, split = table.best_tree(unit, loss)
    ordered, given = table.reordered(order), {unit: loss, "split": split}
    best = Plan(**given).settled(ordered.table.space)
    squared: dict[str, list[list[float]]] = {}
    by_margin, by_size, taken = [], [], dict[str, int]()
    started = monotonic()
    while len(by_size) < repetitions and (
        len(by_size) < FEWEST or monotonic() - started < 60 * minutes
    ):
        release = cw.release(table.truth, plan)
        made = dict(from_margins(table, release, others))
        for name, how in trees.items():
            made[name] = from_tree(table, workload, how, rng)
        made["tree, best order and split"] = of_cells(workload, ordered.release(best, rng))
        if earlier is not None:
            made["former default"] = of_cells(workload, earlier.cells())
        for name, counts in made.items():
            off = [float(((counts[each] - true[each]) ** 2).mean()) for each in workload.margins]
            squared.setdefault(name, []).append(off)
        margins, sizes = held(release, true)
        by_margin.append(margins)
        by_size.append(sizes)
        taken[release.method] = taken.get(release.method, 0) + 1
    return {
        "table": table.name,
        "unit": unit,
        "loss": loss,
        "releases": len(by_size),
        "seconds": monotonic() - started,
        "measured": [each.level for each in plan.budget(table.truth.space).levels],
        "mechanisms": {name: how.mechanism for name, how in trees.items()},
        "best_tree": {name: float(share) for name, share in split.items()},
        "margins": [workload.name(each) for each in workload.margins],
        "kinds": [kind(workload, each) for each in workload.margins],
        "counts": [workload.size(each) for each in workload.margins],
        "sizes": list(SIZES),
        "taken": taken,
        "squared": squared,
        "by_margin": by_margin,
        "by_size": by_size,
    }


def pooled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Releases of the same table at the same loss taken together."""
    together: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in rows:
        first = together.setdefault((row["table"], row["unit"], row["loss"]), row)
        if first is row:
            continue
        if first["measured"] != row["measured"]:
            raise ValueError(f"{row['table']}: runs of different plans are not taken together.")
        first["releases"] += row["releases"]
        for name, times in row["taken"].items():
            first["taken"][name] = first["taken"].get(name, 0) + times
        for name, errors in row["squared"].items():
            first["squared"][name] += errors
        for part in ("by_margin", "by_size"):
            first[part] += row[part]
        for what in ("asked", "provenance"):
            first[what] = list(dict.fromkeys([*first[what], *row[what]]))
    return list(together.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--only", default="", help="tables whose name has this")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--former", type=Path, help="interpreter with an earlier countwise")
    parser.add_argument("--mbi", type=Path, help="interpreter with mbi")
    parser.add_argument("--loss", default="", help="losses written like this")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--page", type=Path, nargs="+", help="make the page of these figures only")
    parser.add_argument("--out", type=Path, help="write the page here")
    options = parser.parse_args()
    found = [row for path in options.page or () for row in json.loads(path.read_text())]
    asked = f"--only {options.only} " if options.only else ""
    asked += f"--repetitions {options.repetitions}"
    if isfinite(options.minutes):
        asked += f" --minutes {options.minutes:g}"
    others = Others(former=options.former, mbi=options.mbi)
    made = {"asked": [asked], "provenance": [in_words()]}
    for table in () if options.page else TABLES:
        if options.only not in table.name:
            continue
        if table.needs is not None and not table.needs.is_file():
            print(f"{table.name}: left out, there is no {table.needs}", flush=True)
            continue
        times = max(options.repetitions // table.rarely, min(options.repetitions, FEWEST))
        for unit, loss in table.losses:
            if options.loss not in ("", loss):
                continue
            row = figures(
                table, unit, loss, repetitions=times, minutes=options.minutes, others=others
            )
            found.append(row | made)
            print(f"{table.name}, {unit} = {loss}: {row['seconds']:.0f} s", flush=True)
            if options.json:
                options.json.write_text(json.dumps(found) + "\n")
    if options.out:
        options.out.write_text(as_page(pooled(found)))


if __name__ == "__main__":
    main()
