"""A prior for a cell that knows its parent's size and its label's share elsewhere.

In a tree whose cells carry the same labels below many parents (races below tracts), what is
expected of a cell is its parent's size times the share of its label in the other parents
nearby, those with the same grandparent. How cells scatter around that is learned from all of
them: a cell of expectation μ is negative binomial with mean μ·u, and the distribution of u is
the one of largest likelihood, for each pool of cells (Kiefer & Wolfowitz 1956). A cell can also
be empty or anything at all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import gammaln

from countwise.adjust.cellprior import LEAST, maximise
from countwise.adjust.leastsquares import upward
from countwise.arrays import FloatArray, IntArray
from countwise.privacy.laws import IntegerLaw
from countwise.privacy.measurements import Measurements

SIZE = 16.0  # of the negative binomial: a quarter of the mean as deviation, a step of u
STEPS = 3  # means are computed at thirds of a step
STEP = 0.25 / STEPS
LOWEST, HIGHEST = -20, 12  # log u in quarters
DENSE = 512  # counts below are tabled one by one, above in steps of one percent
RATIO = 0.01
RAREST = 1e-9  # share of a label that no noisy cell has
SMALLEST = 0.05  # expected count, and share of a label relative to its share everywhere


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Weights of log u = -5, -4.75, …, 3, then of being empty, then of anything up to `top`."""

    weights: FloatArray
    top: int


def expected_counts(measurements: Sequence[Measurements], cells: Measurements) -> FloatArray:
    """Parent's size times the label's share in the other parents below the same grandparent.

    The share is drawn towards that of the whole tree as if the label were counted there in as
    many people as two standard deviations of the noise.
    """
    hierarchy = cells.hierarchy
    depth = len(hierarchy.by)
    free = cells.protected(depth)
    sizes = np.maximum(upward(measurements)[0][depth - 1], 1.0)[hierarchy.parents(depth)]
    group = hierarchy.parents(depth - 1)[hierarchy.parents(depth)]
    label = hierarchy.codes[-1].astype(np.int64)
    place = group * (int(label.max()) + 1) + label
    noisy = np.where(free, cells.noisy[-1], 0).astype(np.float64)
    size = np.where(free, sizes, 0.0)
    variance = np.where(free, cells.laws[-1].variance, 0.0)
    overall = np.maximum(_summed(label, noisy), np.sqrt(_summed(label, variance)))
    overall = np.maximum(overall / np.maximum(_summed(label, size), 1.0), RAREST)
    heads = 2 * np.sqrt(_summed(place, variance))
    others = np.maximum(_summed(place, size) - size, 0.0)
    seen = _summed(place, noisy) - noisy + heads
    share = seen / np.maximum(others + heads / overall, RAREST)
    share = np.maximum(share, SMALLEST * overall)
    return np.asarray(np.maximum(sizes * share, SMALLEST))


def _summed(keys: IntArray, values: FloatArray) -> FloatArray:
    """For each entry the sum of the values that have its key."""
    return np.asarray(np.bincount(keys, weights=values)[keys])


def grades_of(expected: FloatArray) -> IntArray:
    """Expected counts as whole numbers of steps of their logarithm."""
    return np.rint(np.log(expected) / STEP).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Means:
    """Negative binomial laws at every mean that grades and u can give, from the lowest grade on."""

    lowest: int
    count: int
    top: int

    @cached_property
    def grid(self) -> IntArray:
        """Counts at which laws are tabled; between them, logarithms are interpolated."""
        above = DENSE * np.exp(RATIO * np.arange(1, np.log(max(self.top / DENSE, 1)) / RATIO + 2))
        return np.unique(np.concatenate([np.arange(DENSE + 1), np.ceil(above)])).astype(np.int64)

    def logs(self, x: IntArray) -> FloatArray:
        """log P(N = x), a row a mean."""
        mean = np.exp((self.lowest + STEPS * LOWEST + np.arange(self.count)) * STEP)[:, None]
        ways = gammaln(x + SIZE) - gammaln(SIZE) - gammaln(x + 1.0)
        return np.asarray(
            ways + SIZE * np.log(SIZE / (SIZE + mean)) + x * np.log(mean / (SIZE + mean))
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


def fit_spread(
    noisy: IntArray, grades: IntArray, law: IntegerLaw, *, top: int
) -> tuple[Spread, float]:
    """The distribution of u of largest likelihood, and its log-likelihood."""
    means = means_of(grades, top)
    scale = float(law.scale)
    near = min(int(200 * scale) + DENSE, top)
    far = int(law.isf(1e-15))
    counts = np.exp(means.logs(np.arange(near + far + 1)))
    length = next_fast_len(near + 3 * far + 1, real=True)
    noise = rfft(law.pmf(np.arange(-far, far + 1)), length)
    measured = irfft(rfft(counts, length, axis=1) * noise, length, axis=1)
    inside = noisy <= near
    rows = means.rows(grades)
    likelihood = np.empty((len(noisy), rows.shape[1] + 2))
    at = np.clip(noisy[inside] + far, 0, near + far)
    likelihood[inside, :-2] = np.maximum(measured[rows[inside], at[:, None]], 0.0)
    # Far above the noise's scale a law of this width is not changed by the noise.
    large, where = np.unique(noisy[~inside], return_inverse=True)
    if len(large):
        likelihood[~inside, :-2] = np.exp(means.logs(large))[rows[~inside], where[:, None]]
    likelihood[:, -2] = law.pmf(noisy)
    likelihood[:, -1] = law.cdf(noisy) / (top + 1)
    weights = maximise(likelihood, np.ones(len(noisy)))
    return Spread(weights=weights, top=top), float(np.log(likelihood @ weights).sum())


def spread_table(spread: Spread, means: Means, grades: IntArray) -> FloatArray:
    """log P(N = x) on the means' grid, a row a grade."""
    x = means.grid
    laws = np.exp(means.logs(x))
    chances = np.stack([spread.weights[:-2] @ laws[row] for row in means.rows(grades)])
    chances[:, 0] += spread.weights[-2]
    return np.asarray(np.log(np.maximum(chances + spread.weights[-1] / (spread.top + 1), LEAST)))
