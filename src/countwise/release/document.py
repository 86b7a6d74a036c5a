"""The release folder: writing it whole, reading it back, and checking that it is one."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.adjust.fitted_priors import Fitted, SharePrior, read_fitted
from countwise.arrays import BoolArray, IntArray, frozen
from countwise.errors import CountwiseError, ReleaseError
from countwise.release.budget import Budget
from countwise.release.certificate import exact_nodes
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.manifest import (
    levels_of,
    read_noise,
    read_tree_manifest,
    refuse_changed,
    tree_contents,
)
from countwise.release.noise_margins import noise_in_words
from countwise.release.plan import Plan, from_dict
from countwise.release.publication import HeldPublication
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.invariants import named
from countwise.tables.measurements import Measurements
from countwise.tables.order import as_published


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(HeldPublication):
    """A published table: counts that add up, the noisy counts behind them, and how it was made."""

    measurements: Measurements
    tie_key: int | None
    prior: Fitted | None = None

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree the counts stand on."""
        return self.measurements.hierarchy

    @property
    def size(self) -> int:
        """Number of released counts."""
        return self.hierarchy.nodes

    @cached_property
    def noise_within(self) -> list[str]:
        """What the noise of each level stays within in 95 of 100 cases."""
        return noise_in_words(self.budget, self.hierarchy)

    def table(self) -> pl.DataFrame:
        """One row a node of every level: its released count, and the range of the true one."""
        known = {} if self.ranges is None else {"low": self.ranges.low, "high": self.ranges.high}
        return stacked(self.hierarchy, count=self.counts, **known)

    def noisy_table(self) -> pl.DataFrame:
        """One row a node of every level: its noisy count."""
        known = {} if self.budget.exact is None else {"exact": self.budget.exact}
        noisy = stacked(self.hierarchy, noisy=self.measurements.noisy, **known)
        if not isinstance(self.prior, SharePrior):
            return noisy
        above = pl.Series("grade", [None], dtype=pl.Int64).new_from_index(
            0, self.hierarchy.nodes - self.hierarchy.cells
        )
        return noisy.with_columns(above.append(pl.Series(self.prior.grades)))

    def check_counts(
        self, counts: Sequence[IntArray], *, error: type[CountwiseError] = CountwiseError
    ) -> None:
        """Refuse counts unless they are whole, none negative, and add up."""
        check_counts(self.hierarchy, counts, error=error)

    def split(self, column: pl.Series) -> tuple[IntArray, ...]:
        """A column of all nodes, root first, cut into levels."""
        return split_levels(self.hierarchy, column)

    def contents(self) -> dict[str, Any]:
        """The levels, with their noise."""
        return tree_contents(self.hierarchy.by, self.budget)

    def adjustment_facts(self) -> dict[str, Any]:
        """How the total was found and ties were broken, and the prior that was learned."""
        learned = {} if self.prior is None else {"prior": self.prior.to_dict()}
        return tie_facts(self.plan, self.tie_key) | learned

    def exact_facts(self) -> list[dict[str, object]]:
        """For each level with exact counts, how many and the names of the first."""
        return exact_nodes(self.budget, self.hierarchy)

    def moved(self) -> list[float]:
        """How far adjustment moved the counts of each level, on average."""
        pairs = zip(self.counts, self.measurements.noisy, strict=True)
        return [float(np.abs(count - noisy).mean()) for count, noisy in pairs]


def tie_facts(plan: Plan, tie_key: int | None) -> dict[str, Any]:
    """Of a tree's manifest, how the total was found and ties were broken."""
    key = None if tie_key is None else f"{tie_key:016x}"
    return {"total": plan.total, "ties": plan.ties, "tie_key": key}


def stacked(hierarchy: Hierarchy, **values: Sequence[IntArray | BoolArray]) -> pl.DataFrame:
    """The nodes of all levels, root first, with one column for each name."""
    return pl.concat(
        hierarchy.frame(level, **{name: each[level] for name, each in values.items()})
        for level in range(len(hierarchy.sizes))
    )


