"""From a release to its posterior, by the sharpest route the release allows."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from countwise.adjust.topdown import ranks
from countwise.arrays import IntArray, frozen
from countwise.errors import InputError
from countwise.inference.computed import Computed
from countwise.inference.makings import Known
from countwise.inference.posterior import Posterior
from countwise.inference.published import (
    COSTLIEST,
    Published,
    cost,
    exact_route,
    making,
    sample,
)
from countwise.privacy.epsilon import one_of
from countwise.privacy.laws import IntegerLaw
from countwise.privacy.measurements import Measurements
from countwise.progress import Tell, silent
from countwise.release.document import Release, check_counts, read_release
from countwise.sumproduct.evidence import Seen
from countwise.sumproduct.measured import measured
from countwise.sumproduct.noise import Noise, same_noise
from countwise.sumproduct.priors import Prior, Uniform, read_prior
from countwise.sumproduct.tree import Solved, Ties, solve
from countwise.tables.hierarchy import Hierarchy

SOURCES = ("sharpest", "measurements", "counts")
METHODS = ("auto", "exact", "gibbs")


def infer(
    release: Release | str | Path,
    *,
    prior: Prior | str = "uniform",
    source: str = "sharpest",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior of the true counts of a release, or of the release in a folder.

    The published noisy counts say more than the counts made from them, so `sharpest` uses those;
    `source="counts"` uses the published counts alone, as a reader of a table would have to.
    `method` is `exact`, `gibbs`, or `auto`: exact unless it would take minutes. A sampler needs
    the generator `rng`.
    """
    one_of(source, SOURCES, what="source")
    if not isinstance(release, Release):
        tell("reading")
        release = read_release(release)
    if source != "counts":
        return infer_measurements(
            [release.measurements],
            prior=prior,
            released=release.counts,
            method=method,
            rng=rng,
            tell=tell,
        )
    if release.plan.mechanism == "joint":
        raise InputError(
            "the noise of this release is joint, and what the counts alone say is not known. To "
            "fix, infer from the published noisy counts: --from measurements."
        )
    hierarchy = release.hierarchy
    order = tuple(
        frozen(np.asarray(ranks(hierarchy, level, release.tie_key).argsort().argsort(), np.int64))
        for level in range(len(hierarchy.sizes))
    )
    published = Published(
        hierarchy=hierarchy,
        counts=release.counts,
        order=order,
        noise=_noises(hierarchy, release.measurements.laws),
        adjust=release.plan.adjust,
        total=release.plan.total,
    )
    return infer_published(published, prior=prior, method=method, rng=rng, tell=tell)


def infer_measurements(
    measurements: Sequence[Measurements],
    *,
    prior: Prior | str = "uniform",
    released: tuple[IntArray, ...] | None = None,
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior given every noisy value of every node, from any number of measurements."""
    one_of(method, METHODS, what="method")
    hierarchy = measurements[0].hierarchy
    noises = [_noises(hierarchy, each.laws) for each in measurements]
    if method == "gibbs":
        if len(measurements) > 1:
            raise InputError("the sampler takes one noisy value a count, the exact route any.")
        known = Known(noisy=measurements[0].noisy, noise=noises[0])
        route = "published noisy counts, Gibbs sampler"
        belief = _prior(prior)
        return sample(
            hierarchy, noises[0], known, belief, released=released, route=route, rng=rng, tell=tell
        )
    seen = [
        [
            Seen(noise=noise[level], values=each.noisy[level])
            for each, noise in zip(measurements, noises, strict=True)
        ]
        for level in range(len(hierarchy.sizes))
    ]
    belief = _prior(prior)
    return _posterior(
        measured(hierarchy, seen, belief), belief, released, "published noisy counts, exact", tell
    )


def infer_published(
    published: Published,
    *,
    prior: Prior | str = "uniform",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior when only adjusted counts are known."""
    one_of(method, METHODS, what="method")
    check_counts(published.hierarchy, published.counts)
    belief = _prior(prior)
    ties, route = exact_route(published, belief)
    slow = method == "auto" and cost(ties) > COSTLIEST
    if slow or method == "gibbs":
        why = ", because the exact route would take minutes" if slow else ""
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
    return _posterior(ties, belief, published.counts, route, tell)


def _posterior(
    ties: Ties,
    prior: Prior,
    released: tuple[IntArray, ...] | None,
    route: str,
    tell: Tell,
) -> Posterior:
    cells = ties.hierarchy.cells
    solved = solve(ties, log_total=lambda t: prior.log_total(t, cells), tell=tell)
    return Computed(solved=solved, released=released, route=route, prior=_words(prior, solved))


def _words(prior: Prior, solved: Solved) -> str:
    """The prior in words; of one without end, from where on it does not matter."""
    if not isinstance(prior, Uniform) or prior.upper is not None:
        return prior.words()
    return f"{prior.words()} with U ≥ {solved.ties.largest}, large enough not to matter"


def _prior(prior: Prior | str) -> Prior:
    return read_prior(prior) if isinstance(prior, str) else prior


def _noises(hierarchy: Hierarchy, laws: Sequence[IntegerLaw]) -> tuple[Noise, ...]:
    return tuple(same_noise(law, n) for law, n in zip(laws, hierarchy.sizes, strict=True))
