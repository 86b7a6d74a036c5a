"""The release folder: writing it whole, reading it back, and checking that it is one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from countwise.adjust.fitted_priors import Fitted, SharePrior, read_fitted
from countwise.arrays import BoolArray, IntArray, frozen
from countwise.errors import CountwiseError, ReleaseError
from countwise.noise.count_noise import law_named
from countwise.noise.sensitivity import level_moves
from countwise.release.budget import Budget, LevelBudget
from countwise.release.certificate import certificate, exact_nodes
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.noise_margins import noise_in_words
from countwise.release.plan import from_dict
from countwise.release.publication import Publication, checksum, noise_facts
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.invariants import named
from countwise.tables.measurements import Measurements
from countwise.tables.order import as_published

ALWAYS = ("privacy", "adjustment", "plan", "checksums")
CONTENTS = {1: ("by", "levels", *ALWAYS), 2: ("variables", "margins", "measured", *ALWAYS)}
"""Of each release format, what its manifest has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Release(Publication):
    """A published table: counts that add up, the noisy counts behind them, and how it was made."""

    FORMAT: ClassVar[int] = 1

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

    def refuse_flaws(self, counts: pl.Series) -> None:
        """Refuse a column of all counts, root first, unless it is whole and adds up."""
        check_counts(self.hierarchy, split_levels(self.hierarchy, counts))

    def contents(self) -> dict[str, Any]:
        """The levels, with their noise."""
        return {"by": list(self.hierarchy.by), "levels": noise_facts(self.budget)}

    def adjustment_facts(self) -> dict[str, Any]:
        """How the total was found and ties were broken, and the prior that was learned."""
        key = None if self.tie_key is None else f"{self.tie_key:016x}"
        return {
            "total": self.plan.total,
            "ties": self.plan.ties,
            "tie_key": key,
            **({} if self.prior is None else {"prior": self.prior.to_dict()}),
        }

    def certificate(self) -> str:
        """The page that says what the release promises."""
        pairs = zip(self.counts, self.measurements.noisy, strict=True)
        return certificate(
            self.plan,
            self.budget,
            size=self.size,
            exact=exact_nodes(self.budget, self.hierarchy),
            moved=[float(np.abs(count - noisy).mean()) for count, noisy in pairs],
            noise=self.noise_within,
            method=self.method,
            reason=self.reason,
            ranges=self.ranges_in_brief,
            imprint=self.imprint,
            version=version("countwise"),
            format=str(self.FORMAT),
        )


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
    error: type[CountwiseError] = CountwiseError,
) -> None:
    """Released counts are whole, none negative, and children add up to their parent.

    A flaw in counts just made is a fault of ours; in a folder given to us, pass `error`.
    """
    for level, values in enumerate(counts):
        if values.dtype != np.int64 or len(values) != hierarchy.sizes[level]:
            raise error(f"level {hierarchy.levels[level]!r} does not hold one whole number a node.")
        if (values < 0).any():
            node = named(hierarchy, level, int(np.argmax(values < 0)))
            raise error(f"the count of {node} is negative; released counts never are.")
    for level, offsets in enumerate(hierarchy.offsets):
        off = np.add.reduceat(counts[level + 1], offsets[:-1]) != counts[level]
        if off.any():
            node = named(hierarchy, level, int(np.argmax(off)))
            raise error(f"the counts below {node} do not add up to its own count.")


def read_release(folder: str | Path) -> Release:
    """The release in a folder, refused unless it is whole and its counts add up."""
    folder = Path(folder)
    manifest = read_manifest(folder)
    refuse_changed(folder, manifest)
    by = manifest["by"]
    table = pl.read_parquet(folder / "counts.parquet", glob=False)
    measured = pl.read_parquet(folder / "measurements.parquet", glob=False)
    cells = table.filter(pl.col("level") == by[-1]).select(by)
    hierarchy, _ = build(as_published(cells))
    counts = split_levels(hierarchy, table["count"])
    check_counts(hierarchy, counts, error=ReleaseError)
    plan = from_dict(manifest["plan"], where=f"{folder}/release.json")
    budget = Budget(
        levels=read_levels(manifest),
        unit="rho" if "rho" in manifest["privacy"] else "epsilon",
        joint=plan.mechanism == "joint",
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


def refuse_changed(folder: Path, manifest: dict[str, Any]) -> None:
    """Refuse a folder whose files are not those that were released."""
    for name, expected in manifest["checksums"].items():
        if not (folder / name).is_file():
            raise ReleaseError(f"{folder}: {name} is missing from the release.")
        if checksum(folder / name) != expected:
            raise ReleaseError(f"{folder / name} was changed after the release was made.")


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


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a release of one tree says about itself."""
    manifest = read_any_manifest(folder)
    if manifest["format"] != Release.FORMAT:
        raise ReleaseError(
            f"{folder} has tables that cross several variables, and this takes the release of one "
            "tree of levels."
        )
    return manifest


def read_any_manifest(folder: Path) -> dict[str, Any]:
    """What a release says about itself."""
    path = folder / "release.json"
    if folder.is_file():
        inside = folder.parent if (folder.parent / "release.json").is_file() else None
        fix = f" To fix, give the folder {inside}." if inside else ""
        raise ReleaseError(
            f"{folder} is a file; a release is a folder with a release.json in it.{fix}"
        )
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release: it has no release.json.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ReleaseError(f"{path} is not readable as JSON.") from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found not in CONTENTS:
        known = " or ".join(map(str, CONTENTS))
        raise ReleaseError(f"{path} is not of release format {known}, which this version reads.")
    for key in CONTENTS[found]:
        if key not in manifest:
            raise ReleaseError(f"{path} has no {key!r}; a release of format {found} does.")
    return dict(manifest)


def read_levels(manifest: dict[str, Any]) -> tuple[LevelBudget, ...]:
    """The levels of a release, root first, with their noise."""
    return read_noise(manifest["levels"], manifest["privacy"])


def read_noise(
    entries: Sequence[dict[str, Any]],
    privacy: dict[str, Any],
    *,
    what: str = "level",
    many: str = "nodes",
) -> tuple[LevelBudget, ...]:
    """The noise of everything that was measured, as a manifest has it."""
    neighbours, rows = privacy["neighbours"], privacy["rows"]
    return tuple(
        LevelBudget(
            level=entry[what],
            nodes=entry[many],
            moves=level_moves(neighbours, rows=rows, nodes=entry[many]),
            loss=Fraction(entry["epsilon"] if "epsilon" in entry else entry["rho"]),
            law=law_named(entry["law"])(scale=Fraction(entry["scale"])),
            exact=entry.get("exact", 0),
        )
        for entry in entries
    )
