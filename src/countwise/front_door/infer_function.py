"""What the true counts behind a release can be, and answers to questions about them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import numpy as np

from countwise.errors import InputError
from countwise.front_door.draw_files import continued, write_draws_to
from countwise.front_door.infer_request import (
    InferRequest,
    or_fresh,
    refuse_wrong,
    write_files,
)
from countwise.front_door.output_files import write_frame
from countwise.front_door.words import PathLike, names
from countwise.inference import routes
from countwise.inference.combinations import Combination
from countwise.inference.crossed_posterior import (
    CrossedPosterior,
    SumPosterior,
    check_level,
    crossed_posterior,
)
from countwise.inference.drawn_posterior import drawn_posterior
from countwise.inference.lattice_chains import run_name
from countwise.inference.paper_tables import infer_counts
from countwise.inference.posterior import Posterior
from countwise.inference.statement_probabilities import Probability
from countwise.inference.subtree_posteriors import infer_by_pieces, write_one
from countwise.inference.tree_sums import tree_sums
from countwise.noise.numbers import Number
from countwise.pages.imprint import Imprint, today
from countwise.progress import Tell, remarks, silent
from countwise.release.crossed_release import CrossedRelease, read_release
from countwise.release.document import Release
from countwise.release.execution import in_threads
from countwise.release.folder import whole
from countwise.release.large_release import LargeRelease, read_large_release
from countwise.release.manifest import is_tree, read_manifest
from countwise.release.pipeline import MOST_WHOLE
from countwise.release.spark import OnSpark
from countwise.sumproduct.priors import NoPrior, Prior, read_prior
from countwise.tables.cut import PIECE
from countwise.tables.spark_session import is_spark, session

DRAWS = 1000
"""Joint draws written unless more are asked for: shares from them are known to 3 points of 100."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InferredAnswers:
    """A posterior, and what it says to the questions that were asked with it."""

    posterior: Posterior | CrossedPosterior
    statements: Mapping[str, Probability] = field(default_factory=dict)
    sums: Sequence[SumPosterior] = ()
    combinations: Sequence[Combination] = ()


@dataclass(frozen=True, kw_only=True)
class PosteriorFile:
    """The posterior of a release too large for memory, written a subtree at a time."""

    file: Path
    nodes: int
    pieces: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"file": str(self.file), "nodes": self.nodes, "pieces": self.pieces}


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
                return _in_pieces(large, asked, tell)
            tell("reading")
        release = read_release(folder)
    if isinstance(release, CrossedRelease):
        return _tables(release, asked, tell)
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
    return _tree(release, posterior, asked, tell)


def _path(given: PathLike | None) -> Path | None:
    return None if given is None else Path(given)


def _tree(
    release: Release | None, posterior: Posterior, asked: InferRequest, tell: Tell
) -> Posterior | InferredAnswers:
    """The answers of a posterior that memory holds, and its files."""
    rng = asked.rng
    if asked.sums and release is not None:
        summed = tree_sums(release, posterior, list(asked.sums), rng=or_fresh(rng))
    else:
        summed = []
    tell("judging")
    judged = {said: posterior.probability(said, rng=rng) for said in asked.statement}
    best = posterior.top(asked.top, rng=rng) if asked.top else []
    if asked.joint_mode is not None:
        table = posterior.joint_mode_table(tell=tell)
        write_frame(table, asked.joint_mode, overwrite=asked.overwrite)
    imprint = Imprint(date=today()) if release is None else release.imprint
    write_files(posterior, asked, tell, statements=judged, imprint=imprint)
    if not (asked.sums or asked.statement or asked.top):
        return posterior
    return InferredAnswers(posterior=posterior, statements=judged, sums=summed, combinations=best)


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


def _tables(
    release: CrossedRelease, asked: InferRequest, tell: Tell
) -> CrossedPosterior | InferredAnswers:
    """Tables that cross: ranges of every count, of sums of them, and statements about them."""
    given = asked.needs_tree(
        **{"--interval central": asked.interval == "central", "--engine": asked.engine}
    )
    if given:
        raise InputError(
            "tables that cross are inferred count by count, and "
            f"{', '.join(given)} {'asks' if len(given) == 1 else 'ask'} for more. To fix, use "
            "--sum, --statement, --level, --out, --prior, --draws-out and --json alone."
        )
    check_level(asked.probability)
    posterior = crossed_posterior(release)
    if asked.prior != routes.NONE and not isinstance(asked.prior, NoPrior):
        prior, rng = str(asked.prior), asked.rng
        posterior = drawn_posterior(release, prior, rng=rng, report=tell)
    if asked.draws_out is not None:
        _write_table_draws(posterior, asked, asked.draws_out, tell)
    tell("answering")
    summed = [posterior.sum(each) for each in asked.sums]
    judged = {said: posterior.probability(said) for said in asked.statement}
    if asked.out is not None:
        tell("finding ranges")
        table = posterior.table(probability=asked.probability)
        tell("writing the table")
        write_frame(table, asked.out, overwrite=asked.overwrite)
    if not (asked.sums or asked.statement):
        return posterior
    return InferredAnswers(posterior=posterior, statements=judged, sums=summed)


def _write_table_draws(
    posterior: CrossedPosterior, asked: InferRequest, file: Path, tell: Tell
) -> None:
    """Joint draws to a file; what a run that was stopped has drawn is gone on with."""
    name = run_name(posterior.measurements, asked.draws, asked.seed)
    with continued(file, name, overwrite=asked.overwrite) as (unfinished, partial):
        rng = or_fresh(asked.rng)
        made = posterior.draws(asked.draws, rng=rng, folder=unfinished, report=tell)
        write_draws_to(partial, made, made.prior)
    remarks.info("%s. Prior: %s.", f"{made.route[0].upper()}{made.route[1:]}", made.prior)
    remarks.info("%s", made.diagnostics)


def _in_pieces(large: LargeRelease, asked: InferRequest, tell: Tell) -> PosteriorFile:
    """Write the posterior of a large release; from Spark a Parquet data set."""
    nodes, engine = sum(large.sizes), asked.engine
    others = asked.needs_tree(
        **{
            "--prior published": asked.prior == "published",
            "--draws-out": asked.draws_out,
            "--statement": asked.statement,
            "--sum": asked.sums,
        }
    )
    if others:
        raise InputError(
            f"a release of {nodes:,} counts is inferred a subtree at a time, and "
            f"{', '.join(others)} needs all of it. To fix, ask for --out alone, or raise --piece "
            "if memory can hold the release."
        )
    if asked.out is None:
        raise InputError(
            f"the posterior of {nodes:,} counts is too long to print. To fix, name a file for it: "
            "--out posterior.parquet"
        )
    if engine and not is_spark(engine):
        raise InputError(f"--engine is spark or spark://host:port here, got {engine!r}.")
    runner = OnSpark(session=session(engine)) if engine else in_threads
    with whole(asked.out.absolute(), overwrite=asked.overwrite) as partial:
        parts = partial.with_name("parts")
        parts.mkdir()
        files = infer_by_pieces(
            large,
            parts,
            prior=read_prior(asked.prior) if isinstance(asked.prior, str) else asked.prior,
            probability=asked.probability,
            interval=asked.interval,
            runner=runner,
            report=tell,
        )
        if engine:
            partial.mkdir()
            for path in files:
                path.rename(partial / path.name)
        else:
            write_one(files, partial)
    return PosteriorFile(file=asked.out, nodes=nodes, pieces=len(large.cut))
