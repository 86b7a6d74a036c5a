"""What every release is, and how its folder is written: whole, checked, and then named."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from countwise.arrays import IntArray
from countwise.ledger.prices import Charge
from countwise.noise.numbers import written
from countwise.noise.zcdp import DELTA, epsilon_at
from countwise.pages.imprint import Imprint
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.folder import completed, whole
from countwise.release.plan import Plan
from countwise.release.promise import make_promise

TABLES = ("counts.csv", "counts.parquet", "measurements.parquet")
MOST_CSV = 20_000_000
"""Counts up to which counts.csv is written unless the user says otherwise."""
MOST_SHOWN = 4_000_000
"""Counts up to which there is a page of them."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Publication(ABC):
    """Counts that add up, the noisy counts behind them, and how they were made."""

    FORMAT: ClassVar[int]

    plan: Plan
    budget: Budget
    counts: tuple[IntArray, ...]
    """The released counts, level by level or table by table."""
    method: str
    reason: str = ""
    """The adjustment used and, where the plan left the choice, why."""
    ranges: Ranges | None = None
    """Beside every count; None in folders that have none."""
    charge: Charge | None = None
    """What a ledger was charged for it, where that was done with it."""
    made: str = ""
    """The day it was made, as 2026-11-19; nothing in folders of earlier versions."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of released counts."""

    @abstractmethod
    def table(self) -> pl.DataFrame:
        """One row a released count, with the range of the true one."""

    @abstractmethod
    def noisy_table(self) -> pl.DataFrame:
        """One row a noisy count, as it was drawn."""

    @abstractmethod
    def refuse_flaws(self, counts: pl.Series) -> None:
        """Refuse a column of all counts, read back, unless it is whole and adds up."""

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Of the manifest, what the files hold."""

    @abstractmethod
    def certificate(self) -> str:
        """The page that says what the release promises."""

    def page(self) -> str:
        """The page that shows the counts with their ranges."""
        from countwise.release.counts_page import release_page  # it knows what is released

        return release_page(self)

    @property
    def imprint(self) -> Imprint:
        """Who publishes it, as its plan says, and when."""
        plan = self.plan
        return Imprint(
            title=plan.title, producer=plan.producer, contact=plan.contact, date=self.made
        )

    @property
    def ranges_in_brief(self) -> str:
        """How the ranges were found; nothing where there are none."""
        return "" if self.ranges is None else METHODS[self.ranges.exact]

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
        tables = TABLES if csv or (csv is None and self.size <= MOST_CSV) else TABLES[1:]
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
            self.noisy_table().write_parquet(partial / "measurements.parquet")
            tell("checking what was written")
            counts = pl.read_parquet(partial / "counts.parquet", columns=["count"], glob=False)
            self.refuse_flaws(counts["count"])
            manifest = self.manifest() | {
                "checksums": {name: checksum(partial / name) for name in tables}
            }
            text = as_text(manifest)
            (partial / "release.json").write_text(text, encoding="utf-8")
            (partial / "certificate.html").write_text(self.certificate(), encoding="utf-8")
            if self.size <= MOST_SHOWN:
                tell("drawing release.html")
                (partial / "release.html").write_text(self.page(), encoding="utf-8")

    def manifest(self) -> dict[str, Any]:
        """All that anyone needs to compute with the release, as plain data."""
        return {
            "format": self.FORMAT,
            "software": f"countwise {version('countwise')}",
            **({"made": self.made} if self.made else {}),
            **self.contents(),
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
                **self.adjustment_facts(),
            },
            **({} if self.ranges is None else {"ranges": self.ranges.to_dict()}),
            "plan": self.plan.to_dict(),
        }

    def adjustment_facts(self) -> dict[str, Any]:
        """Of the manifest, what else there is to say of the adjustment."""
        return {}

    def _loss(self) -> dict[str, Any]:
        """The whole loss; one in ρ also as (ε, δ)."""
        loss: dict[str, Any] = {self.budget.unit: written(self.budget.loss)}
        if self.budget.unit == "rho":
            loss |= {"epsilon_at_delta": epsilon_at(self.budget.loss), "delta": written(DELTA)}
        return loss


def noise_facts(
    budget: Budget, *, what: str = "level", many: str = "nodes"
) -> list[dict[str, Any]]:
    """Of the manifest, the noise of everything that was measured."""
    return [
        {
            what: each.level,
            many: each.nodes,
            "law": each.law.name,
            "scale": written(each.law.scale),
            "sensitivity": each.sensitivity,
            budget.unit: written(each.loss),
            **({"exact": each.exact} if budget.invariants else {}),
        }
        for each in budget.levels
    ]


def as_text(manifest: dict[str, Any]) -> str:
    """A manifest as JSON, its lists of numbers on a line each."""
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    return re.sub(r"\[[-+\d.e,\s]+\]", lambda found: " ".join(found[0].split()), text)


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
