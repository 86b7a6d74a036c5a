"""Tables that cross under a prior: every answer is a share of joint draws, with its error."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.box_names import NamedBox
from countwise.inference.box_statements import parse_statement
from countwise.inference.chain_draws import is_chain
from countwise.inference.crossed_draws import CrossedDraws, draw_crossed
from countwise.inference.crossed_posterior import (
    CrossedPosterior,
    SumPosterior,
    check_level,
    crossed_posterior,
)
from countwise.inference.statement_probabilities import Probability, estimate
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.summaries import highest_ranges
from countwise.tables.workload import Margin

MOST, FEWEST = 4_000, 400  # draws that answers are taken from
NUMBERS = 2 * 10**7  # counts of all of them, about
LEARNED, NESTED = "learned", "nested"
JOINT_PRIORS = (LEARNED, NESTED)


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnPosterior(CrossedPosterior):
    """Counts and sums with the means, deviations and ranges of joint draws."""

    drawn: CrossedDraws

    @property
    def diagnostics(self) -> str:
        """What the sampler says about itself."""
        return self.drawn.diagnostics

    @cached_property
    def _tables(self) -> dict[Margin, IntArray]:
        """The draws of published tables that were asked for."""
        return {}

    def _table(self, margin: Margin) -> IntArray:
        if margin not in self._tables:
            self._tables[margin] = self.drawn.margin(margin)
        return self._tables[margin]

    def ranges(self, margin: Margin, level: float = 0.95) -> tuple[IntArray, IntArray]:
        """The fewest most frequent counts that hold a share of the draws, of every node."""
        check_level(level)
        return draw_ranges(self._table(margin), level)

    def normals(self, margin: Margin) -> tuple[FloatArray, FloatArray]:
        """The mean and deviation of the draws of every node."""
        counts = self._table(margin)
        return counts.mean(axis=0), counts.std(axis=0)

    def probability(self, statement: str) -> Probability:
        """The share of draws in which a statement is true, with its standard error."""
        said = parse_statement(statement, self.workload)
        true = (self.drawn.values(said.sum) > said.cut) == said.above
        return estimate(true.reshape(-1), self.drawn.effective(true), prior=self.prior)

    def draws(self, count: int, **given: object) -> CrossedDraws:
        """The draws that the answers are taken from, or some of them; no more are made."""
        del given
        if not 1 <= count <= self.drawn.cells.shape[0] * self.drawn.cells.shape[1]:
            raise InputError(
                f"the answers were taken from {len(self.drawn):,} draws, and {count:,} are asked "
                "for. To fix, ask without a prior: infer(release).draws(…)."
            )
        return self.drawn.first(count)

    def _sum(self, named: NamedBox) -> SumPosterior:
        values = self.drawn.sums(named.box).reshape(-1, 1)

        def range_at(level: float) -> tuple[int, int]:
            low, high = highest_ranges(_frequencies(values), level)
            return int(low[0]), int(high[0])

        return SumPosterior(
            name=named.name,
            mean=float(values.mean()),
            sd=float(values.std()),
            prior=self.prior,
            twice=named.twice,
            range_at=range_at,
        )


def draw_ranges(counts: IntArray, level: float) -> tuple[IntArray, IntArray]:
    """The fewest most frequent counts that hold a share of draws, which are the first axis."""
    low, high = highest_ranges(_frequencies(counts.reshape(len(counts), -1)), level)
    return low.reshape(counts.shape[1:]), high.reshape(counts.shape[1:])


def _frequencies(columns: IntArray) -> Laws:
    """How often each count was drawn, of every column."""
    lows, highs = columns.min(axis=0), columns.max(axis=0)
    offsets = np.concatenate([[0], np.cumsum(highs - lows + 1)])
    places = (columns - lows + offsets[:-1]).reshape(-1)
    counts = np.bincount(places, minlength=int(offsets[-1]))
    return Laws(lows=lows, offsets=offsets, values=counts / len(columns))


def drawn_posterior(
    release: CrossedRelease,
    prior: str,
    *,
    rng: np.random.Generator | None,
    report: Tell = silent,
) -> DrawnPosterior:
    """What a release says under a prior: `learned`, or, of a chain of tables, `nested`."""
    free = crossed_posterior(release)
    if prior not in JOINT_PRIORS:
        raise InputError(
            f"tables that cross know the priors none, {LEARNED} and {NESTED}, not {prior!r}."
        )
    if prior == NESTED and not is_chain(free.workload, free.measurements):
        raise InputError(
            "the measured tables do not refine one another, and the prior nested divides counts "
            f"along one tree. To fix, take --prior {LEARNED}."
        )
    if rng is None:
        raise InputError(
            "a prior on tables that cross needs draws. To fix, give rng=numpy.random.default_rng()."
        )
    count = min(max(NUMBERS // free.workload.cells, FEWEST), MOST)
    drawn = draw_crossed(
        free.workload, free.measurements, count, exactly=prior == NESTED, rng=rng, report=report
    )
    return DrawnPosterior(
        workload=free.workload,
        measurements=free.measurements,
        released=free.released,
        route=drawn.route,
        prior=drawn.prior,
        drawn=drawn,
    )
