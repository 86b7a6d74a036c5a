"""What every release is, and how its folder is written: whole, checked, and then named."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from countwise.arrays import IntArray
from countwise.errors import CountwiseError
from countwise.ledger.prices import Charge
from countwise.noise.numbers import written
from countwise.noise.zcdp import DELTA, epsilon_at
from countwise.pages.imprint import Imprint
from countwise.pages.notebook import Framed, Picture
from countwise.pages.page import render
from countwise.pages.text_blocks import TextBlock
from countwise.progress import Tell, silent
from countwise.release.arrow_tables import write_tables
from countwise.release.budget import Budget
from countwise.release.certificate import certificate
from countwise.release.count_ranges import METHODS, Ranges
from countwise.release.folder import whole
from countwise.release.manifest import FORMAT, as_text, checksum
from countwise.release.plan import Plan
from countwise.release.promise import make_promise

COUNTS, NOISY, CSV = "counts.parquet", "measurements.parquet", "counts.csv"
MOST_CSV = 20_000_000
"""Counts up to which counts.csv is written unless the user says otherwise."""
MOST_SHOWN = 4_000_000
"""Counts up to which there is a page of them."""

Files = dict[str, list[str]]
"""For each of the two tables the files it is in, in the order of the rows."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Publication(ABC):
    """Counts that add up, the noisy counts behind them, and how they were made."""

    HINT: ClassVar[str] = ""

    plan: Plan
    budget: Budget
    method: str
    reason: str = ""
    """The adjustment used and, where the plan left the choice, why."""
    ranges: Ranges | None = None
    """Beside every count; None in folders that have none."""
    made: str = ""
    """The day it was made, as 2026-11-19; nothing in folders of earlier versions."""
    checksums: dict[str, str] = field(default_factory=dict)
    """Of the files that it was written to, if it was just published."""
    resumed: bool = False
    """Whether it went on from a run that was stopped."""
    charge: Charge | None = None
    """What a ledger was charged for it, where that was done with it."""

    def __repr__(self) -> str:
        about = f"{self.plan.title!r}, " if self.plan.title else ""
        return (
            f"{type(self).__name__}({about}{self.size:,} counts, {self.budget.in_words()}, "
            f"adjusted by {self.method}{self.HINT})"
        )

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of released counts."""

    @property
    @abstractmethod
    def noise_within(self) -> list[str]:
        """What the noise of each level or table stays within in 95 of 100 cases."""

    @abstractmethod
    def contents(self) -> dict[str, Any]:
        """Of the manifest, what the files hold."""

    @abstractmethod
    def write_tables(self, folder: Path, tell: Tell) -> Files:
        """Write the released and the noisy counts."""

    @abstractmethod
    def check_written(self, folder: Path, files: Files) -> None:
        """Refuse what was written unless, read back, it is whole and adds up."""

    @abstractmethod
    def moved(self) -> Sequence[float | None]:
        """How far adjustment moved the counts of each level or measured table, on average."""

    def exact_facts(self) -> list[dict[str, object]]:
        """For each level or table with exact counts, how many and the names of the first."""
        return []

    def accuracy_facts(self) -> list[tuple[str, ...]]:
        """Of tables that cross, the accuracy of each in words."""
        return []

    def adjustment_facts(self) -> dict[str, Any]:
        """Of the manifest, what else there is to say of the adjustment."""
        return {}

    def page(self) -> str:
        """The page that shows the counts with their ranges; nothing where they are elsewhere."""
        return ""

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

    def write(
        self, folder: Path, *, csv: bool | None = None, tell: Tell = silent
    ) -> dict[str, str]:
        """Write a new folder, which is checked; the checksums of its files.

        Without a word on `csv`, counts.csv is written up to MOST_CSV counts.
        """
        folder.mkdir()
        files = self.write_tables(folder, tell)
        tell("checking what was written")
        self.check_written(folder, files)
        names = [name for each in files.values() for name in each]
        if csv or (csv is None and self.size <= MOST_CSV):
            tell(f"writing {CSV}")
            rows = pl.scan_parquet([folder / name for name in files[COUNTS]], glob=False)
            rows.sink_csv(folder / CSV)
            names.append(CSV)
        checksums = {name: checksum(folder / name) for name in names}
        text = as_text(self.manifest() | {"checksums": checksums})
        (folder / "release.json").write_text(text, encoding="utf-8")
        (folder / "certificate.html").write_text(self.certificate(), encoding="utf-8")
        tell("drawing release.html")
        if page := self.page():
            (folder / "release.html").write_text(page, encoding="utf-8")
        return checksums

    def manifest(self) -> dict[str, Any]:
        """All that anyone needs to compute with the release, as plain data."""
        return {
            "format": FORMAT,
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
            **({"checksums": self.checksums} if self.checksums else {}),
        }

    def certificate_blocks(self) -> list[TextBlock]:
        """What the release promises, part by part."""
        return certificate(
            self.plan,
            self.budget,
            size=self.size,
            noise=self.noise_within,
            moved=self.moved(),
            exact=self.exact_facts(),
            tables=self.accuracy_facts(),
            method=self.method,
            reason=self.reason,
            ranges=self.ranges_in_brief,
            version=version("countwise"),
            format=str(FORMAT),
        )

    def certificate(self) -> str:
        """The page that says it."""
        return render(
            "blocks.html",
            title="Certificate of a release of counts",
            blocks=self.certificate_blocks(),
            imprint=self.imprint,
        )

    def _loss(self) -> dict[str, Any]:
        """The whole loss; one in ρ also as (ε, δ)."""
        loss: dict[str, Any] = {self.budget.unit: written(self.budget.loss)}
        if self.budget.unit == "rho":
            loss |= {"epsilon_at_delta": epsilon_at(self.budget.loss), "delta": written(DELTA)}
        return loss


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HeldPublication(Publication, Framed):
    """A release whose counts are in memory."""

    HINT: ClassVar[str] = "; see .table(), .plot(), .save()"

    counts: tuple[IntArray, ...]
    """The released counts, level by level or table by table."""

    def to_polars(self) -> pl.DataFrame:
        """The released counts, as `table` has them."""
        return self.table()

    def plot(self, name: str = "") -> Picture:
        """The counts of a level or table with their ranges; without a name of the first."""
        from countwise.release.counts_page import counts_picture  # it knows what is released

        return counts_picture(self, name)

    def page(self) -> str:
        """The page that shows the counts with their ranges, up to MOST_SHOWN of them."""
        from countwise.release.counts_page import release_page  # it knows what is released

        return release_page(self) if self.size <= MOST_SHOWN else ""

    @abstractmethod
    def table(self) -> pl.DataFrame:
        """One row a released count, with the range of the true one."""

    @abstractmethod
    def noisy_table(self) -> pl.DataFrame:
        """One row a noisy count, as it was drawn."""

    @abstractmethod
    def check_counts(
        self, counts: Sequence[IntArray], *, error: type[CountwiseError] = CountwiseError
    ) -> None:
        """Refuse counts unless they are whole, none negative, and add up.

        A flaw in counts just made is a fault of ours; in a folder given to us, pass `error`.
        """

    @abstractmethod
    def split(self, column: pl.Series) -> tuple[IntArray, ...]:
        """A column of all counts, in the order of the rows, cut into levels or tables."""

    def write_tables(self, folder: Path, tell: Tell) -> Files:
        """One file a table."""
        for name, make in ((COUNTS, self.table), (NOISY, self.noisy_table)):
            tell(f"writing {name}")
            write_tables(folder / name, [make().to_arrow()])
        return {COUNTS: [COUNTS], NOISY: [NOISY]}

    def check_written(self, folder: Path, files: Files) -> None:
        """All counts are read back."""
        rows = pl.read_parquet(
            [folder / name for name in files[COUNTS]], columns=["count"], glob=False
        )
        self.check_counts(self.split(rows["count"]))

    def save(
        self,
        folder: str | Path,
        *,
        overwrite: bool = False,
        csv: bool | None = None,
        tell: Tell = silent,
    ) -> None:
        """Write the release folder; it gets its name when it is complete and checked.

        Without a word on `csv`, counts.csv is written up to MOST_CSV counts.
        """
        with whole(Path(folder), overwrite=overwrite) as partial:
            self.write(partial, csv=csv, tell=tell)