def split_levels(hierarchy: Hierarchy, column: pl.Series) -> tuple[IntArray, ...]:
    """A column of all nodes, root first, cut into levels."""
    bounds = np.cumsum(hierarchy.sizes)[:-1]
    return tuple(frozen(part) for part in np.split(column.to_numpy().copy(), bounds))


def check_counts(
    hierarchy: Hierarchy,
    counts: Sequence[IntArray],
    *,
    depth: int = 0,
    error: type[CountwiseError] = CountwiseError,
) -> None:
    """Released counts are whole, none negative, and children add up to their parent.

    Of a piece, those from the level `depth` on. A flaw in counts just made is a fault of ours; in
    a folder given to us, pass `error`.
    """
    for level, values in enumerate(counts, start=depth):
        if values.dtype != np.int64 or len(values) != hierarchy.sizes[level]:
            raise error(f"level {hierarchy.levels[level]!r} does not hold one whole number a node.")
        if (values < 0).any():
            node = named(hierarchy, level, int(np.argmax(values < 0)))
            raise error(f"the count of {node} is negative; released counts never are.")
    for level, (above, below) in enumerate(pairwise(counts), start=depth):
        off = np.add.reduceat(below, hierarchy.offsets[level][:-1]) != above
        if off.any():
            node = named(hierarchy, level, int(np.argmax(off)))
            raise error(f"the counts below {node} do not add up to its own count.")


def read_release(folder: str | Path) -> Release:
    """The release in a folder, refused unless it is whole and its counts add up."""
    folder = Path(folder)
    manifest = read_tree_manifest(folder)
    refuse_changed(folder, manifest)
    by = list(levels_of(manifest))
    table = pl.read_parquet(folder / "counts.parquet", glob=False)
    measured = pl.read_parquet(folder / "measurements.parquet", glob=False)
    cells = table.filter(pl.col("level") == by[-1]).select(by)
    hierarchy, _ = build(as_published(cells))
    counts = split_levels(hierarchy, table["count"])
    check_counts(hierarchy, counts, error=ReleaseError)
    plan = from_dict(manifest["plan"], where=f"{folder}/release.json")
    budget = Budget(
        levels=read_noise(manifest),
        unit=plan.unit,
        joint=plan.joint,
        invariants=plan.invariants(hierarchy),
    )
    key = manifest["adjustment"]["tie_key"]
    return Release(
        plan=plan,
        budget=budget,
        measurements=Measurements(
            hierarchy=hierarchy,
            laws=budget.laws,
            noisy=split_levels(hierarchy, measured["noisy"]),
            exact=budget.exact,
        ),
        counts=counts,
        tie_key=None if key is None else int(key, 16),
        method=manifest["adjustment"]["method"],
        reason=manifest["adjustment"].get("reason", ""),
        ranges=_read_ranges(manifest, hierarchy, table),
        prior=_read_prior(manifest, hierarchy, measured, where=f"{folder}/release.json"),
        made=str(manifest.get("made", "")),
    )


def _read_ranges(
    manifest: dict[str, Any], hierarchy: Hierarchy, table: pl.DataFrame
) -> Ranges | None:
    """The ranges beside the counts, of which folders of earlier versions have none."""
    if not {"low", "high"} <= set(table.columns):
        return None
    low, high = (split_levels(hierarchy, table[name]) for name in ("low", "high"))
    return Ranges(low=low, high=high, exact=manifest["ranges"]["method"] == METHODS[True])


def _read_prior(
    manifest: dict[str, Any], hierarchy: Hierarchy, measured: pl.DataFrame, *, where: str
) -> Fitted | None:
    """The prior that the release publishes, if it has one."""
    data = manifest["adjustment"].get("prior")
    if data is None:
        return None
    grades = None
    if "grade" in measured.columns:
        grades = measured["grade"].tail(hierarchy.cells).to_numpy().astype(np.int64)
    return read_fitted(data, hierarchy, grades, where=where)
