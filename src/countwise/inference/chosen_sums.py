"""Sums of published counts that someone picks: as released, and what the true one can be."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from countwise.errors import InputError
from countwise.inference.box_names import box_of
from countwise.inference.crossed_posterior import CrossedPosterior, crossed_posterior
from countwise.inference.posterior import Posterior
from countwise.inference.routes import infer
from countwise.margins.boxes import sum_estimate
from countwise.margins.ranges import normal_range
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.tables.hierarchy import ROOT

MOST = 1_000
PROBABILITY = 0.95
Labels = tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class ChosenSum:
    """So many counts that have nobody in common: their released sum, and the range of the true."""

    counts: int
    released: int
    low: int
    high: int


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenSums:
    """Sums over rows of a release's table, told by their places in it."""

    release: Release | CrossedRelease
    table: pl.DataFrame
    """The counts to choose from, a row each: those of the release, or some of them."""

    @cached_property
    def levels(self) -> tuple[str, ...]:
        """The level columns."""
        if isinstance(self.release, CrossedRelease):
            return self.release.workload.by
        return self.release.hierarchy.by

    @cached_property
    def _labels(self) -> pl.DataFrame:
        return self.table.select(pl.col(self.levels).cast(pl.String))

    @cached_property
    def _posterior(self) -> Posterior | CrossedPosterior:
        """Of trees with joint noise that of the tree, whose sums have no normal law."""
        if isinstance(self.release, Release) and self.release.plan.mechanism == "joint":
            return infer(self.release)
        return crossed_posterior(self.release)

    def sum(self, places: Sequence[int]) -> ChosenSum:
        """The sum of the counts in these rows."""
        rows = self._checked(places)
        released = int(self.table["count"][places].sum())
        if len(rows) == 1:
            low, high = self._published(places[0])
        elif isinstance(self._posterior, CrossedPosterior):
            low, high = self._normal(self._posterior, rows)
        else:
            paths = ["/".join(filter(None, row)) or ROOT for row in rows]
            law = self._posterior.sum(paths, rng=np.random.default_rng())
            low, high = law.interval(PROBABILITY)
        return ChosenSum(counts=len(rows), released=released, low=low, high=high)

    def _checked(self, places: Sequence[int]) -> list[Labels]:
        if not 1 <= len(places) <= MOST:
            raise InputError(f"choose 1 to {MOST:,} counts.")
        if len(set(places)) < len(places) or not all(0 <= i < len(self.table) for i in places):
            raise InputError("these are not different rows of the release.")
        rows: list[Labels] = [self._labels.row(i) for i in places]
        for i, one in enumerate(rows):
            for other in rows[:i]:
                if overlap(one, other):
                    raise InputError(
                        f"{in_words(other)} and {in_words(one)} have people in common, who would "
                        "be counted twice. To fix, leave one out."
                    )
        return rows

    def _published(self, place: int) -> tuple[int, int]:
        if "low" not in self.table.columns:
            raise InputError("this release is of an earlier version and has no ranges.")
        return int(self.table["low"][place]), int(self.table["high"][place])

    def _normal(self, posterior: CrossedPosterior, rows: Sequence[Labels]) -> tuple[int, int]:
        workload = posterior.workload
        terms = []
        for row in rows:
            labels = {
                level: [f'"{label}"']
                for level, label in zip(self.levels, row, strict=True)
                if label is not None
            }
            terms.append((1.0, box_of(workload, in_words(row), labels).box))
        mean, variance = sum_estimate(workload, posterior.measurements, posterior.estimates, terms)
        return normal_range(mean, variance, PROBABILITY)


def overlap(one: Labels, other: Labels) -> bool:
    """Whether two counts can have a person in common: no level tells them apart."""
    pairs = zip(one, other, strict=True)
    return all(a is None or b is None or a == b for a, b in pairs)


def in_words(row: Labels) -> str:
    """The labels of a count, or the word for all."""
    return " / ".join(filter(None, row)) or ROOT
