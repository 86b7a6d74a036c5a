"""All machine code made ready ahead, by a small job of every kind on made-up tables and rows."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.errors import CountwiseError
from countwise.examples import BY, COUNT, clinics
from countwise.inference.paper_tables import infer_counts
from countwise.inference.routes import infer
from countwise.inference.subtree_posteriors import infer_by_pieces
from countwise.kernels.compilation import folder_of_code
from countwise.margins.cell_lattice import begun, lattice
from countwise.margins.division import undivided
from countwise.noise.laws import Geometric
from countwise.progress import Tell, silent
from countwise.release.count_sources import table_source
from countwise.release.crossed_release import CrossedRelease
from countwise.release.document import Release
from countwise.release.large_release import read_large_release
from countwise.release.pipeline import publish
from countwise.release.plan import Plan
from countwise.release.run import release
from countwise.risk.loss import expected_losses
from countwise.sumproduct.prior_free_laws import ByNormal
from countwise.sumproduct.priors import read_prior
from countwise.tables.reading import read_counts
from countwise.verification.reference_samplers import standard_draws, table_draws
from countwise.verification.trial_requests import try_requests

PIECE = 20  # cells: the example then has several pieces
WIDE = ((80, 30, 0, 12, 45), "1/10")  # noise so wide that sums are solved by frequency
TABLES = ((8, 3, 0, 1), "1"), WIDE
MADE = (("mode", "independent"), ("mode", "summed"), ("draw-1", "independent"),
        ("draw-1", "summed"), ("draw-2", "independent"), ("clipped", "independent"))  # fmt: skip


def compile_ahead(tell: Tell = silent) -> Path:
    """Do one small job of every kind, which compiles what it takes; where that is kept.

    Nothing of a user is read, and nothing but machine code is kept.
    """
    folder = folder_of_code()
    if folder is None:
        raise CountwiseError(
            "no folder for machine code can be written to, so nothing can be compiled ahead. To "
            "fix, set NUMBA_CACHE_DIR to one that can, here and where countwise runs."
        )
    for name, job in JOBS.items():
        tell(name)
        job()
    return folder


def releases() -> None:
    """Every adjustment and mechanism."""
    table = read_counts(clinics(), by=BY, count=COUNT, cells_are_public=True)
    for adjust in ADJUSTMENTS:
        release(table, Plan(epsilon=3, by=BY, adjust=adjust))
    changes: tuple[dict[str, Any], ...] = (
        {"mechanism": "joint"},
        {"mechanism": "laplace"},
        {"epsilon": None, "rho": 1},
        {"adjust": "mode", "ties": "last", "exact": ("region",)},
    )
    for changed in changes:
        look_at(release(table, replace(Plan(epsilon=3, by=BY), **changed)))


def look_at(made: Release) -> None:
    """What the noisy counts of a release say, with and without a prior, and by a normal."""
    for _ in ByNormal(measurements=(made.measurements,)).laws(len(BY)):
        pass
    rng = np.random.default_rng(0)
    for prior in ("none", "uniform"):
        posterior = infer(made, prior=prior)
        a, b, c = (row["path"] for row in list(posterior.records())[-3:])
        posterior.probability(f"'{a}' > '{b}'", rng=rng)
        posterior.probability(f"'{a}' + '{b}' + '{c}' >= 20", rng=rng)
        posterior.top(3, rng=rng)
        posterior.draws(20, rng=rng)
        posterior.joint_mode()


def releases_in_pieces() -> None:
    """A release a subtree at a time, and what it says, in a folder that goes."""
    plan = Plan(epsilon=3, by=BY, adjust="least-squares")
    with TemporaryDirectory() as name:
        folder = Path(name)
        source = table_source(clinics(), by=BY, count=COUNT, domain=None, most=PIECE)
        assert source is not None
        publish(source, plan, folder / "release")
        large = read_large_release(folder / "release", most=PIECE)
        assert large is not None
        infer_by_pieces(large, folder, prior=read_prior("none"))


def tables_that_cross() -> None:
    """Whole cells of tables that cross, with and without exact ones, what they say, and draws."""
    plans: tuple[dict[str, Any], ...] = (
        {"epsilon": 3},
        {"rho": 1, "adjust": "least-squares"},
        {"rho": 1, "exact": ("region", "diagnosis")},
    )
    by, across = BY[:1], BY[-1:]
    rows = pl.read_csv(clinics()).group_by(*by, *across).agg(pl.col(COUNT).sum())
    table = read_counts(rows, by=by, across=",".join(across), count=COUNT, cells_are_public=True)
    for given in plans:
        made = release(table, Plan(by=by, across=",".join(across), **given))
        infer(made).table()
        assert isinstance(made, CrossedRelease)
        one = lattice(made.workload, made.measurements, undivided(made.workload))
        begun(one, np.zeros(made.workload.shape, np.int64), np.random.default_rng(0)).sweep(1)


def published_counts() -> None:
    """What adjusted counts alone say, exactly and by the sampler."""
    rng = np.random.default_rng(0)
    for counts, epsilon in TABLES:
        for adjust, total in MADE:
            exact = (adjust, total) != ("draw-1", "summed")
            for method in ("exact", "gibbs") if exact else ("gibbs",):
                posterior = infer_counts(
                    counts, epsilon=epsilon, total_epsilon=epsilon, adjust=adjust,
                    from_total=total, method=method, rng=rng,
                )  # fmt: skip
                posterior.table()
                posterior.draws(20, rng=rng)
                if method == "exact":
                    posterior.top(3, rng=rng)
                    posterior.joint_mode()


def losses() -> None:
    """Expected losses of estimators."""
    bins, law = (Fraction(0), Fraction(3), Fraction(16)), Geometric(scale=Fraction(1))
    expected_losses(bins, law, rng=np.random.default_rng(0), method="simulation", draws=50)


def sampled_verification() -> None:
    """The sampler that the exact posterior of a verification is compared with."""
    for sampler in (standard_draws, table_draws):
        sampler(
            np.array([3.0, 7.0]),
            partitions=10,
            epsilon=Fraction(1),
            alpha=np.ones(2),
            rng=np.random.default_rng(0),
            sweeps=3,
            burn_in=1,
        )


JOBS: dict[str, Callable[[], None]] = {
    "releases": releases,
    "releases in pieces": releases_in_pieces,
    "tables that cross": tables_that_cross,
    "published counts": published_counts,
    "losses": losses,
    "verification": try_requests,
    "its sampler": sampled_verification,
}
