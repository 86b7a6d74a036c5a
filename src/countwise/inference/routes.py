"""From a release to its posterior, by the sharpest route the release allows."""

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np

from countwise.adjust.tree_least_squares import LeastSquares
from countwise.adjust.tree_walk import ranks
from countwise.arrays import IntArray, frozen
from countwise.choices import one_of
from countwise.errors import InputError
from countwise.inference.crossed_posterior import CrossedPosterior, crossed_posterior
from countwise.inference.drawn_posterior import drawn_posterior
from countwise.inference.exact_posterior import ExactPosterior
from countwise.inference.posterior import Posterior
from countwise.inference.prior_free_posterior import PriorFreePosterior
from countwise.inference.sampled_posterior import sample
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release, check_counts
from countwise.sumproduct.measured_nodes import seen_by
from countwise.sumproduct.node_noise import node_noise
from countwise.sumproduct.prior_free_laws import free_laws
from countwise.sumproduct.priors import NestedCompositions, NoPrior, Prior, Uniform, read_prior
from countwise.sumproduct.tree import Solved, Ties, solve
from countwise.tables.measurements import Measurements
from countwise.withheld.counts_only import (
    CountsOnly,
    exact_route,
    making,
    takes_minutes,
)
from countwise.withheld.release_models import PublishedNoise

SOURCES = ("sharpest", "measurements", "counts")
PUBLISHED = "published"
NONE = "none"
METHODS = ("auto", "exact", "gibbs")


