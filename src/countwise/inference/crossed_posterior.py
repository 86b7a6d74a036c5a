"""What a release of crossed tables says about every true count, and about sums of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import NormalDist

import numpy as np
import polars as pl

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.box_names import NamedBox, box_of, find_box
from countwise.inference.box_statements import BoxSum, parse_statement
from countwise.inference.chain_draws import is_chain
from countwise.inference.crossed_draws import CrossedDraws, draw_crossed
from countwise.inference.posterior import in_brief
from countwise.inference.statement_probabilities import Probability
from countwise.margins.boxes import sum_estimate
from countwise.margins.leastsquares import Estimates
from countwise.margins.measurement import Measurement
from countwise.margins.ranges import fitted, margin_ranges, normal_range
from countwise.pages.notebook import Framed
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.sumproduct.priors import NoPrior
from countwise.tables.hierarchy import ROOT, Hierarchy
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload, stacked_margins

PRIOR = NoPrior().words()
ROUTE = "published noisy counts, own noise exact, all else as a normal"
NORMAL = "none: the normal law of least squares, in which counts may be negative"
PROBABILITY = 0.95
Asked = str | int | Sequence[str | int]
"""A label, or several of which the counts are added up."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SumPosterior:
    """What is known of a sum of counts: estimate, standard error, and ranges on 0, 1, …

    Ranges are those of the normal, of one measured count by the law of its own noise. `twice` are
    labels that were named more than once; their counts are in the sum once.
    """

    name: str
    mean: float
    sd: float
    prior: str
    twice: tuple[str, ...]
    range_at: Callable[[float], tuple[int, int]]

    def __repr__(self) -> str:
        low, high = self.interval()
        found = f"{self.mean:,.1f} ± {self.sd:,.1f}, 95%: {low:,} to {high:,}"
        return f"SumPosterior({self.name!r}: {found})"

    def interval(self, level: float = PROBABILITY) -> tuple[int, int]:
        """Lower and upper end, both included."""
        check_level(level)
        return self.range_at(level)


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossedPosterior(Framed):
    """Ranges of all counts of published tables, and of sums of them, without a prior.

    Every other count may be any whole number, all equally likely; the one asked about is 0 or more.
    """

    workload: Workload
    measurements: tuple[Measurement, ...]
    released: tuple[IntArray, ...]
    route: str = ROUTE
    prior: str = PRIOR

    @property
    def diagnostics(self) -> str:
        """What a sampler says about itself; nothing where none was used."""
        return ""

    def __repr__(self) -> str:
        tables = ", ".join(self.workload.name(margin) for margin in self.workload.margins)
        return f"CrossedPosterior(tables {tables}; ask .sum, .probability, .table)"

    def to_polars(self) -> pl.DataFrame:
        """One row a count, as `table` has it."""
        return self.table()

    @cached_property
    def estimates(self) -> Estimates:
        """The least-squares estimates of all counts."""
        return fitted(self.workload, self.measurements)

    def ranges(self, margin: Margin, level: float = PROBABILITY) -> tuple[IntArray, IntArray]:
        """The lowest and highest count of the range of every node of a table."""
        check_level(level)
        return margin_ranges(
            self.workload, self.measurements, margin, level, estimates=self.estimates
        )

    def normals(self, margin: Margin) -> tuple[FloatArray, FloatArray]:
        """The estimate and its standard error of every node of a table."""
        shape = self.workload.shape_of(margin)
        means = np.broadcast_to(self.estimates.margin(margin), shape)
        variances = np.broadcast_to(self.estimates.variance(margin), shape)
        return means, np.sqrt(np.maximum(variances, 0.0))

    def table(self, *, probability: float = PROBABILITY) -> pl.DataFrame:
        """One row a count of every published table."""
        margins = self.workload.margins
        normals = [self.normals(each) for each in margins]
        ranges = [self.ranges(each, probability) for each in margins]
        return stacked_margins(
            self.workload,
            released=self.released,
            mean=[mean for mean, _ in normals],
            sd=[sd for _, sd in normals],
            lower=[low for low, _ in ranges],
            upper=[high for _, high in ranges],
        ).with_columns(prior=pl.lit(in_brief(self.prior)))

    def records(self, *, probability: float = PROBABILITY) -> Iterator[dict[str, object]]:
        """One plain record a count, with its name."""
        for row in self.table(probability=probability).iter_rows(named=True):
            labels = {level: row.pop(level) for level in self.workload.by}
            said = [f"{level}={label}" for level, label in labels.items() if label is not None]
            row.pop("prior")
            yield {"path": ", ".join(said) or ROOT, **row}

    def sum(self, name: str = "", /, **labels: Asked) -> SumPosterior:
        """A sum by its name, "county=Wake|Durham, age=65+", or by labels for each level."""
        if name and labels:
            raise InputError("name a sum in one text or by labels, not both.")
        return self._sum(find_box(self.workload, name) if name else self._labelled(labels))

    def interval(self, name: str, level: float = PROBABILITY) -> tuple[int, int]:
        """The range of a count, or of a sum, by its name."""
        return self.sum(name).interval(level)

    def probability(self, statement: str) -> Probability:
        """The probability of a statement such as "race=Asian > race=Black".

        That of the normal with the estimate and variance of the difference of its two sides, to
        the middle between the whole numbers that make it true and those that do not.
        """
        said = parse_statement(statement, self.workload)
        mean, sd = self._estimate(said.sum)
        chance = above(mean, sd, said.cut)
        return Probability(chance if said.above else 1.0 - chance, prior=NORMAL)

    def draws(
        self,
        count: int,
        *,
        rng: np.random.Generator,
        folder: Path | None = None,
        report: Tell = silent,
    ) -> CrossedDraws:
        """Joint draws of whole cells, none negative; they need a prior.

        It is `nested` where the measured tables are a chain, and `learned` elsewhere. A run that
        was stopped goes on with what it left in `folder`.
        """
        return draw_crossed(
            self.workload,
            self.measurements,
            count,
            exactly=is_chain(self.workload, self.measurements),
            rng=rng,
            folder=folder,
            report=report,
        )

    def _estimate(self, asked: BoxSum) -> tuple[float, float]:
        terms = [(float(each.multiple), each.named.box) for each in asked.terms]
        mean, variance = sum_estimate(self.workload, self.measurements, self.estimates, terms)
        return mean + asked.constant, float(np.sqrt(variance))

    def _labelled(self, labels: Mapping[str, Asked]) -> NamedBox:
        texts = {level: _texts(each) for level, each in labels.items()}
        said = [f"{level}={'|'.join(each)}" for level, each in texts.items()]
        return box_of(self.workload, ", ".join(said) or ROOT, texts)

    def _sum(self, named: NamedBox) -> SumPosterior:
        mean, variance = sum_estimate(
            self.workload, self.measurements, self.estimates, [(1.0, named.box)]
        )
        margin, node = named.box.levels(), named.box.node()

        def range_at(level: float) -> tuple[int, int]:
            if node is None or all(each.margin != margin for each in self.measurements):
                return normal_range(mean, variance, level)
            low, high = self.ranges(margin, level)
            return int(low[node]), int(high[node])

        return SumPosterior(
            name=named.name,
            mean=mean,
            sd=float(np.sqrt(variance)),
            prior=self.prior,
            twice=named.twice,
            range_at=range_at,
        )


