"""The release folder: writing it whole, reading it back, and checking that it is one."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from countwise.adjust.fitted_priors import Fitted, SharePrior, read_fitted
from countwise.arrays import BoolArray, IntArray, frozen
from countwise.errors import CountwiseError, ReleaseError
from countwise.noise.laws import LAWS
from countwise.noise.numbers import written
from countwise.noise.sensitivity import level_moves
from countwise.noise.zcdp import DELTA, epsilon_at
from countwise.progress import Tell, silent
from countwise.release.budget import Budget, LevelBudget
from countwise.release.certificate import certificate
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.folder import completed, whole
from countwise.release.noise_margins import noise_in_words
from countwise.release.plan import Plan, from_dict
from countwise.release.promise import make_promise
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.invariants import named
from countwise.tables.measurements import Measurements
from countwise.tables.order import as_published

FORMAT = 1
TABLES = ("counts.csv", "counts.parquet", "measurements.parquet")
MOST_CSV = 20_000_000
"""Counts up to which counts.csv is written unless the user says otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """A published table: counts that add up, the noisy counts behind them, and how it was made."""

    plan: Plan
    budget: Budget
    measurements: Measurements
    counts: tuple[IntArray, ...]
    tie_key: int | None
    method: str
    reason: str = ""
    """The adjustment used and, where the plan left the choice, why."""
    prior: Fitted | None = None
    ranges: Ranges | None = None
    """Beside every count; None in folders that have none."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree the counts stand on."""
        return self.measurements.hierarchy

    @cached_property
    def noise_within(self) -> list[str]:
        """What the noise of each level stays within in 95 of 100 cases."""
        return noise_in_words(self.budget, self.hierarchy)

    @property
    def ranges_in_brief(self) -> str:
        """How the ranges were found; nothing where there are none."""
        return "" if self.ranges is None else METHODS[self.ranges.exact]

    def table(self) -> pl.DataFrame:
        """One row a node of every level: its released count, and the range of the true one."""
        known = {} if self.ranges is None else {"low": self.ranges.low, "high": self.ranges.high}
        return stacked(self.hierarchy, count=self.counts, **known)

    def save(
        self,
        folder: str | Path,
        *,
        overwrite: bool = False,
        csv: bool | None = None,
        tell: Tell = silent,
        within: Path | None = None,
    ) -> None:
        """Write the release folder; it gets its name when it is complete and checked.

        Without a word on `csv`, counts.csv is written up to MOST_CSV counts. `within` is the
        unfinished folder of a run that has it already.
        """
        tables = TABLES if csv or (csv is None and self.hierarchy.nodes <= MOST_CSV) else TABLES[1:]
        name = Path(folder)
        begun = completed(within, name) if within else whole(name, overwrite=overwrite)
        with begun as partial:
            partial.mkdir()
            table = self.table()
            tell("writing counts.parquet")
            table.write_parquet(partial / "counts.parquet")
            if "counts.csv" in tables:
                tell("writing counts.csv")
                table.write_csv(partial / "counts.csv")
            del table
            tell("writing measurements.parquet")
            known = {} if self.budget.exact is None else {"exact": self.budget.exact}
            noisy = stacked(self.hierarchy, noisy=self.measurements.noisy, **known)
            if isinstance(self.prior, SharePrior):
                above = pl.Series("grade", [None], dtype=pl.Int64).new_from_index(
                    0, self.hierarchy.nodes - self.hierarchy.cells
                )
                noisy = noisy.with_columns(above.append(pl.Series(self.prior.grades)))
            noisy.write_parquet(partial / "measurements.parquet")
            del noisy
            tell("checking what was written")
            written_counts = pl.read_parquet(
                partial / "counts.parquet", columns=["count"], glob=False
            )
            check_counts(self.hierarchy, split_levels(self.hierarchy, written_counts["count"]))
            manifest = self.manifest() | {
                "checksums": {name: checksum(partial / name) for name in tables}
            }
            text = as_text(manifest)
            (partial / "release.json").write_text(text, encoding="utf-8")
            page = certificate(
                self.plan,
                self.budget,
                self.measurements,
                self.counts,
                noise=self.noise_within,
                method=self.method,
                reason=self.reason,
                ranges=self.ranges_in_brief,
                version=version("countwise"),
                format=str(FORMAT),
            )
            (partial / "certificate.html").write_text(page, encoding="utf-8")

    def _loss(self) -> dict[str, Any]:
        """The whole loss; one in ρ also as (ε, δ)."""
        loss: dict[str, Any] = {self.budget.unit: written(self.budget.loss)}
        if self.budget.unit == "rho":
            loss |= {"epsilon_at_delta": epsilon_at(self.budget.loss), "delta": written(DELTA)}
        return loss

    def manifest(self) -> dict[str, Any]:
        """All that anyone needs to compute with the release, as plain data."""
        key = None if self.tie_key is None else f"{self.tie_key:016x}"
        return {
            "format": FORMAT,
            "software": f"countwise {version('countwise')}",
            "by": list(self.hierarchy.by),
            "levels": [
                {
                    "level": each.level,
                    "nodes": each.nodes,
                    "law": each.law.name,
                    "scale": written(each.law.scale),
                    "sensitivity": each.sensitivity,
                    self.budget.unit: written(each.loss),
                    **({"exact": each.exact} if self.budget.invariants else {}),
                }
                for each in self.budget.levels
            ],
            "privacy": {
                **self._loss(),
                "sum": self.budget.sum_in_words(),
                "neighbours": self.plan.neighbours,
                "rows": self.plan.rows,
                **make_promise(self.plan.neighbours, self.budget).to_dict(),
            },
            "adjustment": {
                "method": self.method,
                **({"reason": self.reason} if self.reason else {}),
                "total": self.plan.total,
                "ties": self.plan.ties,
                "tie_key": key,
                **({} if self.prior is None else {"prior": self.prior.to_dict()}),
            },
            **({} if self.ranges is None else {"ranges": self.ranges.to_dict()}),
            "plan": self.plan.to_dict(),
        }


