"""A prior for a node that knows its parent's size and its label's share elsewhere.

In a tree whose nodes carry the same labels below many parents (races below tracts), what is
expected of a node is its parent's size times the share of its label in the other parents
nearby, those with the same grandparent. How nodes scatter around that is learned from all of
them: a node of expectation μ is negative binomial with mean μ·u, and the distribution of u is
the one of largest likelihood, for each pool of nodes (Kiefer & Wolfowitz 1956). A node can also
be empty or anything at all.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln

from countwise.adjust.mixture import LEAST, Components
from countwise.adjust.observations import ErrorLaw, Observations
from countwise.arrays import FloatArray, IntArray
from countwise.tables.hierarchy import Hierarchy

SIZE = 16.0  # of the negative binomial: a quarter of the mean as deviation, a step of u
SIZES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)
STEPS = 3  # means are computed at thirds of a step
STEP = 0.25 / STEPS
LOWEST, HIGHEST = -20, 12  # log u in quarters
DENSE = 512  # counts below are tabled one by one, above in steps of one percent
RATIO = 0.01
RAREST = 1e-9  # share of a label that no noisy count has
SMALLEST = 0.05  # expected count, and share of a label relative to its share everywhere
FEWEST_PARENTS = 8  # labels below fewer are too rare for a share of their own: they have one share
MOST_HELD = 0.501  # share of a parent up to which a node teaches how nodes scatter
FAR = 1e-15  # chance of an error beyond what is tabled
GRAIN = 24  # units to a standard deviation of an error, where that is many counts
WIDE = 80  # standard deviations of the error from zero, laws are so wide that it changes nothing
FAINT = 1e-10  # of a component's largest likelihood: below, the transform has too few digits


@dataclass(frozen=True, kw_only=True, eq=False)
class SpreadWeights:
    """Weights of log u = -5, -4.75, …, 3, then of being empty, then of anything up to `top`."""

    weights: FloatArray
    top: int


class Expected(NamedTuple):
    """What nodes are expected to count, and each one's share of its parent."""

    counts: FloatArray
    shares: FloatArray


def expected_counts(
    hierarchy: Hierarchy, level: int, sizes: IntArray, seen: Observations
) -> Expected:
    """Parent's size times the label's share in the other parents below the same grandparent.

    The share is drawn towards that of the whole tree as if the label were counted there in as
    many people as two standard deviations of the noise. Labels that occur below few parents share
    what is known of them. The expectations of a parent's children add up to its size. Directly
    below the root all children are alike.
    """
    parents, first = hierarchy.parents(level), hierarchy.offsets[level - 1][:-1]
    free = seen.free
    known = np.add.reduceat(np.where(free, 0.0, seen.estimates), first)
    size = np.where(free, np.maximum(sizes - known, 0.0)[parents], 0.0)
    share = np.ones(len(size))
    if level > 1:
        share = _shares(hierarchy, level, size, seen)
    whole = np.add.reduceat(np.where(free, share, 0.0), first)[parents]
    share = np.where(free, share / np.maximum(whole, RAREST), 0.0)
    return Expected(counts=np.maximum(size * share, SMALLEST), shares=share)


def set_free(seen: Observations, expected: Expected) -> Observations:
    """Nodes as they would scatter were they not held together by their parent's count.

    Of independent nodes with variances in proportion to their shares s, one that is known to add
    up with the others varies by 1 - s of what it would: with two children of a known sum, half.
    Distances from the expectation are stretched accordingly before a scatter is learned. Nodes with
    more than half of their parent teach nothing, as they are what the others leave.
    """
    loose = np.sqrt(1 - np.minimum(expected.shares, MOST_HELD))
    estimates = expected.counts + (seen.estimates - expected.counts) / loose
    values = np.rint(expected.counts + (seen.values - expected.counts) / loose)
    teaching = seen.free & (expected.shares <= MOST_HELD)
    free = teaching if teaching.any() else seen.free
    return replace(seen, estimates=estimates, values=values.astype(np.int64), free=free)


def _shares(hierarchy: Hierarchy, level: int, size: FloatArray, seen: Observations) -> FloatArray:
    """The share of each node's label in other parents nearby."""
    codes = hierarchy.codes[level - 1].astype(np.int64)
    parents = np.bincount(codes[seen.free], minlength=int(codes.max()) + 1)
    label = np.where(parents[codes] < FEWEST_PARENTS, len(parents), codes)
    group = hierarchy.parents(level - 1)[hierarchy.parents(level)]
    place = np.unique(group * (len(parents) + 1) + label, return_inverse=True)[1]
    values = np.where(seen.free, seen.estimates, 0.0)
    variance = np.where(seen.free, seen.variances, 0.0)
    overall = np.maximum(_summed(label, values), np.sqrt(_summed(label, variance)))
    overall = np.maximum(overall / np.maximum(_summed(label, size), 1.0), RAREST)
    heads = 2 * np.sqrt(_summed(place, variance))
    others = np.maximum(_summed(place, size) - size, 0.0)
    elsewhere = _summed(place, values) - values + heads
    share = elsewhere / np.maximum(others + heads / overall, RAREST)
    return np.asarray(np.maximum(share, SMALLEST * overall))


