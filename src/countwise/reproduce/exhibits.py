"""What a report is made of: papers, their exhibits, pictures as data, and slips of the pen."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from countwise.pages.densities import Density
from countwise.pages.lines import Line
from countwise.reproduce.verdicts import APART, VERDICTS, PrintedNumber


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much work a reproduction does; the printed numbers are the same."""

    name: str
    runs: int  # simulated releases of each scenario
    sweeps: int  # of each Gibbs sampler
    triplets: int  # random probabilities of Balmat's figure 2
    timed_sweeps: int  # on which times of 5,000 sweeps are measured
    vectors: int  # random counts at each M and ε of Balmat's figure 3
    trials: int  # simulated histograms of Kerrigan's section 3.3
    grid: int  # largest count of his wide search
    draws: int  # noisy histograms of Coleman's figure


QUICK = Effort(
    name="quick", runs=10_000, sweeps=4_000, triplets=1_000, timed_sweeps=500, vectors=2,
    trials=500_000, grid=100, draws=500,
)  # fmt: skip
FULL = Effort(
    name="full", runs=100_000, sweeps=40_000, triplets=10_000, timed_sweeps=5_000, vectors=50,
    trials=10_000_000, grid=1000, draws=500,
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Lines on common axes."""

    title: str
    x_axis: str
    y_axis: str
    lines: tuple[Line, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, kw_only=True)
class Bars:
    """Heights over whole numbers, one of them marked."""

    title: str
    axis: str
    low: int
    heights: tuple[float, ...]
    marked: int | None = None


@dataclass(frozen=True, kw_only=True)
class Share:
    """The density of a share."""

    title: str
    axis: str
    curve: Density


Picture = Curves | Bars | Share


@dataclass(frozen=True, kw_only=True)
class Findings:
    """What computing an exhibit gave."""

    numbers: Sequence[PrintedNumber]
    pictures: Sequence[Picture] = ()
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class Exhibit:
    """A table, a figure or a passage of a paper, and the function that computes ours."""

    key: str
    title: str
    source: str
    how: str
    compute: Callable[[Effort, np.random.Generator], Findings]


@dataclass(frozen=True, kw_only=True)
class Slip:
    """Something a paper says that is not so, and what is right; no number of it is compared."""

    where: str
    says: str
    right: str


@dataclass(frozen=True, kw_only=True)
class Paper:
    """A paper with all its exhibits."""

    key: str
    authors: str
    year: int
    title: str
    exhibits: tuple[Exhibit, ...]
    slips: tuple[Slip, ...] = ()

    @property
    def name(self) -> str:
        """As it is cited."""
        return f"{self.authors} ({self.year})"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """An exhibit with its findings."""

    paper: Paper
    exhibit: Exhibit
    findings: Findings

    @property
    def verdicts(self) -> dict[str, int]:
        """How many numbers have each verdict."""
        return tally(self.findings.numbers)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures, for machines."""
        return {
            "paper": self.paper.key,
            "exhibit": self.exhibit.key,
            "title": self.exhibit.title,
            "source": self.exhibit.source,
            "how": self.exhibit.how,
            "remark": self.findings.remark,
            "verdicts": self.verdicts,
            "numbers": [number.to_dict() for number in self.findings.numbers],
        }


def tally(numbers: Sequence[PrintedNumber]) -> dict[str, int]:
    """Numbers by verdict, every verdict named; those that are listed apart by that."""
    found = Counter(APART if number.uncounted else number.verdict for number in numbers)
    return {verdict: found[verdict] for verdict in (*VERDICTS, APART)}
