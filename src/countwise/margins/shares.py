"""Which margins are measured and with which share of the loss, from public shapes alone.

What is published and what is measured are two lists: every published margin is estimated from all
that is measured, and its variance is a closed form. docs/explain/crossed-least-squares.md,
section 5.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import ceil, exp, floor, log10, prod, sinh

import numpy as np
from scipy.optimize import brentq

from countwise.arrays import BoolArray, FloatArray
from countwise.errors import PlanError
from countwise.margins.condensed import coarsened
from countwise.margins.crossing import Crossing, crossing
from countwise.margins.meanvariances import MeanVariances
from countwise.margins.selection import best_selection
from countwise.margins.spending import FAR, Score, Spending, Unit, geometric_mean, largest_ratio
from countwise.margins.variances import variances
from countwise.tables.workload import Margin, Workload

NORMAL = 1.959964  # standard deviations that 95 of 100 normal errors stay within
GRAIN = 1000  # shares are whole numbers of thousandths, finer where there are very many margins
MOST_CANDIDATES = 256
SHARPNESS = (3.0, 30.0, 300.0, 3000.0)
"""Of a maximum made smooth: each start is ten times nearer to the maximum."""
ROUNDS = 6  # at most, of loss and shares in turn: they end where both agree to CLOSE
MOST_CLASSES, GROUPS = 400, 4  # a design is looked for on a tree of few classes, then made exact
CLOSE = 1e-3  # of a loss: nearer is nothing to see
WIDE = 20.0  # logarithms of losses that are looked at


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The margins that are measured with noise and their shares of the loss, which add up to 1.

    `mean_variances` are those of the published margins after least squares, `even` what they would
    be if every published margin had the same share.
    """

    unit: Unit
    loss: Fraction
    shares: dict[Margin, Fraction]
    mean_variances: dict[Margin, float]
    even: dict[Margin, float]

    def half_width(self, margin: Margin) -> float:
        """What 95 of 100 errors of a published margin stay within, by its mean variance."""
        return float(NORMAL * self.mean_variances[margin] ** 0.5)


def candidates(workload: Workload) -> tuple[Margin, ...]:
    """The margins that may be worth measuring: all up to the finest published levels.

    Those that are published alone where these are too many to try.
    """
    published = workload.margins
    finest = [max(levels) for levels in zip(*(each.levels for each in published), strict=True)]
    if prod(each + 1 for each in finest) > MOST_CANDIDATES:
        return published
    return tuple(Margin(each) for each in product(*(range(level + 1) for level in finest)))


def design(
    workload: Workload,
    weights: Mapping[Margin, float],
    *,
    unit: Unit,
    loss: Fraction,
    reach: Mapping[Margin, float],
) -> Design:
    """The shares with the least weighted geometric mean of the mean variances of what is published.

    `weights` has the published margins, `reach` those that may be measured and how far a person
    moves each: the L1 distance under ε, the squared Euclidean distance under ρ; 0 is free, and
    measured exactly.
    """
    problem = _Problem(workload=workload, weights=weights, unit=unit, reach=reach)
    return problem.best_design(loss)