@overload
def infer(
    release: CrossedRelease,
    *,
    prior: Prior | str = NONE,
    source: str = "sharpest",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> CrossedPosterior: ...


@overload
def infer(
    release: Release,
    *,
    prior: Prior | str = NONE,
    source: str = "sharpest",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior: ...


@overload
def infer(
    release: str | Path,
    *,
    prior: Prior | str = NONE,
    source: str = "sharpest",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior | CrossedPosterior: ...


def infer(
    release: Release | CrossedRelease | str | Path,
    *,
    prior: Prior | str = NONE,
    source: str = "sharpest",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior | CrossedPosterior:
    """The posterior of the true counts of a release, or of the release in a folder.

    Without a prior, which is the default, every other count is taken as any whole number, and the
    one asked about as 0 or more; joint draws, and statements about more than two counts, then rest
    on `NestedCompositions`. The counts alone always need a prior: `uniform`, unless one is given.
    The published noisy counts say more than the counts made from them, so `sharpest` uses those;
    `source="counts"` uses the published counts alone, as a reader of a table would have to.
    The prior `published` is the one that a release adjusted by empirical Bayes was made with.
    `method` is `exact`, `gibbs`, or `auto`: exact unless it would take minutes. A sampler needs
    the generator `rng`. Tables that cross have ranges of counts and sums without a prior; with the
    prior `learned`, or `nested` where they are a chain, all answers are taken from joint draws.
    """
    one_of(source, SOURCES, what="source")
    if isinstance(release, (str, Path)):
        tell("reading")
        release = read_release(release)
    if isinstance(release, CrossedRelease):
        if source == "counts" or method == "gibbs":
            raise InputError(
                "tables that cross are inferred from their noisy counts, and a sampler is taken "
                "where there is a prior. To fix, leave out source and method."
            )
        if prior == NONE or isinstance(prior, NoPrior):
            return crossed_posterior(release)
        return drawn_posterior(release, str(prior), rng=rng)
    if prior == PUBLISHED:
        if release.prior is None:
            raise InputError(
                "this release publishes no prior; those adjusted by bayes do. To fix, choose "
                "another prior such as uniform."
            )
        prior = release.prior
    if source != "counts":
        return infer_measurements(
            [release.measurements],
            prior=prior,
            released=release.counts,
            method=method,
            rng=rng,
            tell=tell,
        )
    if release.plan.joint:
        raise InputError(
            "the noise of this release is joint, and what the counts alone say is not known. To "
            "fix, infer from the published noisy counts: --from measurements."
        )
    if release.measurements.exact is not None:
        raise InputError(
            "some counts of this release are exact, and what the others alone say is not known. To "
            "fix, infer from the published noisy counts: --from measurements."
        )
    hierarchy = release.hierarchy
    order = tuple(
        frozen(np.asarray(ranks(hierarchy, level, release.tie_key).argsort().argsort(), np.int64))
        for level in range(len(hierarchy.sizes))
    )
    published = CountsOnly(
        hierarchy=hierarchy,
        counts=release.counts,
        order=order,
        noise=node_noise(release.measurements),
        adjust=release.method,
        total=release.plan.total,
    )
    return infer_published(published, prior=prior, method=method, rng=rng, tell=tell)


def infer_measurements(
    measurements: Sequence[Measurements],
    *,
    prior: Prior | str = NONE,
    released: tuple[IntArray, ...] | None = None,
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior given every noisy value of every node, from any number of measurements."""
    one_of(method, METHODS, what="method")
    hierarchy = measurements[0].hierarchy
    if method == "gibbs":
        if len(measurements) > 1:
            raise InputError("the sampler takes one noisy value a count, the exact route any.")
        noise = node_noise(measurements[0])
        exact = measurements[0].exact is not None
        start = LeastSquares(tie_key=0)(measurements)[-1] if exact else None
        known = PublishedNoise(noisy=measurements[0].noisy, noise=noise)
        route = "published noisy counts, Gibbs sampler"
        belief = _with_prior(prior, NestedCompositions())
        return sample(
            hierarchy,
            noise,
            known,
            belief,
            released=released,
            route=route,
            cells=start,
            rng=rng,
            tell=tell,
        )
    belief = _prior(prior)
    if belief.lower is None:
        return _prior_free(tuple(measurements), belief, released, tell)
    ties = seen_by(measurements, belief)
    return _posterior(ties, belief, released, "published noisy counts, exact", tell)


def _prior_free(
    measurements: tuple[Measurements, ...],
    belief: Prior,
    released: tuple[IntArray, ...] | None,
    tell: Tell,
) -> Posterior:
    """Every count by itself without a prior; what is asked of many together with one."""
    free = free_laws(measurements, tell=tell)
    how = free.how
    return PriorFreePosterior(
        released=released,
        route=f"published noisy counts, {how}",
        prior=belief.words(),
        free=free,
        signed=seen_by(measurements, belief),
        joint_belief=NestedCompositions(),
        make_joint=lambda prior: infer_measurements(
            measurements, prior=prior, released=released, tell=tell
        ),
    )


def infer_published(
    published: CountsOnly,
    *,
    prior: Prior | str = NONE,
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior when only adjusted counts are known."""
    one_of(method, METHODS, what="method")
    check_counts(published.hierarchy, published.counts)
    belief = _with_prior(prior, Uniform())
    why = "" if method == "gibbs" else None
    if method == "auto" and published.summed_draw is not None:
        why = ", because there is no exact route"
    if why is None:
        ties, route = exact_route(published, belief)
        if method == "exact" or not takes_minutes(ties):
            return _posterior(ties, belief, published.counts, route, tell)
        why = ", because the exact route would take minutes"
    return sample(
        published.hierarchy,
        published.noise,
        making(published),
        belief,
        released=published.counts,
        route=f"published counts ({published.total} total), Gibbs sampler{why}",
        rng=rng,
        tell=tell,
    )


def _posterior(
    ties: Ties,
    prior: Prior,
    released: tuple[IntArray, ...] | None,
    route: str,
    tell: Tell,
) -> Posterior:
    cells = ties.hierarchy.cells
    solved = solve(ties, log_total=lambda t: prior.log_total(t, cells), tell=tell)
    return ExactPosterior(
        solved=solved, released=released, route=route, prior=_words(prior, solved)
    )


def _words(prior: Prior, solved: Solved) -> str:
    """The prior in words; of one without end, from where on it does not matter."""
    if not isinstance(prior, Uniform) or prior.upper is not None:
        return prior.words()
    return f"{prior.words()} with U ≥ {solved.ties.largest}, large enough not to matter"


def _with_prior(prior: Prior | str, otherwise: Prior) -> Prior:
    """The prior that was given; another one where none was, and there has to be one."""
    belief = _prior(prior)
    return otherwise if belief.lower is None else belief


def _prior(prior: Prior | str) -> Prior:
    return read_prior(prior) if isinstance(prior, str) else prior