def as_text(manifest: dict[str, Any]) -> str:
    """A manifest as JSON, its lists of numbers on a line each."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return re.sub(r"\[[-+\d.e,\s]+\]", lambda found: " ".join(found[0].split()), text)


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


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


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
    for name, expected in manifest["checksums"].items():
        if not (folder / name).is_file():
            raise ReleaseError(f"{folder}: {name} is missing from the release.")
        if checksum(folder / name) != expected:
            raise ReleaseError(f"{folder / name} was changed after the release was made.")
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


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a release says about itself."""
    path = folder / "release.json"
    if folder.is_file():
        raise ReleaseError(f"{folder} is a file; a release is a folder with a release.json in it.")
    if not path.is_file():
        raise ReleaseError(f"{folder} is not a release: it has no release.json.")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ReleaseError(f"{path} is not readable as JSON.") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ReleaseError(f"{path} is not of release format {FORMAT}, the one this version reads.")
    for key in ("by", "levels", "privacy", "adjustment", "plan", "checksums"):
        if key not in manifest:
            raise ReleaseError(f"{path} has no {key!r}; a release of format {FORMAT} does.")
    return manifest


def read_levels(manifest: dict[str, Any]) -> tuple[LevelBudget, ...]:
    """The levels of a release, root first, with their noise."""
    privacy = manifest["privacy"]
    neighbours, rows = privacy["neighbours"], privacy["rows"]
    return tuple(
        _level_budget(each, level_moves(neighbours, rows=rows, nodes=each["nodes"]))
        for each in manifest["levels"]
    )


def _level_budget(entry: dict[str, Any], moves: tuple[int, ...]) -> LevelBudget:
    return LevelBudget(
        level=entry["level"],
        nodes=entry["nodes"],
        moves=moves,
        loss=Fraction(entry["epsilon"] if "epsilon" in entry else entry["rho"]),
        law=LAWS[entry["law"]](scale=Fraction(entry["scale"])),
        exact=entry.get("exact", 0),
    )
