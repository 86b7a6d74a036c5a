"""What the nodes of a level can learn from each other: which law explains them best.

Each law says how a parent's count is divided among its children; how large it is was settled
above. The laws are compared by how probable they make noisy counts that they were not fitted to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from countwise.adjust.cellprior import Blocks, CellPrior, resolved_blocks
from countwise.adjust.fitted_priors import Fitted, PooledPrior, SharePrior, pools_of
from countwise.adjust.jamesstein import fit_evenness
from countwise.adjust.mixture import (
    Learner,
    held_moments,
    held_out,
    maximise,
    moments_in_parts,
    taught,
)
from countwise.adjust.observations import ROUNDING, Observations
from countwise.adjust.shareprior import (
    GammaPoisson,
    Scatter,
    SpreadWeights,
    expected_counts,
    grades_of,
    set_free,
)
from countwise.adjust.tree_least_squares import own_estimate
from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.tables.measurements import Measurements

FEWEST_NODES = 30  # a pool smaller than this learns from all nodes instead
WIDEST = 60  # standard deviations above the largest value that a count of any size can have

Moments = tuple[FloatArray, FloatArray]
Model = Blocks | Scatter | GammaPoisson


@dataclass(frozen=True, kw_only=True, eq=False)
class Division:
    """A law of the children's shares: moments of every node, and how well it explains them.

    `risk` is the squared error to expect of the means; of a law with many unknowns it is
    estimated without trust in the law. A law with a `shape` has one scatter around expectations,
    one without takes counts as they come.
    `prior` is the law as a prior of the nodes, where it is one that can be published.
    """

    words: str
    log_likelihood: float
    risk: float
    means: FloatArray
    variances: FloatArray
    shape: bool = True
    prior: Fitted | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelBelow:
    """A level whose nodes' parents have their counts already."""

    measurements: Sequence[Measurements]
    number: int
    sizes: IntArray
    seen: Observations
    pool: str

    @property
    def by(self) -> tuple[str, ...]:
        """Names of the levels down to this one."""
        return self.measurements[0].hierarchy.by[: self.number]

    def named(self, pool: str) -> str:
        """A level of this name or none, where it lies below."""
        return pool if pool in self.by else ""

    def pools(self, name: str) -> tuple[IntArray, tuple[str, ...]]:
        """The pool of each node by its label of a level, one pool where that lies below."""
        hierarchy = self.measurements[0].hierarchy.above(self.number)
        return pools_of(hierarchy, self.named(name))


def divisions(level: LevelBelow) -> Iterator[Division]:
    """Every law that the level's nodes are enough for, simple ones first."""
    hierarchy = level.measurements[0].hierarchy
    even = fit_evenness(hierarchy, level.number, level.sizes, level.seen)
    if even is not None:
        means, variances = even.moments(level.seen)
        yield Division(
            words="what children of a parent have in common",
            log_likelihood=even.log_likelihood,
            risk=float(variances[level.seen.free].sum()),
            means=means,
            variances=variances,
        )
    if int(level.seen.free.sum()) >= FEWEST_NODES:
        yield of_blocks(level)
        yield of_expectations(level)
        if level.number > 1:
            yield of_shares(level)


def of_blocks(level: LevelBelow) -> Division:
    """One distribution for each pool, empty rather than small where that explains as much.

    What the parents say is the likelihood of their own noisy counts around the sum of their
    children, taken as normal: emptiness must not lose what they know.
    """
    members, names = level.pools(level.pool)
    priors: list[CellPrior] = []
    which = np.zeros(len(names), dtype=np.int64)
    total, risk = 0.0, 0.0
    moments = level.seen.estimates.copy(), level.seen.variances.copy()
    for pool in _pools(level, members, len(names)):
        blocks = resolved_blocks(level.seen, pool.taught)
        fits = [_fit(blocks, pool, learner) for learner in (maximise, blocks.sparse)]
        full, sparse = fits
        scores = [fit.log_likelihood + _log_parents(level, pool, fit, moments) for fit in fits]
        fit = sparse if 2 * (scores[0] - scores[1]) < log(len(pool.taught)) else full
        moments[0][pool.nodes], moments[1][pool.nodes] = fit.means, fit.variances
        total, risk = total + fit.log_likelihood, risk + fit.risk
        which[pool.numbers] = len(priors)
        priors.append(blocks.prior(fit.weights))
    return Division(
        words="what counts are usual among all",
        log_likelihood=total,
        risk=risk,
        means=moments[0],
        variances=moments[1],
        shape=False,
        prior=PooledPrior(
            level=level.named(level.pool),
            names=names,
            pools=tuple(priors[i] for i in which),
            members=members,
        ),
    )


def of_expectations(level: LevelBelow) -> Division:
    """Expected counts from parents and shares, and one scatter of all nodes around them."""
    seen = level.seen
    expected = expected_counts(level.measurements[0].hierarchy, level.number, level.sizes, seen)
    free = set_free(seen, expected)
    top = _highest(free)
    around = GammaPoisson(seen=seen, grades=grades_of(expected.counts), top=top)
    nodes = np.flatnonzero(seen.free)
    teachers = taught(np.flatnonzero(free.free))
    everyone = _Pool(numbers=np.zeros(1, np.int64), nodes=nodes, taught=teachers)
    fit = _fit(around, everyone, maximise, teaching=replace(around, seen=free))
    moments = seen.estimates.copy(), seen.variances.copy()
    moments[0][nodes], moments[1][nodes] = fit.means, fit.variances
    return Division(
        words="what the parent's size lets expect",
        log_likelihood=fit.log_likelihood,
        risk=fit.risk,
        means=moments[0],
        variances=moments[1],
    )


