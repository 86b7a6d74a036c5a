"""The posterior of all true counts of a release, and the answers it gives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from markupsafe import Markup

from countwise.arrays import FloatArray, IntArray
from countwise.choices import one_of
from countwise.errors import InputError
from countwise.inference.combinations import Combination
from countwise.inference.draws import Draws
from countwise.inference.node_names import find, level_names, path_name
from countwise.inference.statement_probabilities import Probability
from countwise.pages.charts import Interval, chart_height, intervals
from countwise.pages.notebook import Framed, Picture
from countwise.progress import Tell, silent
from countwise.sumproduct.summaries import Law, Summaries
from countwise.tables.hierarchy import ROOT, Hierarchy

LARGEST_CHART = 80
"""Counts that a picture holds."""


def in_brief(prior: str) -> str:
    """The words of a prior without what is in brackets, or how far it goes."""
    return prior.partition(" (")[0].partition(" with U ≥")[0]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Node(Law):
    """The posterior of one node's true count."""

    path: str
    level: str
    released: int | None

    def _said(self) -> str:
        released = "" if self.released is None else f" released {self.released:,}:"
        return f"Node {self.path!r}{released} "

    def plot(self, title: str = "") -> Picture:
        """The probabilities of the true count as bars; a line marks the released one."""
        title = title or f"Probabilities of the true count of {self.path}"
        return Picture(self.chart(title, marked=self.released), title=title, height=300)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Posterior(Framed):
    """What a release says about the true counts; `route` and `prior` say how it was found.

    `ExactPosterior` knows it exactly, `SampledPosterior` by draws.
    """

    released: tuple[IntArray, ...] | None
    route: str
    prior: str

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.hierarchy.nodes:,} counts from {self.route}; ask .node, "
            ".sum, .probability, .table, .plot)"
        )

    def to_polars(self) -> pl.DataFrame:
        """One row a node, as `table` has it."""
        return self.table()

    def plot(self, level: str = "") -> Picture:
        """Ranges of a level's counts as distances from the released ones."""
        table, sizes = self.table(), dict(self.hierarchy.describe())
        level = level or next((each for each, n in sizes.items() if n > 1), self.hierarchy.by[0])
        one_of(level, sizes, what="a level")
        if sizes[level] > LARGEST_CHART:
            raise InputError(
                f"{level} has {sizes[level]:,} counts, and a picture holds {LARGEST_CHART}. To "
                "fix, choose a coarser level, or one count: .node(name).plot()."
            )
        title = f"True counts of {level}, as distances from the released ones"
        chart = differences(self.hierarchy, list(sizes).index(level), table, title)
        return Picture(chart, title=title, height=chart_height(sizes[level]))

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree of counts."""
        raise NotImplementedError

    @property
    def joint_prior(self) -> str:
        """The prior of joint draws and of statements about many nodes."""
        return self.prior

    @property
    def diagnostics(self) -> str:
        """What a sampler says about itself; nothing when there was none."""
        return ""

    def summaries(
        self, level: int, *, probability: float = 0.95, interval: str = "highest"
    ) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        raise NotImplementedError

    def draws(self, count: int, *, rng: np.random.Generator) -> Draws:
        """Joint draws of all counts; in every draw, children add up to their parents."""
        raise NotImplementedError

    def law(self, expression: str, *, rng: np.random.Generator | None = None) -> Law:
        """The law of a sum such as "A + B - 2*C", exact for siblings, else from draws."""
        raise NotImplementedError

    def probability(self, statement: str, *, rng: np.random.Generator | None = None) -> Probability:
        """The probability of a statement such as "A > B": exact for siblings, else from draws."""
        raise NotImplementedError

    def top(
        self, count: int = 10, *, parent: str = "total", rng: np.random.Generator | None = None
    ) -> list[Combination]:
        """The most probable combinations of the true counts of a parent's children."""
        raise NotImplementedError

    def joint_mode(self, *, tell: Tell = silent) -> tuple[IntArray, ...]:
        """The most probable combination of all counts, level by level."""
        raise NotImplementedError

    def joint_mode_table(self, *, tell: Tell = silent) -> pl.DataFrame:
        """One row a node of every level, root first: its count in the joint mode."""
        counts = self.joint_mode(tell=tell)
        frames = [self.hierarchy.frame(level, count=each) for level, each in enumerate(counts)]
        return pl.concat(frames).with_columns(prior=pl.lit(in_brief(self.joint_prior)))

    def _law(self, level: int, place: int) -> tuple[int, FloatArray]:
        raise NotImplementedError

    def node(self, name: str) -> Node:
        """One node, by its path such as "North/A" or by a label that occurs once."""
        return self.node_at(*find(self.hierarchy, name))

    def node_at(self, level: int, place: int) -> Node:
        """One node, by its level and its position there."""
        low, chances = self._law(level, place)
        return Node(
            low=low,
            chances=chances / chances.sum(),
            path=path_name(self.hierarchy, level, place),
            level=self.hierarchy.levels[level],
            released=None if self.released is None else int(self.released[level][place]),
            prior=self.prior,
        )

    def table(self, *, probability: float = 0.95, interval: str = "highest") -> pl.DataFrame:
        """One row a node of every level, root first."""
        frames = []
        for level in range(len(self.hierarchy.sizes)):
            found = self.summaries(level, probability=probability, interval=interval)
            released = None if self.released is None else self.released[level]
            frames.append(summary_rows(self.hierarchy, level, found, released))
        return pl.concat(frames).with_columns(prior=pl.lit(in_brief(self.prior)))

    def records(
        self, *, probability: float = 0.95, interval: str = "highest"
    ) -> Iterator[dict[str, object]]:
        """One plain record a node, root first."""
        for level, name in enumerate(self.hierarchy.levels):
            found = self.summaries(level, probability=probability, interval=interval)
            for i, path in enumerate(level_names(self.hierarchy, level)):
                yield {
                    "path": path,
                    "level": name,
                    "released": None if self.released is None else int(self.released[level][i]),
                    "mean": float(found.mean[i]),
                    "mode": int(found.mode[i]),
                    "sd": float(found.sd[i]),
                    "lower": int(found.lower[i]),
                    "upper": int(found.upper[i]),
                    "probability": float(found.chance[i]),
                }

    def sum(self, names: Sequence[str], *, rng: np.random.Generator | None = None) -> Law:
        """The law of the sum over a set of nodes."""
        return self.law(" + ".join(f'"{name}"' for name in names), rng=rng)


def summary_rows(
    hierarchy: Hierarchy, level: int, found: Summaries, released: IntArray | None
) -> pl.DataFrame:
    """One row a node of a level: what was released, and what is known of the true count."""
    known = {} if released is None else {"released": released}
    columns = found._asdict()
    columns["probability"] = columns.pop("chance")
    return hierarchy.frame(level, **known, **columns)


def differences(hierarchy: Hierarchy, level: int, table: pl.DataFrame, title: str) -> Markup:
    """Ranges of a level as distances from its released counts, or its most probable ones."""
    here = table.slice(sum(hierarchy.sizes[:level]), hierarchy.sizes[level])
    base = here["released" if "released" in here.columns else "mode"].to_list()
    rows = [
        Interval(
            label=f"{' / '.join(hierarchy.path(level, i)[-2:]) or ROOT}: {count:,}",
            value=round(row["mean"] - count, 2),
            lower=float(row["lower"] - count),
            upper=float(row["upper"] - count),
            hollow=0.0,
        )
        for i, (row, count) in enumerate(zip(here.iter_rows(named=True), base, strict=True))
    ]
    return intervals(rows, title=title, axis="difference from the released count")