def _summed(keys: IntArray, values: FloatArray) -> FloatArray:
    """For each entry the sum of the values that have its key."""
    return np.asarray(np.bincount(keys, weights=values)[keys])


def grades_of(expected: FloatArray) -> IntArray:
    """Expected counts as whole numbers of steps of their logarithm."""
    return np.rint(np.log(expected) / STEP).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scatter:
    """Negative binomial laws around expectations, as components that explain what is seen."""

    seen: Observations
    grades: IntArray
    top: int

    def keys(self, nodes: IntArray) -> IntArray:
        """Nodes with the same key have the same components."""
        values, grades = self.seen.values[nodes], self.grades[nodes]
        keys = self.seen.which[nodes] * (int(np.ptp(grades)) + 1) + grades - grades.min()
        return np.asarray(keys * (int(np.ptp(values)) + 1) + values - values.min())

    @cached_property
    def _tables(self) -> dict[ErrorLaw, "_LikelihoodTable"]:
        nodes = np.flatnonzero(self.seen.free)
        means = means_of(self.grades[nodes], self.top)
        return {
            law: _tabled(means, law, int(self.seen.values[nodes[places]].max()))
            for law, places in self.seen.by_law(nodes)
        }

    def components(self, nodes: IntArray) -> Components:
        """For every u, for emptiness and for anything: likelihood and moments of each node."""
        shape = len(nodes), HIGHEST - LOWEST + 3
        likelihood, means, variances = np.empty(shape), np.empty(shape), np.empty(shape)
        for law, places in self.seen.by_law(nodes):
            values, grades = self.seen.values[nodes[places]], self.grades[nodes[places]]
            table = self._tables[law]
            rows = table.means.rows(grades)
            likelihood[places], means[places], variances[places] = table.rows(values, rows)
        return Components(likelihood=likelihood, means=means, variances=variances)


@dataclass(frozen=True, kw_only=True, eq=False)
class GammaPoisson:
    """Negative binomial laws with the expectation as their mean, from loose to Poisson.

    Less can be said of scatter this way than by `Scatter`, and more precisely: it takes fewer
    nodes to learn. Components as there: a size each, emptiness, and anything.
    """

    seen: Observations
    grades: IntArray
    top: int

    def keys(self, nodes: IntArray) -> IntArray:
        """Nodes with the same key have the same components."""
        return Scatter(seen=self.seen, grades=self.grades, top=self.top).keys(nodes)

    @cached_property
    def _tables(self) -> dict[tuple[ErrorLaw, float], "_LikelihoodTable"]:
        nodes = np.flatnonzero(self.seen.free)
        lowest, highest = int(self.grades[nodes].min()), int(self.grades[nodes].max())
        count = highest - lowest + 1
        return {
            (law, size): _tabled(
                Means(lowest=lowest - STEPS * LOWEST, count=count, top=self.top, size=size),
                law,
                int(self.seen.values[nodes[places]].max()),
            )
            for law, places in self.seen.by_law(nodes)
            for size in SIZES
        }

    def components(self, nodes: IntArray) -> Components:
        """For every size, for emptiness and for anything: likelihood and moments of each node."""
        parts = [np.empty((len(nodes), len(SIZES) + 2)) for _ in range(3)]
        for law, places in self.seen.by_law(nodes):
            values, grades = self.seen.values[nodes[places]], self.grades[nodes[places]]
            for column, size in enumerate(SIZES):
                table = self._tables[law, size]
                rows = (grades - table.means.lowest - STEPS * LOWEST)[:, None]
                for part, found in zip(parts, table.rows(values, rows), strict=True):
                    part[places, column] = found[:, 0]
                    part[places, -2:] = found[:, -2:]
        return Components(likelihood=parts[0], means=parts[1], variances=parts[2])


