"""What is asked of a release: the belief and the way, the questions, and the files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.draw_files import DRAWS, write_draws
from countwise.front_door.output_files import PAGES, output_files, write_frame, write_text
from countwise.inference.posterior import Posterior
from countwise.inference.routes import METHODS, SOURCES
from countwise.inference.statement_probabilities import Probability
from countwise.pages.imprint import Imprint
from countwise.progress import Tell
from countwise.reports.posterior_page import posterior_page
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.summaries import check_interval


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
