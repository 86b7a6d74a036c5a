"""What is asked of a release: the belief and the way, the questions, and the files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.output_files import PAGES, output_files, write_frame, write_text
from countwise.inference.posterior import Posterior
from countwise.inference.routes import METHODS, SOURCES
from countwise.progress import Tell
from countwise.release.folder import whole
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
    rng: np.random.Generator | None

    def needs_whole_tree(self, **more: object) -> list[str]:
        """What was asked that takes a tree that memory holds, by its options."""
        others: dict[str, object] = {
            "--from counts": self.source == "counts",
            "--method gibbs": self.method == "gibbs",
            "--prior published": self.prior == "published",
            "--top": self.top,
            "--draws-out": self.draws_out,
            "--joint-mode": self.joint_mode,
            "--page": self.page,
        }
        return [name for name, value in (others | more).items() if value]


def refuse_wrong(asked: InferRequest, release: object, counts: object) -> None:
    """What can be seen to be wrong before anything is read."""
    output_files(
        {"--out": asked.out, "--joint-mode": asked.joint_mode},
        {"--page": (asked.page, PAGES), "--draws-out": (asked.draws_out, (".npz",))},
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


def write_files(posterior: Posterior, asked: InferRequest, tell: Tell) -> None:
    """The table, the page and the joint draws that were asked for."""
    how: Any = {"probability": asked.probability, "interval": asked.interval}
    if asked.out is not None:
        tell("writing the table")
        write_frame(posterior.table(**how), asked.out, overwrite=asked.overwrite)
    if asked.page is not None:
        tell("writing the page")
        write_text(posterior_page(posterior, **how), asked.page, overwrite=asked.overwrite)
    if asked.draws_out is not None:
        tell("drawing")
        made = posterior.draws(asked.draws, rng=or_fresh(asked.rng)).to_arviz()
        arrays: dict[str, Any] = {
            **made["posterior"],
            **made["coords"],
            "prior": np.array(posterior.joint_prior),
        }
        with (
            whole(asked.draws_out, overwrite=asked.overwrite) as partial,
            partial.open("wb") as stream,
        ):
            np.savez_compressed(stream, **arrays)


def or_fresh(rng: np.random.Generator | None) -> np.random.Generator:
    """The generator that was given, or one that nothing repeats."""
    return np.random.default_rng() if rng is None else rng