@dataclass(frozen=True, kw_only=True, eq=False)
class _LikelihoodTable:
    """Likelihoods and moments at every small value: a row a mean, the last for anything.

    Values are counted in units of `unit`, from -`reach` to `near`. Beyond that the error changes
    nothing: the count is the value.
    """

    means: "Means"
    law: ErrorLaw
    unit: int
    reach: int
    near: int
    likelihood: FloatArray
    mean: FloatArray
    variance: FloatArray

    def rows(self, values: IntArray, rows: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of some values with the rows of their means, a column a component."""
        units = np.rint(values / self.unit).astype(np.int64)
        inside = units <= self.near
        rows = np.column_stack([rows, np.full((len(values), 2), -1)])
        at = np.clip(units + self.reach, 0, self.reach + self.near)[:, None]
        likelihood, mean = self.likelihood[rows, at], self.mean[rows, at] * self.unit
        variance = self.variance[rows, at] * self.unit**2
        likelihood[:, -2], mean[:, -2], variance[:, -2] = self.law.pmf(values), 0.0, 0.0
        if not inside.all():
            far, where = np.unique(values[~inside], return_inverse=True)
            likelihood[~inside, :-2] = np.exp(self.means.logs(far))[
                rows[~inside, :-2], where[:, None]
            ]
            mean[~inside], variance[~inside] = values[~inside, None], self.law.variance
            mean[~inside, -2], variance[~inside, -2] = 0.0, 0.0
        likelihood[:, -1] = self.law.cdf(values) / (self.means.top + 1)
        return likelihood, mean, variance


def _tabled(means: "Means", law: ErrorLaw, largest: int) -> _LikelihoodTable:
    """Convolutions of the counts' laws, and of their first moments, with that of the error."""
    unit = max(int(law.variance**0.5 / GRAIN), 1)
    reach = int(law.isf(FAR)) // unit + 1
    near = min((int(WIDE * law.variance**0.5) + DENSE) // unit, max(largest, 0) // unit + 1)
    x = np.arange(near + reach + 1)
    counts = np.exp(means.logs(x, unit=unit))
    counts = np.vstack([counts, np.full(len(x), 1.0)])
    edges = np.arange(-reach, reach + 2) * unit - (unit + 1) // 2
    error = -np.diff(law.sf(edges)) if unit > 1 else law.pmf(np.arange(-reach, reach + 1))
    length = next_fast_len(len(x) + 2 * reach, real=True)
    transform = rfft(error, length)

    def smoothed(table: FloatArray) -> FloatArray:
        whole = irfft(rfft(table, length, axis=1) * transform, length, axis=1)
        return np.asarray(whole[:, : reach + near + 1])

    likelihood = smoothed(counts) / unit
    likelihood[likelihood < FAINT * likelihood.max(axis=1, keepdims=True)] = 0.0
    safe = np.where(likelihood > 0, likelihood, 1.0)
    values = np.arange(-reach, near + 1)
    mean = np.where(likelihood > 0, smoothed(counts * x) / unit / safe, np.maximum(values, 0))
    mean = np.clip(mean, 0.0, x[-1])
    square = np.where(likelihood > 0, smoothed(counts * x**2.0) / unit / safe, mean**2)
    return _LikelihoodTable(
        means=means,
        law=law,
        unit=unit,
        reach=reach,
        near=near,
        likelihood=likelihood,
        mean=mean,
        variance=np.maximum(square - mean**2, 0.0),
    )


@dataclass(frozen=True, kw_only=True)
class Means:
    """Negative binomial laws at every mean that grades and u can give, from the lowest grade on."""

    lowest: int
    count: int
    top: int
    size: float = SIZE

    @cached_property
    def grid(self) -> IntArray:
        """Counts at which laws are tabled; between them, logarithms are interpolated."""
        above = DENSE * np.exp(RATIO * np.arange(1, np.log(max(self.top / DENSE, 1)) / RATIO + 2))
        return np.unique(np.concatenate([np.arange(DENSE + 1), np.ceil(above)])).astype(np.int64)

    def logs(self, x: IntArray, *, unit: int = 1) -> FloatArray:
        """log P(N = x), a row a mean; where x counts units, of a law of as many units."""
        steps = self.lowest + STEPS * LOWEST + np.arange(self.count)
        mean = np.exp(steps * STEP)[:, None] / unit
        size = self.size
        ways = gammaln(x + size) - gammaln(size) - gammaln(x + 1.0)
        return np.asarray(
            ways + size * np.log(size / (size + mean)) + x * np.log(mean / (size + mean))
        )

    def rows(self, grades: IntArray) -> IntArray:
        """For each grade the rows of its means, one a column for each u."""
        steps = STEPS * (np.arange(LOWEST, HIGHEST + 1) - LOWEST)
        return np.asarray(grades[:, None] - self.lowest + steps)


def means_of(grades: IntArray, top: int) -> Means:
    """The laws that these grades need."""
    lowest = int(grades.min())
    count = int(grades.max()) - lowest + STEPS * (HIGHEST - LOWEST) + 1
    return Means(lowest=lowest, count=count, top=top)


def spread_table(spread: SpreadWeights, means: Means, grades: IntArray) -> FloatArray:
    """log P(N = x) on the means' grid, a row a grade."""
    x = means.grid
    laws = np.exp(means.logs(x))
    chances = np.stack([spread.weights[:-2] @ laws[row] for row in means.rows(grades)])
    chances[:, 0] += spread.weights[-2]
    return np.asarray(np.log(np.maximum(chances + spread.weights[-1] / (spread.top + 1), LEAST)))
