"""Laws of true counts without a prior: every other count any whole number, all equally likely.

The noise shifts with the counts, so under a flat prior on all whole numbers a range covers what it
says whatever the truth is. Only the count that is asked about is cut to what it can be, 0 or more,
which can make its range cover more than it says, near 0, and never less.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import reading
from countwise.kernels.intervals import beside_normal, tops
from countwise.negligible import SMALLEST, WIDENED
from countwise.noise.laws import IntegerLaw
from countwise.progress import Tell, silent
from countwise.sumproduct.coarse_units import CoarseLaws, in_units, unit_of
from countwise.sumproduct.count_laws import Laws, from_logs, grid, window_offsets
from countwise.sumproduct.families import EDGE, Families
from countwise.sumproduct.implied_bounds import check_exact, least_and_most
from countwise.sumproduct.measured_nodes import measured, seen_by
from countwise.sumproduct.node_noise import Noise, node_noise, reach
from countwise.sumproduct.normal_approximation import Normal, own_values, rests
from countwise.sumproduct.priors import NoPrior
from countwise.sumproduct.pruned_tree import PrunedTies, TooNarrowError
from countwise.sumproduct.summaries import Summaries, highest_ranges, summarise
from countwise.sumproduct.tree import Solved, solve
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.measurements import Measurements

AT_A_TIME = 8_192  # nodes whose laws are made at a time
SECONDS = 60.0  # an exact computation that would take longer is left to the normal one
MOST_BYTES = 1e9  # of messages; beyond, sums of many noises are taken as normal
MOST_REACH = 2_000_000  # counts that the noise of one node is tabled over
FAINTEST = 1e-200  # that products of laws can be before the digits of a double run out
MOST_GAPS = 1e8  # between parents' noisy counts and the sums of their cells', all together


class FreeLaws(Protocol):
    """The law of every node by itself."""

    @property
    def exact(self) -> bool:
        """Whether all of it was computed, in single counts."""
        ...

    @property
    def how(self) -> str:
        """The same in words."""
        ...

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        ...

    def law(self, level: int, place: int) -> tuple[int, FloatArray]:
        """The lowest count and the law of one node."""
        ...

    def summaries(self, level: int, probability: float, interval: str) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        ...

    def ranges(self, level: int, probability: float) -> tuple[IntArray, IntArray]:
        """The fewest most probable counts that hold a probability: lowest and highest."""
        ...


def free_laws(
    measurements: Sequence[Measurements], *, seconds: float = SECONDS, tell: Tell = silent
) -> FreeLaws:
    """By exact messages where these take about so many seconds or less, else the normal way."""
    check_exact(measurements[0].hierarchy, measurements[0].noisy, known(measurements[0]))
    unit = unit_of(measurements)
    if unit > 1:
        seen = [in_units(measurement, unit) for measurement in measurements]
        return InUnits(
            inner=free_laws(seen, seconds=seconds, tell=tell), units=CoarseLaws(unit=unit)
        )
    time, memory = cost(measurements)
    if time <= seconds and memory <= MOST_BYTES:
        tell("passing messages")
        try:
            if len(measurements) == 1:
                return by_shifts(measurements[0])
            solved = solve(seen_by(measurements, NoPrior()), edge=EDGE)
            return ByMessages(measurements=tuple(measurements), solved=solved)
        except InputError:  # noisy counts so far apart that products of their laws vanish
            pass
    tell("averaging noisy counts")
    return ByNormal(measurements=tuple(measurements))


def known(seen: Measurements) -> tuple[BoolArray, ...] | None:
    """Which nodes of each level carry no noise; None where all do."""
    still = tuple(
        np.array([not law.scale for law in noise.laws])[noise.which] for noise in node_noise(seen)
    )
    return still if any(each.any() for each in still) else None


def cost(measurements: Sequence[Measurements]) -> tuple[float, float]:
    """About how many seconds and bytes exact messages take."""
    hierarchy, laws = measurements[0].hierarchy, measurements[0].laws
    wide = [2.0 * reach(law, WIDENED) + 1.0 for law in laws]
    last = len(laws) - 1
    shifts = len(measurements) == 1
    time = 1e-7 * hierarchy.cells * wide[-1]
    if shifts:
        time += 5e-10 * hierarchy.sizes[-2] * wide[-1] * wide[-2]
    memory = 8.0 * hierarchy.sizes[-2] * wide[-2]
    for level in range(1, last if shifts else last + 1):
        size, w = float(np.diff(hierarchy.offsets[level - 1]).max()), wide[level]
        deep = np.log2(size + 1.0)
        pair = min(1e-10 * w * w, 3e-8 * w * np.log2(w + 1.0)) + 1e-6
        time += 6.0 * hierarchy.sizes[level] * pair * deep
        memory += 48.0 * hierarchy.sizes[level] * w
        memory = max(memory, 16.0 * size * w * deep)
    return time, memory


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bounded:
    """Measurements, and what their exact counts leave possible."""

    measurements: tuple[Measurements, ...]

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        return self.measurements[0].hierarchy

    @cached_property
    def bounds(self) -> tuple[list[IntArray], list[IntArray]]:
        """The least and the most that every node can count."""
        first = self.measurements[0]
        return least_and_most(first.hierarchy, first.noisy, known(first))

    def laws(self, level: int) -> Iterator[Laws]:
        """The laws of the nodes of a level."""
        raise NotImplementedError

    def law(self, level: int, place: int) -> tuple[int, FloatArray]:
        """The lowest count and the law of one node."""
        for laws in self.laws(level):
            if place < laws.nodes:
                return laws.one(place)
            place -= laws.nodes
        raise IndexError(place)

    def ranges(self, level: int, probability: float) -> tuple[IntArray, IntArray]:
        """The fewest most probable counts that hold a probability."""
        found = [highest_ranges(laws, probability) for laws in self.laws(level)]
        lows, highs = zip(*found, strict=True)
        return np.concatenate(lows), np.concatenate(highs)

    def summaries(self, level: int, probability: float, interval: str) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        parts = [summarise(laws, level=probability, interval=interval) for laws in self.laws(level)]
        return Summaries(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def cut(self, level: int, parts: Iterator[Laws]) -> Iterator[Laws]:
        """Laws of all nodes of a level, cut to what these can count."""
        least, most = self.bounds
        done = 0
        for laws in parts:
            here = slice(done, done + laws.nodes)
            yield cut(laws, least[level][here], most[level][here])
            done += laws.nodes


@dataclass(frozen=True, kw_only=True, eq=False)
class ByMessages(_Bounded):
    """Exact messages on the whole tree, any number of noisy values of each count."""

    solved: Solved
    exact: bool = True
    how: str = "exact"

    def laws(self, level: int) -> Iterator[Laws]:
        """The laws of the nodes of a level."""
        return self.cut(level, self.solved.marginals(level))


@dataclass(frozen=True, kw_only=True, eq=False)
class ByShifts(_Bounded):
    """Exact messages down to the parents of the cells, and the families below them by shifts.

    `top` has the laws of all levels above the cells; `couplings` hold of the cells' parents, their
    families left out.
    """

    top: tuple[tuple[Laws, ...], ...]
    families: Families
    couplings: Laws
    depth: float
    exact: bool = True
    how: str = "exact"

    def laws(self, level: int) -> Iterator[Laws]:
        """The laws of the nodes of a level."""
        if level < len(self.top):
            return self.cut(level, iter(self.top[level]))
        least, most = self.bounds
        return self.families.laws(self.couplings, self.depth, least[level], most[level])

    def law(self, level: int, place: int) -> tuple[int, FloatArray]:
        """The lowest count and the law of one node, of a cell by its family alone."""
        if level < len(self.top):
            return super().law(level, place)
        offsets, (least, most) = self.families.offsets, self.bounds
        parent = int(np.searchsorted(offsets, place, side="right")) - 1
        here = slice(int(offsets[parent]), int(offsets[parent + 1]))
        coupling = self.couplings.part(parent, parent + 1)
        family = self.families.one(parent)
        place -= here.start
        for laws in family.laws(coupling, self.depth, least[level][here], most[level][here]):
            if place < laws.nodes:
                return laws.one(place)
            place -= laws.nodes
        raise IndexError(place)


def by_shifts(seen: Measurements, *, depth: float = WIDENED) -> ByShifts:
    """The laws of one measurement, in windows as deep as they must be."""
    hierarchy = seen.hierarchy
    last = len(hierarchy.offsets) - 1
    families = Families(
        law=seen.laws[-1],
        noisy=seen.noisy[-1],
        exact=None if seen.exact is None else seen.exact[-1],
        offsets=hierarchy.offsets[-1],
    )
    noise = node_noise(seen)[last]
    far = noise.reach(np.full(hierarchy.sizes[last], depth))
    gaps = np.abs(seen.noisy[last] - families.centres).astype(np.float64)
    if gaps.sum() > MOST_GAPS:
        raise InputError("noisy counts are too far from the sums of those below them.")
    lows, highs, sums = families.sums(seen.noisy[last], far, depth)
    own = _own_logs(noise, seen.noisy[last], lows, highs)
    leaves = from_logs(lows, highs, own + sums)
    if not (leaves.sums() > 0.0).all():
        raise InputError("exact counts and noisy ones can not go together.")
    couplings, told = from_logs(lows, highs, own), from_logs(lows, highs, sums)
    top: tuple[tuple[Laws, ...], ...] = ((leaves,),)
    if last > 0:
        above = _above(hierarchy)
        values = seen_by([_without_cells(seen, above)], NoPrior()).seen
        depths = [np.full(size, depth) for size in above.sizes]
        ties = PrunedTies(top=measured(above, values, NoPrior(), depths=depths), leaves=leaves)
        try:
            solved = solve(ties, edge=EDGE)
        except TooNarrowError:
            if depth >= SMALLEST:
                raise InputError("noisy counts are too far from each other.") from None
            return by_shifts(seen, depth=2 * depth)
        rest = solved.family(last - 1, 0, above.sizes[last - 1]).messages
        couplings = couplings.times(rest.values)
        top = tuple(tuple(solved.marginals(level)) for level in range(last + 1))
    meeting = np.maximum.reduceat(couplings.values * told.values, told.offsets[:-1])
    if meeting.min() < FAINTEST:
        raise InputError("noisy counts are too far from the sums of those below them.")
    return ByShifts(
        measurements=(seen,), top=top, families=families, couplings=couplings, depth=depth
    )


def _own_logs(noise: Noise, values: IntArray, lows: IntArray, highs: IntArray) -> FloatArray:
    offsets = window_offsets(lows, highs)
    nodes = np.repeat(np.arange(len(values)), np.diff(offsets))
    return noise.logpmf(nodes, values[nodes] - grid(lows, offsets))


def _above(hierarchy: Hierarchy) -> Hierarchy:
    """The tree without its cells."""
    return Hierarchy(
        by=hierarchy.by[:-1],
        labels=hierarchy.labels[:-1],
        codes=hierarchy.codes[:-1],
        offsets=hierarchy.offsets[:-1],
    )


def _without_cells(seen: Measurements, above: Hierarchy) -> Measurements:
    exact = None if seen.exact is None else seen.exact[:-1]
    return Measurements(hierarchy=above, laws=seen.laws[:-1], noisy=seen.noisy[:-1], exact=exact)


@dataclass(frozen=True, kw_only=True, eq=False)
class ByNormal(_Bounded):
    """A node's own noise exactly, all else a normal with the mean and variance of least squares."""

    exact: bool = False
    how: str = "own noise exact, all else as a normal"

    @cached_property
    def rests(self) -> list[Normal]:
        """For the nodes of every level, what all but their own first noisy values say."""
        own = [own_values(self.measurements, level) for level in range(len(self.hierarchy.sizes))]
        found = rests(self.hierarchy, dict(enumerate(filter(None, own))))
        for level in range(len(found)):
            others = own_values(self.measurements[1:], level)
            found[level] = found[level].times(others)
        return found

    def ranges(self, level: int, probability: float) -> tuple[IntArray, IntArray]:
        """The fewest most probable counts that hold a probability, in closed form."""
        first, (least, most) = self.measurements[0], self.bounds
        return normal_ranges(
            first.laws[level],
            first.noisy[level],
            None if first.exact is None else first.exact[level],
            self.rests[level],
            (least[level], most[level]),
            probability,
        )

    def laws(self, level: int) -> Iterator[Laws]:
        """The laws of the nodes of a level."""
        first, rest = self.measurements[0], self.rests[level]
        noise, values = node_noise(first)[level], first.noisy[level]
        return self.cut(level, _beside(noise, values, rest))


