"""Empirical Bayes with negative binomial cells and the exact law of the noise.

Above the cells stands least squares. A cell of expectation m, which mixes its parent's share with
the share of the whole level, is negative binomial with mean m and shape r or r·m; the mixture and
the shape have the largest likelihood of the noisy cells. Posterior means are projected on their
parents' counts by the posterior variances, and rounded.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from countwise.tables.measurements import Measurements
from families import nearest, owners, rounded, sums
from whole_tree import down, from_below

FAR = 1e-7  # noise this unlikely is left out
ENOUGH = 800
AT_ONCE = 2_000_000
MIXES = (0.01, 0.05, 0.2, 0.5, 1.0)
SHAPES = tuple(np.geomspace(1e-3, 1e3, 19))


class Cells(NamedTuple):
    """Noisy cells, their label, and the counts of their parents."""

    noisy: np.ndarray
    labels: np.ndarray
    totals: np.ndarray
    offsets: np.ndarray


class Belief(NamedTuple):
    """By label or evenly, how much of the level's share, the shape, and whether it grows."""

    by_label: bool
    mix: float
    shape: float
    grows: bool


def expectations(cells: Cells, belief: Belief) -> np.ndarray:
    """The prior mean of every cell."""
    parents = owners(cells.offsets)
    if belief.by_label:
        _, label = np.unique(cells.labels, return_inverse=True)
        places = np.bincount(label)
        weights = (np.maximum(np.bincount(label, weights=cells.noisy), 0.25) / places)[label]
    else:
        weights = np.ones(len(parents))
    level = weights * (max(cells.totals.sum(), 1) / weights.sum())
    shares = weights * (cells.totals / sums(weights, cells.offsets))[parents]
    return np.maximum((1 - belief.mix) * shares + belief.mix * level, 1e-9)


def posterior(
    measured: Measurements, noisy: np.ndarray, means: np.ndarray, belief: Belief
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log likelihood, mean and variance of every cell."""
    law = measured.laws[-1]
    reach = int(law.isf(FAR)) + 1
    width = 2 * reach + 1
    pieces = []
    for first in range(0, len(noisy), max(AT_ONCE // width, 1)):
        some = slice(first, first + max(AT_ONCE // width, 1))
        y, m = noisy[some, None], means[some, None]
        x = np.maximum(y - reach, 0) + np.arange(width)
        r = belief.shape * m if belief.grows else np.full_like(m, belief.shape)
        log = gammaln(x + r) - gammaln(r) - gammaln(x + 1.0) + law.logpmf(y - x)
        log += r * np.log(r / (r + m)) + x * np.log(m / (r + m))
        top = log.max(axis=1, keepdims=True)
        weight = np.exp(log - top)
        mass = weight.sum(axis=1)
        mean = (weight * x).sum(axis=1) / mass
        variance = (weight * (x - mean[:, None]) ** 2).sum(axis=1) / mass
        pieces.append((top[:, 0] + np.log(mass), mean, variance))
    return tuple(np.concatenate(each) for each in zip(*pieces, strict=True))  # type: ignore[return-value]


def learned(measured: Measurements, cells: Cells, *, rng: np.random.Generator) -> Belief:
    """The belief of the largest likelihood, each of its parts in turn, twice from the start."""
    size = len(cells.noisy)
    some = rng.choice(size, ENOUGH, replace=False) if size > ENOUGH else np.arange(size)
    known: dict[Belief, float] = {}

    def fit(belief: Belief) -> float:
        if belief not in known:
            means = expectations(cells, belief)[some]
            known[belief] = float(posterior(measured, cells.noisy[some], means, belief)[0].sum())
        return known[belief]

    again = 2 * len(np.unique(cells.labels)) <= size - len(cells.totals)
    options = {
        "shape": SHAPES,
        "mix": MIXES if len(cells.totals) > 1 else (1.0,),
        "by_label": (False, True) if again else (False,),
        "grows": (False, True),
    }
    belief = Belief(again, options["mix"][-2 if len(cells.totals) > 1 else 0], 1.0, False)
    for name in (*options, *options):
        belief = max((belief._replace(**{name: each}) for each in options[name]), key=fit)
    return belief


def negative_binomial(measured: Measurements, *, rng: np.random.Generator) -> list[np.ndarray]:
    """Whole counts that add up."""
    counts = down(measured, *from_below(measured), rng=rng)
    hierarchy = measured.hierarchy
    cells = Cells(measured.noisy[-1], hierarchy.codes[-1], counts[-2], hierarchy.offsets[-1])
    belief = learned(measured, cells, rng=rng)
    means = expectations(cells, belief)
    _, mean, variance = posterior(measured, cells.noisy, means, belief)
    shares = nearest(mean, np.maximum(variance, 1e-9), cells.totals, cells.offsets)
    return [*counts[:-1], rounded(shares, cells.totals, cells.offsets, rng=rng)]
