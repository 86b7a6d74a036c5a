"""Tables found in a paper: released components and their total, without a release folder."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from countwise.arrays import IntArray, frozen
from countwise.choices import one_of
from countwise.errors import InputError, ReleaseError
from countwise.inference.posterior import Posterior
from countwise.inference.routes import infer_published
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.numbers import Number, exact
from countwise.progress import Tell, silent
from countwise.sumproduct.node_noise import mixed_noise, same_noise
from countwise.sumproduct.priors import Prior
from countwise.tables.hierarchy import Hierarchy, build
from countwise.withheld.counts_only import ADJUSTMENTS, CountsOnly

SINGLE = tuple(name for name, each in MECHANISMS.items() if not each.joint)
"""Noise that is drawn for every count by itself."""


def infer_counts(
    counts: Sequence[int],
    *,
    total: int | None = None,
    epsilon: Number | Sequence[Number],
    total_epsilon: Number,
    adjust: str = "mode",
    ties: str | Sequence[int] = "last",
    mechanism: str = "geometric",
    prior: Prior | str = "none",
    labels: Sequence[str] | None = None,
    from_total: str = "independent",
    method: str = "auto",
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior:
    """The posterior of a table found in a paper: components, their total, and how it was made.

    `ties` is "last", or the place of each component in the order of service; `from_total` says
    whether the total was made from its own noisy count (`independent`) or also from the sum of
    the noisy components (`summed`).
    """
    one_of(from_total, ("independent", "summed"), what="from_total")
    one_of(adjust, ADJUSTMENTS, what="adjust")
    _check_table(counts, total)
    size = len(counts)
    hierarchy, order = _flat(size, labels)
    k = frozen(np.asarray(counts, np.int64)[order])
    rank = np.arange(size)[::-1] if ties == "last" else _given_order(ties, size)
    kind = MECHANISMS[one_of(mechanism, SINGLE, what="mechanism")].law
    if isinstance(epsilon, Number):
        parts = same_noise(kind(scale=1 / exact(epsilon)), size)
    elif len(epsilon) != size:
        raise InputError(f"epsilon must be one number or {size}, one a component.")
    else:
        parts = mixed_noise([kind(scale=1 / exact(epsilon[i])) for i in order])
    root = kind(scale=1 / exact(total_epsilon, what="total epsilon"))
    published = CountsOnly(
        hierarchy=hierarchy,
        counts=(frozen(np.array([k.sum()])), k),
        order=(np.zeros(1, np.int64), frozen(np.asarray(rank, np.int64)[order])),
        noise=(same_noise(root, 1), parts),
        adjust=adjust,
        total=from_total,
    )
    return infer_published(published, prior=prior, method=method, rng=rng, tell=tell)


def _flat(size: int, labels: Sequence[str] | None) -> tuple[Hierarchy, IntArray]:
    """A total and its components, N1, N2, … when they have no names; the place of each."""
    if labels is not None:
        if len(set(labels)) != size:
            raise InputError(f"{size} counts need {size} different labels.")
        return build(pl.DataFrame({"component": list(labels)}))
    names = tuple(f"N{i + 1:0{len(str(size))}}" for i in range(size))
    return Hierarchy(
        by=("component",),
        labels=(names,),
        codes=(frozen(np.arange(size, dtype=np.uint32)),),
        offsets=(frozen(np.array([0, size])),),
    ), np.arange(size)


def _given_order(ties: str | Sequence[int], size: int) -> IntArray:
    if isinstance(ties, str):
        raise InputError(f"ties must be 'last' or an order of the components, got {ties!r}.")
    if sorted(ties) != list(range(size)):
        raise InputError(f"ties must hold the places 0 to {size - 1}, each once.")
    return np.asarray(ties, np.int64)


def _check_table(counts: Sequence[int], total: int | None) -> None:
    if not counts:
        raise ReleaseError("a release has at least one component, got none.")
    for place, count in enumerate(counts, start=1):
        if count < 0:
            raise ReleaseError(f"component {place} is {count}; released counts are 0 or more.")
    if total is not None and total != sum(counts):
        raise ReleaseError(
            f"the components add up to {sum(counts)}, not to the total {total}. Released counts "
            "add up."
        )
