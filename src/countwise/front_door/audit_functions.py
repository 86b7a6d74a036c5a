"""Checks of the noise, and of whole releases, on the user's own machine."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

from countwise.choices import one_of
from countwise.errors import PlanError
from countwise.front_door.words import (
    PathLike,
    TreeWords,
    make_plan,
    spelled_out,
    with_zeros_of,
)
from countwise.noise.audit import SCALES, AuditResult, audit
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.laws import IntegerLaw
from countwise.noise.numbers import written
from countwise.progress import Tell, counted, silent
from countwise.release.blackbox import CONFIDENCE, RUNS, TOLD, ProvenLoss, prove_loss
from countwise.release.measure import SAMPLERS
from countwise.release.neighbours import Pair, given_pair, widest_pair
from countwise.release.plan import Plan
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain, read_public_counts

LAWS: dict[str, type[IntegerLaw]] = {each.law.name: each.law for each in MECHANISMS.values()}
NOISE_DRAWS = 200_000
"""Draws at each scale: enough to refuse 0.9 and 1.1 of it with certainty."""


def audit_noise(
    law: str = "all", *, noise: str = "exact", draws: int = NOISE_DRAWS, tell: Tell = silent
) -> list[AuditResult]:
    """Test that the noise drawn here has the law it should have, scale by scale."""
    one_of(law, ("all", *LAWS), what="law")
    one_of(noise, SAMPLERS, what="noise")
    kinds = tuple(LAWS.values()) if law == "all" else (LAWS[law],)
    verdicts, tell = [], counted(tell, len(kinds) * len(SCALES))
    for verdict in audit(kinds, sampler=SAMPLERS[noise], draws=draws):
        verdicts.append(verdict)
        tell(f"{verdict.law.name} at scale {verdict.law.scale}")
    return verdicts


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseAudit:
    """The loss that releases of a plan prove, beside the loss it states."""

    plan: Plan
    found: ProvenLoss
    adjusted: bool

    @property
    def broken(self) -> bool:
        """Whether more is proved than was stated."""
        return self.found.broken

    def to_dict(self) -> dict[str, Any]:
        """What was tried and found."""
        found = self.found
        return {
            "plan": self.plan.to_dict(),
            "judged_by": "adjusted counts" if self.adjusted else "noisy counts",
            "person": found.pair.what,
            "changed_counts": _changed(found.pair),
            "unit": found.unit,
            "stated": written(found.pair.stated.amount),
            "proved": found.proved,
            "confidence": found.confidence,
            "event_hits": list(found.hits),
            "event_runs": found.runs,
            "above_stated": found.broken,
        }


def _changed(pair: Pair) -> dict[str, int]:
    levels = zip(pair.hierarchy.levels, pair.changes(), strict=True)
    return {level: int((change != 0).sum()) for level, change in levels}


@spelled_out
def audit_release(
    cells: PathLike,
    plan: Plan | PathLike | None = None,
    *,
    table: PathLike | None = None,
    other: PathLike | None = None,
    count: str = "count",
    adjusted: bool = False,
    runs: int = RUNS,
    confidence: float = CONFIDENCE,
    no_totals: bool = False,
    tell: Tell = silent,
    **words: Unpack[TreeWords],
) -> ReleaseAudit:
    """Release two tables that differ in one person, again and again, and prove a loss from it.

    Reads no confidential count and spends nothing. The tables are made here, or public: `table`
    and, with one person more or less, `other`. They are judged by their noisy counts, or by the
    `adjusted` ones.
    """
    cells = Path(cells)
    asked = with_zeros_of(cells, make_plan(plan, words))
    layout = Layout(no_totals=no_totals)
    hierarchy = read_domain(cells, by=asked.by, layout=layout)
    chosen = asked.settled(hierarchy)
    budget = chosen.budget(hierarchy)
    if (table is None) != (other is None):
        raise PlanError("--table and --other go together: give both tables, or neither.")
    if table is None or other is None:
        pair = widest_pair(hierarchy, chosen, budget)
    else:
        given = [
            read_public_counts(Path(path), by=chosen.by, count=count, domain=cells, loader=layout)[
                1
            ]
            for path in (table, other)
        ]
        pair = given_pair(hierarchy, chosen, budget, (given[0], given[1]))
    found = prove_loss(
        chosen,
        budget,
        pair,
        runs=runs,
        confidence=confidence,
        adjusted=adjusted,
        tell=counted(tell, 2 * TOLD),
    )
    return ReleaseAudit(plan=chosen, found=found, adjusted=adjusted)