@dataclass(frozen=True, kw_only=True, eq=False)
class InUnits:
    """Laws of counts under very wide noise, found in units of several counts."""

    inner: FreeLaws
    units: CoarseLaws
    exact: bool = False

    @property
    def how(self) -> str:
        """The same in words."""
        return f"{self.inner.how}, in units of {self.units.unit:,}"

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree."""
        return self.inner.hierarchy

    def law(self, level: int, place: int) -> tuple[int, FloatArray]:
        """The lowest count and the law of one node."""
        return self.units.law(*self.inner.law(level, place))

    def summaries(self, level: int, probability: float, interval: str) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        return self.units.summaries(self.inner.summaries(level, probability, interval))

    def ranges(self, level: int, probability: float) -> tuple[IntArray, IntArray]:
        """The fewest most probable counts that hold a probability."""
        return self.units.ends(*self.inner.ranges(level, probability))


def _beside(noise: Noise, values: IntArray, rest: Normal) -> Iterator[Laws]:
    for start in range(0, len(values), AT_A_TIME):
        here = slice(start, start + AT_A_TIME)
        own, y = noise.part(here), values[here]
        means, variances = rest.means[here], rest.variances[here]
        near = own.reach(np.full(len(y), WIDENED))
        spread = np.sqrt(2.0 * WIDENED * np.minimum(variances, 1e30)) + 1.0
        still = (near == 0) | (variances == 0.0)
        middle = np.where(near == 0, y, np.rint(means)).astype(np.int64)
        peaks = tops(
            reading(y, np.int64),
            _slopes(noise.laws[0], y, means),
            reading(means, np.float64),
            reading(np.where(variances > 0.0, variances, 1.0), np.float64),
        )
        far = np.minimum(near + np.abs(y - peaks), spread).astype(np.int64)
        lows = np.where(still, middle, peaks - far)
        highs = np.where(still, middle, peaks + far)
        offsets = window_offsets(lows, highs)
        owners, x = np.repeat(np.arange(len(y)), np.diff(offsets)), grid(lows, offsets)
        safe = np.where(variances > 0.0, variances, 1.0)[owners]
        logs = -0.5 * (x - means[owners]) ** 2 / safe
        alone = still[owners]
        logs = np.where(alone, 0.0, logs + own.logpmf(owners, y[owners] - x))
        yield from_logs(lows, highs, logs)


def _slopes(law: IntegerLaw, noisy: IntArray, means: FloatArray) -> FloatArray:
    """Log-ratios of a noise, out to the farthest that a noisy count is from what the rest says."""
    apart = float(np.abs(noisy - means).max(initial=0.0))
    far = max(reach(law, WIDENED), int(min(apart, MOST_REACH)) + 1)
    return np.asarray(law.slope(np.arange(far)))


def normal_ranges(
    law: IntegerLaw,
    noisy: IntArray,
    exact: BoolArray | None,
    rest: Normal,
    bounds: tuple[IntArray, IntArray],
    probability: float,
) -> tuple[IntArray, IntArray]:
    """Ranges of nodes from their own noisy counts and what the rest says, in closed form.

    Noise that reaches very far is counted in units of several counts, and the ranges are rounded
    outwards to them.
    """
    far = reach(law, WIDENED)
    if far > MOST_REACH:
        unit = far // MOST_REACH + 1
        low, high = normal_ranges(
            replace(law, scale=law.scale / unit),
            noisy // unit,
            None,
            Normal(means=rest.means / unit, variances=rest.variances / unit**2),
            (bounds[0] // unit, bounds[1] // unit + 1),
            probability,
        )
        low, high = (
            np.maximum((low - 1) * unit, bounds[0]),
            np.minimum((high + 2) * unit, bounds[1]),
        )
        if exact is not None:
            low, high = np.where(exact, noisy, low), np.where(exact, noisy, high)
        return low, high
    least, most = bounds
    low, high = beside_normal(
        reading(noisy, np.int64),
        _slopes(law, noisy, rest.means) if far else np.empty(0),
        reading(rest.means, np.float64),
        reading(rest.variances, np.float64),
        reading(least, np.int64),
        probability,
    )
    if exact is not None:
        low, high = np.where(exact, noisy, low), np.where(exact, noisy, high)
    return np.minimum(low, most), np.minimum(high, most)


def cut(laws: Laws, least: IntArray, most: IntArray) -> Laws:
    """Laws without what is below the least or above the most that a node can count.

    Where nothing is left, all is at the end that is nearer.
    """
    lows = np.clip(laws.lows, least, most)
    highs = np.clip(laws.highs, lows, most)
    if np.array_equal(lows, laws.lows) and np.array_equal(highs, laws.highs):
        return laws
    offsets = window_offsets(lows, highs)
    places = grid(lows - laws.lows, offsets)
    owners = np.repeat(np.arange(laws.nodes), np.diff(offsets))
    inside = (places >= 0) & (places < laws.sizes[owners])
    values = np.where(inside, laws.values[np.where(inside, places, 0) + laws.offsets[owners]], 1.0)
    return _scaled(Laws(lows=lows, offsets=offsets, values=values))


def _scaled(laws: Laws) -> Laws:
    """Largest value 1; a law that vanished in rounding is all at its lowest count."""
    scaled = laws.scaled()
    gone = scaled.sums() <= 0.0
    if gone.any():
        values = scaled.values.copy()
        values[laws.offsets[:-1][gone]] = 1.0
        return Laws(lows=laws.lows, offsets=laws.offsets, values=values)
    return scaled
