"""What is asked of a release, and its answers: of a tree, of tables that cross, in pieces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.output_files import (
    DRAWS,
    PAGES,
    continued,
    output_files,
    write_draws,
    write_draws_to,
    write_frame,
    write_text,
)
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
from countwise.inference.posterior import Posterior
from countwise.inference.routes import METHODS, SOURCES
from countwise.inference.statement_probabilities import Probability
from countwise.inference.subtree_posteriors import infer_by_pieces, write_one
from countwise.inference.tree_sums import tree_sums
from countwise.pages.imprint import Imprint, today
from countwise.progress import Tell, remarks
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.execution import in_threads
from countwise.release.folder import whole
from countwise.release.large_release import LargeRelease
from countwise.release.spark import OnSpark
from countwise.reports.posterior_page import posterior_page
from countwise.sumproduct.priors import NoPrior, Prior, read_prior
from countwise.sumproduct.summaries import check_interval
from countwise.tables.spark_session import is_spark, session


@dataclass(frozen=True, kw_only=True, eq=False)
class InferRequest:
    """What is asked of a release: the belief and the way, the questions, and the files."""

    prior: Prior | str
    source: str
    method: str
    probability: float
    interval: str
    statement: Sequence[str]
    sums: Sequence[str]
    top: int
    draws: int
    draws_out: Path | None
    out: Path | None
    joint_mode: Path | None
    page: Path | None
    engine: str
    overwrite: bool
    seed: int | None
    """Of the generator, where it was made of one: the same draws are gone on with."""
    rng: np.random.Generator | None

    def needs_tree(self, **more: object) -> list[str]:
        """What was asked that takes a tree that memory holds, by its options."""
        others: dict[str, object] = {
            "--from counts": self.source == "counts",
            "--method gibbs": self.method == "gibbs",
            "--top": self.top,
            "--joint-mode": self.joint_mode,
            "--page": self.page,
        }
        return [name for name, value in (others | more).items() if value]


def refuse_wrong(asked: InferRequest, release: object, counts: object) -> None:
    """What can be seen to be wrong before anything is read."""
    output_files(
        {"--out": asked.out, "--joint-mode": asked.joint_mode},
        {"--page": (asked.page, PAGES), "--draws-out": (asked.draws_out, DRAWS)},
        data_set=bool(asked.engine),
        overwrite=asked.overwrite,
    )
    check_interval(asked.probability, asked.interval)
    one_of(asked.method, METHODS, what="--method")
    one_of(asked.source, SOURCES, what="--from")
    if asked.sums and counts is not None:
        raise InputError("--sum finds nodes by their labels, and --counts have none.")
    if release is not None and counts is not None:
        raise InputError("give a release folder or --counts, not both.")


def write_files(
    posterior: Posterior,
    asked: InferRequest,
    tell: Tell,
    *,
    statements: Mapping[str, Probability],
    imprint: Imprint,
) -> None:
    """The table, the page and the joint draws that were asked for."""
    how: Any = {"probability": asked.probability, "interval": asked.interval}
    if asked.out is not None:
        tell("writing the table")
        write_frame(posterior.table(**how), asked.out, overwrite=asked.overwrite)
    if asked.page is not None:
        tell("writing the page")
        page = posterior_page(posterior, **how, answers=statements, imprint=imprint)
        write_text(page, asked.page, overwrite=asked.overwrite)
    if asked.draws_out is not None:
        tell("drawing")
        made = posterior.draws(asked.draws, rng=or_fresh(asked.rng))
        write_draws(made, posterior.joint_prior, asked.draws_out, overwrite=asked.overwrite)


def or_fresh(rng: np.random.Generator | None) -> np.random.Generator:
    """The generator that was given, or one that nothing repeats."""
    return np.random.default_rng() if rng is None else rng


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


def tree_answers(
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


def table_answers(
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


def pieces_answers(large: LargeRelease, asked: InferRequest, tell: Tell) -> PosteriorFile:
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