def above(mean: float, sd: float, cut: float) -> float:
    """The probability that a normal is above a number; of one that does not vary 0 or 1."""
    if sd == 0.0:
        return float(mean > cut)
    return NormalDist().cdf((mean - cut) / sd)


def check_level(level: float) -> None:
    """Refuse a probability that is none."""
    if not 0.0 < level < 1.0:
        raise InputError(f"the probability of a range lies between 0 and 1, got {level:g}.")


def crossed_posterior(release: Release | CrossedRelease) -> CrossedPosterior:
    """What a release says about its counts; a tree is one variable, and its levels are tables."""
    if isinstance(release, CrossedRelease):
        return CrossedPosterior(
            workload=release.workload,
            measurements=release.measurements,
            released=release.counts,
        )
    if release.plan.joint:
        raise InputError(
            "the noise of this release is joint, and its sums do not have the normal law of "
            "noises drawn one by one. To fix, ask about its tree, as `infer` does."
        )
    measured, workload = release.measurements, tree_workload(release.hierarchy)
    exact = measured.exact or (None,) * len(workload.margins)
    return CrossedPosterior(
        workload=workload,
        measurements=tuple(
            Measurement(margin=margin, law=law, noisy=noisy, exact=known)
            for margin, law, noisy, known in zip(
                workload.margins, measured.laws, measured.noisy, exact, strict=True
            )
        ),
        released=release.counts,
    )


def tree_workload(hierarchy: Hierarchy) -> Workload:
    """A tree as one variable, and its levels as tables."""
    variable = Variable(name=hierarchy.by[-1], tree=hierarchy)
    margins = tuple(Margin((level,)) for level in range(len(hierarchy.sizes)))
    return Workload(variables=(variable,), margins=margins)


def _texts(labels: Asked) -> list[str]:
    """One label or several; whole numbers are labels as they are written."""
    several = [labels] if isinstance(labels, str | int) else labels
    return [str(each) for each in several]
