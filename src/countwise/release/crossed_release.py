"""A release of tables that cross: every published margin is a sum of the same whole cells."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.arrays import IntArray, frozen
from countwise.errors import CountwiseError, ReleaseError
from countwise.margins.measurement import Measurement
from countwise.release.budget import Budget
from countwise.release.certificate import MOST_NAMED
from countwise.release.count_ranges import Ranges
from countwise.release.document import Release
from countwise.release.document import read_release as read_tree_release
from countwise.release.manifest import (
    contents,
    is_tree,
    read_manifest,
    read_noise,
    refuse_changed,
)
from countwise.release.measure import exact_counts
from countwise.release.noise_margins import noise_in_words
from countwise.release.plan import from_dict
from countwise.release.publication import HeldPublication
from countwise.release.table_accuracy import TableAccuracy, table_accuracy
from countwise.release.wanted import known_counts
from countwise.tables.crossed_invariants import named_counts
from countwise.tables.crosstab import TOTAL
from countwise.tables.drawing import draw_margin
from countwise.tables.notation import Names, margin_of
from countwise.tables.order import as_published
from countwise.tables.variable import Variable, make_variable
from countwise.tables.workload import Margin, Workload, stacked_margins


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CrossedRelease(HeldPublication):
    """Published tables of variables that cross, and the noisy margins behind them."""

    workload: Workload
    measurements: tuple[Measurement, ...]

    @property
    def size(self) -> int:
        """Number of released counts."""
        return sum(map(self.workload.size, self.workload.margins))

    @cached_property
    def accuracy(self) -> list[TableAccuracy]:
        """What the errors of each published table stay within in 95 of 100 cases."""
        return table_accuracy(self.workload, self.budget)

    @property
    def finest(self) -> list[Margin]:
        """The published tables that are not totals of another one."""
        margins = self.workload.margins
        return [m for m in margins if not any(n != m and n.covers(m) for n in margins)]

    def drawn(self, margin: Margin, *, total: str = TOTAL) -> pl.DataFrame:
        """One table with totals; of several variables, the categories of the last are columns."""
        counts = self.counts[self.workload.margins.index(margin)]
        if not any(margin.levels):
            return pl.DataFrame({total: counts.reshape(-1)})
        return draw_margin(self.workload, margin, counts).frame(total=total)

    def table(self) -> pl.DataFrame:
        """One row a count of every published table, with the range of the true one."""
        known = {} if self.ranges is None else {"low": self.ranges.low, "high": self.ranges.high}
        return stacked_margins(self.workload, count=self.counts, **known)

    def noisy_table(self) -> pl.DataFrame:
        """One row a count of every measured table, as it was drawn."""
        measured = replace(self.workload, margins=tuple(m.margin for m in self.measurements))
        noisy = [each.noisy for each in self.measurements]
        if self.budget.exact is None:
            return stacked_margins(measured, noisy=noisy)
        return stacked_margins(measured, noisy=noisy, exact=self.budget.exact)

    def check_counts(
        self, counts: Sequence[IntArray], *, error: type[CountwiseError] = CountwiseError
    ) -> None:
        """Refuse counts unless they are whole, none negative, and all tables agree."""
        check_margins(self.workload, counts, error=error)

    def split(self, column: pl.Series) -> tuple[IntArray, ...]:
        """A column of the counts of all tables, one after another, cut into these."""
        return split_margins(self.workload, column)

    def contents(self) -> dict[str, Any]:
        """The variables, the published tables, and the noise of those that were measured."""
        workload = self.workload
        variables = [(each.name, each.levels, each.sizes[1:]) for each in workload.variables]
        margins = [(workload.name(each), workload.size(each)) for each in workload.margins]
        return contents(variables, margins, self.budget)

    @cached_property
    def noise_within(self) -> list[str]:
        """What the noise of each measured table stays within in 95 of 100 cases."""
        return noise_in_words(self.budget, None)

    def exact_facts(self) -> list[dict[str, object]]:
        """For each measured table with exact counts, how many and the names of the first."""
        return exact_tables(self.budget, self.workload)

    def accuracy_facts(self) -> list[tuple[str, ...]]:
        """The accuracy of each published table in words."""
        return [each.in_words() for each in self.accuracy]

    def moved(self) -> list[float | None]:
        """How far adjustment moved each measured table that is published, on average."""
        sums = dict(zip(self.workload.margins, self.counts, strict=True))
        return [
            float(np.abs(sums[each.margin] - each.noisy).mean()) if each.margin in sums else None
            for each in self.measurements
        ]


def exact_tables(budget: Budget, workload: Workload) -> list[dict[str, object]]:
    """For each measured table with exact counts, how many and the names of the first."""
    if budget.invariants is None:
        return []
    found: list[dict[str, object]] = []
    for each, mask, zeros in zip(
        budget.levels, budget.invariants.exact, budget.invariants.zeros, strict=True
    ):
        if each.exact:
            margin = margin_of(each.level, workload.names)
            found.append(
                {
                    "level": each.level,
                    "count": each.exact,
                    "zeros": int(zeros.sum()),
                    "names": named_counts(workload, margin, mask, MOST_NAMED),
                    "more": max(each.exact - MOST_NAMED, 0),
                }
            )
    return found


def split_margins(workload: Workload, column: pl.Series) -> tuple[IntArray, ...]:
    """A column of the counts of all margins, cut into one table each."""
    bounds = np.cumsum([workload.size(each) for each in workload.margins])[:-1]
    parts = np.split(column.to_numpy().copy(), bounds)
    pairs = zip(workload.margins, parts, strict=True)
    return tuple(frozen(part.reshape(workload.shape_of(margin))) for margin, part in pairs)


def check_margins(
    workload: Workload,
    counts: Sequence[IntArray],
    *,
    error: type[CountwiseError] = CountwiseError,
) -> None:
    """Released tables are whole, none negative, and any two have the same sums.

    A flaw in counts just made is a fault of ours; in a folder given to us, pass `error`.
    """
    tables = dict(zip(workload.margins, counts, strict=True))
    for margin, values in tables.items():
        if values.dtype != np.int64 or (values < 0).any():
            raise error(
                f"table {workload.name(margin)!r} does not hold whole numbers of 0 or more."
            )
    for one, other in _compared(workload):
        shared = Margin(tuple(map(min, one.levels, other.levels)))
        left, right = (workload.sums(tables[each], shared, of=each) for each in (one, other))
        if not np.array_equal(left, right):
            raise error(
                f"tables {workload.name(one)!r} and {workload.name(other)!r} do not have the same "
                f"sums by {workload.name(shared)}."
            )


def _compared(workload: Workload) -> Iterator[tuple[Margin, Margin]]:
    """Pairs that, if each has the same sums, leave no two tables that differ.

    Each margin that another covers with the smallest of those, and all others with each other.
    """
    finest = []
    for margin in workload.margins:
        covering = [m for m in workload.margins if m != margin and m.covers(margin)]
        if covering:
            yield margin, min(covering, key=workload.size)
        else:
            finest.append(margin)
    yield from combinations(finest, 2)


def read_release(folder: str | Path) -> Release | CrossedRelease:
    """The release in a folder, of a tree or of tables that cross, refused unless it is whole."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    if is_tree(manifest):
        return read_tree_release(folder)
    refuse_changed(folder, manifest)
    plan = from_dict(manifest["plan"], where=f"{folder}/release.json")
    table = pl.read_parquet(folder / "counts.parquet", glob=False)
    noisy = pl.read_parquet(folder / "measurements.parquet", glob=False)
    cells = Workload(variables=tuple(_read_variables(plan.variables, table)))
    workload = plan.workload(cells)
    if len(table) != sum(map(workload.size, workload.margins)):
        raise ReleaseError(f"{folder}: counts.parquet does not have all counts of its tables.")
    counts = split_margins(workload, table["count"])
    check_margins(workload, counts, error=ReleaseError)
    levels = read_noise(manifest)
    budget = Budget(
        levels=levels,
        unit=plan.unit,
        invariants=known_counts(
            plan, workload, [margin_of(each.level, workload.names) for each in levels]
        ),
    )
    return CrossedRelease(
        plan=plan,
        budget=budget,
        workload=workload,
        measurements=_read_measurements(workload, budget, noisy["noisy"]),
        counts=counts,
        method=manifest["adjustment"]["method"],
        reason=manifest["adjustment"].get("reason", ""),
        ranges=_read_ranges(workload, table),
        made=str(manifest.get("made", "")),
    )


def _read_variables(names: Names, table: pl.DataFrame) -> Iterator[Variable]:
    """The variables, from the rows of tables that have their finest levels."""
    for name, levels in names.items():
        rows = table.filter(pl.col(levels[-1]).is_not_null())
        yield make_variable(name, as_published(rows.select(levels).unique()))[0]


def _read_measurements(
    workload: Workload, budget: Budget, noisy: pl.Series
) -> tuple[Measurement, ...]:
    margins = tuple(margin_of(each.level, workload.names) for each in budget.levels)
    tables = split_margins(replace(workload, margins=margins), noisy)
    return tuple(
        Measurement(margin=margin, law=law, noisy=table, exact=exact_counts(budget, i, table.shape))
        for i, (margin, law, table) in enumerate(zip(margins, budget.laws, tables, strict=True))
    )


def _read_ranges(workload: Workload, table: pl.DataFrame) -> Ranges | None:
    if not {"low", "high"} <= set(table.columns):
        return None
    low, high = (split_margins(workload, table[name]) for name in ("low", "high"))
    return Ranges(low=low, high=high, exact=False)
