"""Computing all exhibits, or some, and what comes of it."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from zlib import crc32

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.progress import Tell, silent
from countwise.reproduce.exhibits import Compared, Effort, Exhibit, Paper, tally
from countwise.reproduce.papers import PAPERS

FORMAT = 1
COLUMNS = (
    "paper", "exhibit", "row", "column", "printed", "ours", "low", "high", "verdict", "note",
    "counted",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """Every exhibit that was computed, with the effort and the seed it took."""

    compared: tuple[Compared, ...]
    effort: Effort
    seed: int
    seconds: float

    @property
    def verdicts(self) -> dict[str, int]:
        """How many numbers have each verdict."""
        return tally([number for each in self.compared for number in each.findings.numbers])

    @property
    def holds(self) -> bool:
        """Whether every number is reproduced or corrected, or misses for a reason known before."""
        return not any(
            number.verdict == "not reproduced" and not number.elsewhere
            for each in self.compared
            for number in each.findings.numbers
        )

    @property
    def papers(self) -> list[Paper]:
        """The papers that have exhibits here, in order."""
        return list({each.paper.key: each.paper for each in self.compared}.values())

    def to_dict(self) -> dict[str, Any]:
        """Everything but the pictures, for machines."""
        return {
            "format": FORMAT,
            "effort": self.effort.name,
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "verdicts": self.verdicts,
            "exhibits": [each.to_dict() for each in self.compared],
            "slips": [
                {"paper": paper.key, "where": slip.where, "says": slip.says, "right": slip.right}
                for paper in self.papers
                for slip in paper.slips
            ],
        }

    def to_csv(self) -> str:
        """One line a number."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for each in self.compared:
            names = {"paper": each.paper.key, "exhibit": each.exhibit.key}
            writer.writerows(names | number.to_dict() for number in each.findings.numbers)
        return out.getvalue()


def select(only: Sequence[str]) -> list[tuple[Paper, Exhibit]]:
    """The exhibits named: a paper (`wang2021`) or one exhibit of it (`wang2021/table-3`)."""
    chosen: list[tuple[Paper, Exhibit]] = []
    for name in only or tuple(PAPERS):
        key, _, part = name.partition("/")
        paper = PAPERS[one_of(key, tuple(PAPERS), what="paper")]
        if part:
            one_of(part, tuple(exhibit.key for exhibit in paper.exhibits), what=f"exhibit of {key}")
        chosen += [(paper, exhibit) for exhibit in paper.exhibits if part in ("", exhibit.key)]
    if len({(paper.key, each.key) for paper, each in chosen}) < len(chosen):
        raise InputError("an exhibit is named twice. To fix, name each paper or exhibit once.")
    return chosen


def reproduce(
    chosen: Sequence[tuple[Paper, Exhibit]], effort: Effort, *, seed: int, tell: Tell = silent
) -> Reproduction:
    """Compute the exhibits. Each has a generator of its own, so that a selection changes none."""
    start = perf_counter()
    found = []
    for paper, exhibit in chosen:
        tell(f"{paper.name}: {exhibit.title}")
        rng = np.random.default_rng([seed, crc32(f"{paper.key}/{exhibit.key}".encode())])
        findings = exhibit.compute(effort, rng)
        found.append(Compared(paper=paper, exhibit=exhibit, findings=findings))
    return Reproduction(
        compared=tuple(found), effort=effort, seed=seed, seconds=perf_counter() - start
    )
