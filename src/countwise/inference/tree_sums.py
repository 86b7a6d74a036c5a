"""Sums of nodes of one tree, by their labels."""

import numpy as np

from countwise.inference.box_names import NamedBox, find_box
from countwise.inference.crossed_posterior import (
    PRIOR,
    SumPosterior,
    crossed_posterior,
    tree_workload,
)
from countwise.inference.node_names import path_name
from countwise.inference.posterior import Posterior
from countwise.release.document import Release


def tree_sums(
    release: Release, posterior: Posterior, names: list[str], *, rng: np.random.Generator
) -> list[SumPosterior]:
    """Sums by their names: least squares without a prior where noises were drawn one by one.

    Otherwise the law that the posterior of the tree has for them, with the prior that it takes.
    """
    if not names:
        return []
    if posterior.prior == PRIOR and not release.plan.joint:
        crossed = crossed_posterior(release)
        return [crossed.sum(each) for each in names]
    workload = tree_workload(release.hierarchy)
    return [_by_law(posterior, find_box(workload, each), rng) for each in names]


def _by_law(posterior: Posterior, named: NamedBox, rng: np.random.Generator) -> SumPosterior:
    level, chosen = named.box.levels().levels[0], named.box.categories[0]
    places = [0] if chosen is None else chosen.tolist()
    paths = [path_name(posterior.hierarchy, level, place) for place in places]
    law = posterior.node_at(level, places[0]) if len(paths) == 1 else posterior.sum(paths, rng=rng)
    return SumPosterior(
        name=named.name,
        mean=law.mean,
        sd=law.sd,
        prior=law.prior,
        twice=named.twice,
        range_at=law.interval,
    )
