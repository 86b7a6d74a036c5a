"""What the true counts behind a release can be, and answers to questions about them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np

from countwise.errors import InputError
from countwise.front_door.inferred_answers import (
    InferredAnswers,
    InferRequest,
    PosteriorFile,
    pieces_answers,
    refuse_wrong,
    table_answers,
    tree_answers,
)
from countwise.front_door.words import PathLike, names
from countwise.inference import routes
from countwise.inference.crossed_posterior import (
    CrossedPosterior,
)
from countwise.inference.paper_tables import infer_counts
from countwise.inference.posterior import Posterior
from countwise.noise.numbers import Number
from countwise.progress import Tell, silent
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release
from countwise.release.large_release import read_large_release
from countwise.release.manifest import is_tree, read_manifest
from countwise.release.pipeline import MOST_WHOLE
from countwise.sumproduct.priors import Prior
from countwise.tables.cut import PIECE

DRAWS = 1000
"""Joint draws written unless more are asked for: shares from them are known to 3 points of 100."""


@overload
def infer(
    release: Release,
    *,
    prior: Prior | str = ...,
    source: str = ...,
    method: str = ...,
    rng: np.random.Generator | None = ...,
    tell: Tell = ...,
) -> Posterior: ...
@overload
def infer(
    release: CrossedRelease,
    *,
    prior: Prior | str = ...,
    source: str = ...,
    method: str = ...,
    rng: np.random.Generator | None = ...,
    tell: Tell = ...,
) -> CrossedPosterior: ...
@overload
def infer(
    release: Release | CrossedRelease | PathLike | None = ...,
    *,
    counts: str | Sequence[int] | None = ...,
    total: int | None = ...,
    epsilon: Number | Sequence[Number] | None = ...,
    total_epsilon: Number | None = ...,
    adjust: str = ...,
    ties: str | Sequence[int] = ...,
    mechanism: str = ...,
    from_total: str = ...,
    prior: Prior | str = ...,
    source: str = ...,
    method: str = ...,
    probability: float = ...,
    interval: str = ...,
    statement: str | Sequence[str] = ...,
    sums: str | Sequence[str] = ...,
    top: int = ...,
    draws: int = ...,
    draws_out: PathLike | None = ...,
    out: PathLike | None = ...,
    joint_mode: PathLike | None = ...,
    page: PathLike | None = ...,
    piece: int = ...,
    engine: str = ...,
    overwrite: bool = ...,
    seed: int | None = ...,
    rng: np.random.Generator | None = ...,
    tell: Tell = ...,
) -> Posterior | CrossedPosterior | InferredAnswers | PosteriorFile: ...
def infer(
    release: Release | CrossedRelease | PathLike | None = None,
    *,
    counts: str | Sequence[int] | None = None,
    total: int | None = None,
    epsilon: Number | Sequence[Number] | None = None,
    total_epsilon: Number | None = None,
    adjust: str = "mode",
    ties: str | Sequence[int] = "last",
    mechanism: str = "geometric",
    from_total: str = "independent",
    prior: Prior | str = routes.NONE,
    source: str = "sharpest",
    method: str = "auto",
    probability: float = 0.95,
    interval: str = "highest",
    statement: str | Sequence[str] = (),
    sums: str | Sequence[str] = (),
    top: int = 0,
    draws: int = DRAWS,
    draws_out: PathLike | None = None,
    out: PathLike | None = None,
    joint_mode: PathLike | None = None,
    page: PathLike | None = None,
    piece: int = PIECE,
    engine: str = "",
    overwrite: bool = False,
    seed: int | None = None,
    rng: np.random.Generator | None = None,
    tell: Tell = silent,
) -> Posterior | CrossedPosterior | InferredAnswers | PosteriorFile:
    """The posterior of the true counts of a release, or of the release in a folder.

    Without a prior, which is the default, every other count is taken as any whole number, and the
    one asked about as 0 or more; joint draws, and statements about more than two counts, then rest
    on `NestedCompositions`. The counts alone always need a prior: `uniform`, unless one is given.
    The published noisy counts say more than the counts made from them, so `sharpest` uses those;
    `source="counts"` uses the published counts alone, as a reader of a table would have to.
    The prior `published` is the one that a release adjusted by empirical Bayes was made with.
    `method` is `exact`, `gibbs`, or `auto`: exact unless it would take minutes. A sampler needs
    a `seed`, or the generator `rng`. Tables that cross have ranges of counts and sums without a
    prior; with the prior `learned`, or `nested` where they are a chain, all answers are taken from
    joint draws.

    Without a release, `counts` found in a paper are inferred from, as `infer_counts` does. With
    questions (`statement`, `sums`, `top`) the result is the posterior with its answers. A table of
    every count's best value and range at a `probability` is written to `out`, a `page` with
    pictures, joint draws to `draws_out`, and the most probable combination to `joint_mode`. The
    posterior of a large release in a folder goes to `out` a subtree at a time.
    """
    if rng is None and seed is not None:
        rng = np.random.default_rng(seed)
    asked = InferRequest(
        prior=prior,
        source=source,
        method=method,
        probability=probability,
        interval=interval,
        statement=[statement] if isinstance(statement, str) else statement,
        sums=[sums] if isinstance(sums, str) else sums,
        top=top,
        draws=draws,
        draws_out=_path(draws_out),
        out=_path(out),
        joint_mode=_path(joint_mode),
        page=_path(page),
        engine=engine,
        overwrite=overwrite,
        seed=seed,
        rng=rng,
    )
    refuse_wrong(asked, release, counts)
    if isinstance(release, (str, Path)):
        folder = Path(release)
        if is_tree(read_manifest(folder)):
            large = read_large_release(folder, most=piece)
            if large is not None and (large.sizes[-1] > MOST_WHOLE or asked.out is not None):
                return pieces_answers(large, asked, tell)
            tell("reading")
        release = read_release(folder)
    if isinstance(release, CrossedRelease):
        return table_answers(release, asked, tell)
    if release is None:
        if counts is None:
            raise InputError("give a release folder, or the counts of a table with --counts.")
        posterior = _from_paper(
            asked, counts, tell, total=total, epsilon=epsilon, total_epsilon=total_epsilon,
            adjust=adjust, ties=ties, mechanism=mechanism, from_total=from_total,
        )  # fmt: skip
    else:
        posterior = routes.infer(
            release, prior=prior, source=source, method=method, rng=rng, tell=tell
        )
    return tree_answers(release, posterior, asked, tell)


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


def _from_paper(
    asked: InferRequest, counts: str | Sequence[int], tell: Tell, **said: Any
) -> Posterior:
    """The posterior of counts found in a paper."""
    if said["epsilon"] is None:
        raise InputError("no epsilon given. To fix, add --epsilon 1 (the loss of the components).")
    losses = said["epsilon"]
    if isinstance(losses, str) or not isinstance(losses, Number):
        parts = names(losses) if isinstance(losses, str) else losses
        said["epsilon"] = parts[0] if len(parts) == 1 else parts
    if said["total_epsilon"] is None:
        said["total_epsilon"] = losses
    if said["ties"] != "last":
        said["ties"] = whole_numbers(said["ties"], what="--ties")
    return infer_counts(
        whole_numbers(counts, what="--counts"),
        prior=asked.prior,
        method=asked.method,
        rng=asked.rng,
        tell=tell,
        **said,
    )


def whole_numbers(given: str | Sequence[int], *, what: str) -> list[int]:
    """Whole numbers in a list, which may be text such as 250,357."""
    if not isinstance(given, str):
        return [int(each) for each in given]
    try:
        return [int(part) for part in names(given)]
    except ValueError:
        raise InputError(f"{what} must be whole numbers such as 250,357, got {given!r}.") from None