def targets(
    workload: Workload,
    within: Mapping[Margin, float],
    weights: Mapping[Margin, float],
    *,
    unit: Unit,
    reach: Mapping[Margin, float],
) -> Design:
    """The least loss at which the half-widths of the margins in `within` are at most these.

    The half-width is 1.96 times the root of the mean variance.
    """
    problem = _Problem(workload=workload, weights=weights, unit=unit, reach=reach)
    return problem.least(within)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Problem:
    """What is published, what may be measured, and in which unit."""

    workload: Workload
    weights: Mapping[Margin, float]
    unit: Unit
    reach: Mapping[Margin, float]

    def __post_init__(self) -> None:
        for margin in self.weights:
            if not any(each.covers(margin) for each in self.reach):
                name = self.workload.name(margin)
                raise PlanError(f"table {name} is a sum of no table that may be measured.")
        least, total = min(self.weights.values(), default=0), sum(self.weights.values())
        if least < 0 or not total > 0:
            raise PlanError("weights of tables must be 0 or more, and not all of them 0.")

    @cached_property
    def measurable(self) -> tuple[Margin, ...]:
        """The margins that may be measured."""
        return tuple(self.reach)

    @cached_property
    def costly(self) -> BoolArray:
        """Which of them cost something."""
        return np.array([self.reach[each] > 0 for each in self.measurable])

    @cached_property
    def wanted(self) -> tuple[Margin, ...]:
        """The published margins that are not sums of a free one."""
        free = [each for each, reach in self.reach.items() if reach == 0]
        return tuple(q for q in self.weights if not any(each.covers(q) for each in free))

    @cached_property
    def _crossed(self) -> Crossing:
        return crossing(self.workload)

    @cached_property
    def _rough(self) -> Crossing:
        """The same with few classes of the spine: quickly asked, variances about 2% off."""
        tree = self._crossed.tree
        if sum(map(len, tree.nodes)) <= MOST_CLASSES:
            return self._crossed
        return replace(self._crossed, tree=coarsened(tree, GROUPS))

    def spending(self, score: Score, loss: float, *, rough: bool = False) -> Spending:
        """The problem at a loss."""
        crossed = self._rough if rough else self._crossed
        mean = MeanVariances(crossing=crossed, measured=self.measurable, wanted=self.wanted)
        reach = np.array([float(self.reach[each]) for each in self.measurable])
        return Spending(mean=mean, unit=self.unit, loss=loss, reach=reach, score=score)

    def starts(self) -> Iterator[FloatArray]:
        """Even shares: of what is published, of the finest of it, and of what covers it at once."""
        finest = [q for q in self.wanted if not any(p != q and p.covers(q) for p in self.wanted)]
        covers = [each for each in self.measurable if all(each.covers(q) for q in finest)]
        for chosen in (self.wanted, finest, sorted(covers, key=self.workload.size)[:1]):
            shares = np.array([float(each in chosen) for each in self.measurable]) * self.costly
            if all(any(q.covers(p) for q in self._of(shares)) for p in finest):
                yield shares / shares.sum()

    def _of(self, shares: FloatArray) -> list[Margin]:
        return [self.measurable[i] for i in np.flatnonzero(shares)]

    def best(self, scores: Sequence[Score], loss: float) -> FloatArray:
        """The best shares of a loss, by scores that are near to each other, the last one meant."""
        everything = self.costly / self.costly.sum()
        first = self.spending(scores[0], loss, rough=True)
        if self.unit == "rho":
            shares, _ = first.settle(everything)
        else:
            shares = best_selection(first, [*self.starts(), everything])
        for score in scores[1:]:
            shares, _ = self.spending(score, loss, rough=True).settle(shares)
        if self._rough is not self._crossed:
            shares, _ = self.spending(scores[-1], loss).settle(shares)
        return shares

    def rounded(self, shares: FloatArray) -> dict[Margin, Fraction]:
        """Shares in whole grains that add up to 1, by largest remainders.

        What a published margin needs to be determined at all keeps a grain.
        """
        grain = GRAIN
        while grain < 4 * len(shares):
            grain *= 10
        wholes = np.floor(shares * grain).astype(np.int64)
        order = np.argsort(wholes - shares * grain, kind="stable")
        wholes[order[: grain - int(wholes.sum())]] += 1
        for margin in self.wanted:
            covers = [i for i, each in enumerate(self.measurable) if each.covers(margin)]
            if not wholes[covers].any():
                wholes[max(covers, key=lambda i: float(shares[i]))] += 1
                wholes[wholes.argmax()] -= 1
        return {self.measurable[i]: Fraction(int(wholes[i]), grain) for i in np.flatnonzero(wholes)}

    def design_of(self, shares: Mapping[Margin, Fraction], loss: Fraction) -> Design:
        """What these shares of a loss give, beside even ones."""
        costly = [each for each in self.weights if self.reach.get(each, 0) > 0]
        even = {each: Fraction(1, len(costly)) for each in costly}
        return Design(
            unit=self.unit,
            loss=loss,
            shares=dict(shares),
            mean_variances=self.mean_variances(shares, loss),
            even=self.mean_variances(even, loss),
        )

    def best_design(self, loss: Fraction) -> Design:
        """The best shares of a loss; none where all that is published is free."""
        if not self.wanted:
            return self.design_of({}, loss)
        shares = self.best([geometric_mean(self._weights)], float(loss))
        return self.design_of(self.rounded(shares), loss)

    def mean_variances(
        self, shares: Mapping[Margin, Fraction], loss: Fraction
    ) -> dict[Margin, float]:
        """Mean variance of every published margin; infinite where nothing determines it."""
        noise = {each: 0.0 for each, reach in self.reach.items() if reach == 0}
        for margin, share in shares.items():
            noise[margin] = noise_variance(self.unit, float(share * loss), self.reach[margin])
        found = variances(self.workload, noise)
        return {each: found.mean_variance(each) for each in self.weights}

    def least(self, within: Mapping[Margin, float]) -> Design:
        """The least loss that meets the targets; see `targets`."""
        for margin, width in within.items():
            name = self.workload.name(margin)
            if margin not in self.weights:
                raise PlanError(f"table {name} has a target and is not published.")
            if not width > 0:
                raise PlanError(f"the target of table {name} must be positive, got {width:g}.")
        limits = np.array([(within.get(q, np.inf) / NORMAL) ** 2 for q in self.wanted])
        if not np.isfinite(limits).any():
            raise PlanError("no table with noise has a target. To fix, state one.")
        also = geometric_mean(self._weights)
        scores = [largest_ratio(limits, each, also) for each in SHARPNESS]
        loss, shares = 1.0, self.rounded(self.best(scores, 1.0))
        for _ in range(ROUNDS):
            before, loss = loss, self._needed(shares, limits)
            if self.unit == "rho" or abs(loss - before) < CLOSE * loss:
                break
            other = self.rounded(self.best(scores, loss))
            if self._needed(other, limits) >= loss:
                break
            shares = other
        return self.design_of(shares, _rounded_up(self._needed(shares, limits)))

    def _needed(self, shares: Mapping[Margin, Fraction], limits: FloatArray) -> float:
        """The least loss at which these shares meet the limits: variances fall in the loss."""
        row = np.array([[float(shares.get(each, 0)) for each in self.measurable]])

        def excess(log_loss: float) -> float:
            spending = self.spending(geometric_mean(self._weights), exp(log_loss))
            found = spending.mean(spending.precisions(row))[0]
            return float((np.log(found) - np.log(limits)).max())

        if excess(-WIDE) < 0 or excess(WIDE) > 0:
            near, far = ("wide", "smaller") if excess(-WIDE) < 0 else ("small", "larger")
            raise PlanError(
                f"the targets are too {near}: no loss from {exp(-WIDE):.0e} to {exp(WIDE):.0e} "
                f"just meets them. To fix, state {far} ones."
            )
        return exp(brentq(excess, -WIDE, WIDE, xtol=1e-12))

    @property
    def _weights(self) -> FloatArray:
        return np.array([float(self.weights[each]) for each in self.wanted])


def noise_variance(unit: Unit, loss: float, reach: float) -> float:
    """Variance of a margin's noise: geometric under ε, (discrete) Gaussian under ρ."""
    if unit == "rho":
        return reach / (2 * loss)
    return 0.5 / sinh(min(loss / reach, FAR) / 2) ** 2


def _rounded_up(loss: float) -> Fraction:
    """A loss to four digits, never less."""
    grain = Fraction(10) ** (floor(log10(loss)) - 3)
    return ceil(Fraction(loss) / grain) * grain