def _highest(seen: Observations) -> int:
    """The largest count that any node can have."""
    wide = max(law.variance for law in seen.laws) ** 0.5
    return int(max(int(seen.values.max()), 0) + WIDEST * wide) + 1


def of_shares(level: LevelBelow) -> Division:
    """Expected counts from parents and shares, and the scatter of each pool around them.

    Labels scatter each in their own way where that explains more.
    """
    pooled = _of_shares(level, level.pool)
    apart = level.by[-1]
    if level.pool:
        return pooled
    each = _of_shares(level, apart)
    return each if each.log_likelihood > pooled.log_likelihood else pooled


def _of_shares(level: LevelBelow, name: str) -> Division:
    hierarchy, seen = level.measurements[0].hierarchy, level.seen
    members, names = level.pools(name)
    expected = expected_counts(hierarchy, level.number, level.sizes, seen)
    free = set_free(seen, expected)
    top = _highest(free)
    scatter = Scatter(seen=seen, grades=grades_of(expected.counts), top=top)
    teaching = replace(scatter, seen=free)
    spreads: list[SpreadWeights] = []
    which = np.zeros(len(names), dtype=np.int64)
    total, risk = 0.0, 0.0
    moments = seen.estimates.copy(), seen.variances.copy()
    for pool in _pools(level, members, len(names), teaching=free.free):
        fit = _fit(scatter, pool, maximise, teaching=teaching)
        moments[0][pool.nodes], moments[1][pool.nodes] = fit.means, fit.variances
        total, risk = total + fit.log_likelihood, risk + fit.risk
        which[pool.numbers] = len(spreads)
        spreads.append(SpreadWeights(weights=fit.weights, top=top))
    return Division(
        words="shares of the same labels nearby",
        log_likelihood=total,
        risk=risk,
        means=moments[0],
        variances=moments[1],
        prior=SharePrior(
            level=level.named(name),
            names=names,
            pools=tuple(spreads[i] for i in which),
            members=members,
            grades=scatter.grades,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Pool:
    """Nodes of some pools, by the pools' numbers, and those that they learn from."""

    numbers: IntArray
    nodes: IntArray
    taught: IntArray


def _pools(
    level: LevelBelow, members: IntArray, count: int, *, teaching: BoolArray | None = None
) -> Iterator[_Pool]:
    """Large pools, which learn from themselves; the small ones together, which learn from all."""
    nodes = np.flatnonzero(level.seen.free)
    teachers = nodes if teaching is None else np.flatnonzero(teaching)
    large = np.bincount(members[teachers], minlength=count) >= FEWEST_NODES
    for number in np.flatnonzero(large):
        mine = nodes[members[nodes] == number]
        own = teachers[members[teachers] == number]
        yield _Pool(numbers=np.array([number]), nodes=mine, taught=taught(own))
    if not large.all():
        rest = nodes[~large[members[nodes]]]
        yield _Pool(numbers=np.flatnonzero(~large), nodes=rest, taught=taught(teachers))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Fit:
    weights: FloatArray
    log_likelihood: float
    risk: float
    means: FloatArray
    variances: FloatArray


def _fit(
    model: Model,
    pool: _Pool,
    learner: Learner,
    *,
    teaching: Model | None = None,
) -> _Fit:
    """Weights learned from a pool's teachers, and what they make of its nodes."""
    teaching = teaching or model
    _, first, row = np.unique(teaching.keys(pool.taught), return_index=True, return_inverse=True)
    likelihood = teaching.components(pool.taught[first]).likelihood
    weights = learner(likelihood, np.bincount(row).astype(np.float64))
    held, part = held_out(likelihood, row, learner), len(pool.nodes) / len(pool.taught)
    _, first, row = np.unique(model.keys(pool.taught), return_index=True, return_inverse=True)
    components = model.components(pool.taught[first])
    risk = model.seen.risk(pool.taught, *held_moments(components, row, held.weights))
    if not len(pool.nodes):
        none = np.empty(0)
        return _Fit(weights=weights, log_likelihood=0.0, risk=0.0, means=none, variances=none)
    _, first, row = np.unique(model.keys(pool.nodes), return_index=True, return_inverse=True)
    means, variances = moments_in_parts(model.components, weights, pool.nodes[first])
    return _Fit(
        weights=weights,
        log_likelihood=held.log_likelihood * part,
        risk=risk * part,
        means=means[row],
        variances=variances[row],
    )


def _log_parents(level: LevelBelow, pool: _Pool, fit: _Fit, moments: Moments) -> float:
    """log-likelihood of the parents' own noisy counts around the sums of their children."""
    means, variances = moments[0].copy(), moments[1].copy()
    means[pool.nodes], variances[pool.nodes] = fit.means, fit.variances
    hierarchy = level.measurements[0].hierarchy
    first = hierarchy.offsets[level.number - 1][:-1]
    own, noise = own_estimate(level.measurements, level.number - 1)
    spread = np.add.reduceat(variances, first) + noise + ROUNDING
    apart = (own - np.add.reduceat(means, first)) ** 2 / spread
    return float(-(np.log(spread) + apart).sum() / 2)
