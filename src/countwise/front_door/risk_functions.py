"""Expected losses of estimators, mechanisms and adjustments, on public or made-up counts."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.front_door.output_files import page_or_table, write_page_or_table
from countwise.front_door.words import PathLike, as_list
from countwise.noise.laws import Geometric, IntegerLaw, Laplace, RoundedLaplace
from countwise.noise.numbers import Number, exact
from countwise.progress import Tell, counted, silent
from countwise.reports.risk_page import mechanisms_page
from countwise.reports.risk_tables import mechanisms_table
from countwise.risk import number_lists
from countwise.risk.claim_proof import BOXES, TOLERANCE, Verdict, certify
from countwise.risk.closed import CLOSED
from countwise.risk.estimator_claims import EstimatorClaim, parse_claim
from countwise.risk.loss import DRAWS, METHODS, ExpectedLoss, expected_losses
from countwise.risk.mechanisms import DELTA, SALARIES, CountError, HistogramError, compare
from countwise.risk.search import (
    SCREENED,
    TESTED,
    Finding,
    GridSearch,
    search_by_simulation,
    search_grid,
)

Numbers = str | Number | Sequence[Number]
LEAST = Fraction(1, 1000)
"""The least ε of mechanisms: below, the Gaussian would be wider than its table."""
KINDS: dict[str, type[Laplace] | type[IntegerLaw]] = {
    "laplace": Laplace,
    "geometric": Geometric,
    "laplace-rounded": RoundedLaplace,
}
EXACT_KINDS: dict[str, type[Laplace] | type[Geometric]] = {
    "laplace": Laplace,
    "geometric": Geometric,
}
PAIRED = ("identity", "clipped", "resized", "noisefirst")
"""The estimators that are paired when no claim is given: those with a closed form."""
MECHANISM_DRAWS = 500
"""Draws of a histogram at each ε: its mean errors are then known to a few percent."""
ERROR_PROBABILITY = 1e-6
"""Of a simulated counterexample being none: once in a million searches."""


def risk_losses(
    histogram: Numbers,
    *,
    epsilon: Number = 1,
    noise: str = "laplace",
    method: str = "auto",
    draws: int = DRAWS,
    seed: int = 0,
    tell: Tell = silent,
) -> list[ExpectedLoss]:
    """Expected squared error of every estimator on one `histogram` of true counts."""
    bins = number_lists.histogram(as_list(histogram))
    law = KINDS[one_of(noise, KINDS, what="noise")](scale=1 / number_lists.epsilon(exact(epsilon)))
    one_of(method, METHODS, what="method")
    return expected_losses(
        bins, law, rng=np.random.default_rng(seed), method=method, draws=draws, tell=tell
    )


def risk_search(
    worse: str,
    than: str,
    *,
    bins: int = 2,
    counts: Numbers = "0:100",
    epsilons: Numbers = "0.1:3.0:0.1",
    noise: str = "laplace",
    error_probability: float = ERROR_PROBABILITY,
    seed: int = 0,
    tell: Tell = silent,
) -> GridSearch | Finding | None:
    """Look for histograms on which one estimator is worse than another.

    Two bins are searched on a whole grid, exactly; more by simulation, which finds one or none.
    """
    for name in (worse, than):
        one_of(name, CLOSED, what="an estimator")
    kind = EXACT_KINDS[one_of(noise, EXACT_KINDS, what="noise")]
    if bins < 1:
        raise InputError(f"bins must be 1 or more, got {bins}.")
    if not 0 < error_probability < 1:
        raise InputError(f"error probability must be between 0 and 1, got {error_probability}.")
    tried = number_lists.counts(as_list(counts))
    losses = number_lists.epsilons(as_list(epsilons))
    if bins == 2:
        tell = counted(tell, len(losses))
        return search_grid(worse, than, counts=tried, epsilons=losses, kind=kind, tell=tell)
    return search_by_simulation(
        worse,
        than,
        bins=bins,
        counts=tried,
        epsilons=losses,
        error_probability=error_probability,
        rng=np.random.default_rng(seed),
        kind=kind,
        tell=counted(tell, SCREENED // 10 + TESTED),
    )


def risk_certify(
    claim: str | None = None,
    *,
    bins: int = 2,
    histogram: Numbers | None = None,
    epsilon: Number = 1,
    tolerance: float = TOLERANCE,
    boxes: int = BOXES,
    tell: Tell = silent,
) -> list[Verdict]:
    """Prove or refute that one estimator is never worse than another.

    For all histograms of two bins and all ε, under Laplace noise. A `claim` is such as
    `resized <= identity`; without one all pairs are judged. A `histogram` of two counts, at its
    `epsilon`, is tried as a counterexample first.
    """
    if bins != 2:
        raise InputError(
            f"certificates are for two bins, got {bins}. To fix, use --bins 2, or countwise risk "
            "search for evidence on more bins."
        )
    if not tolerance > 0:
        raise InputError(f"tolerance must be positive, got {tolerance}.")
    at = None
    if histogram is not None:
        at = _pair(as_list(histogram)), number_lists.epsilon(exact(epsilon))
    claims = (
        [EstimatorClaim(left=a, right=b) for a in PAIRED for b in PAIRED if a != b]
        if claim is None
        else [parse_claim(claim)]
    )
    verdicts = []
    for done, each in enumerate(claims):
        tell(str(each), done, len(claims))
        verdicts.append(certify(each, tolerance=tolerance, boxes=boxes, at=at))
    return verdicts


def _pair(text: str) -> tuple[int, int]:
    counts = number_lists.counts(text)
    if len(counts) != 2:
        raise InputError(f"a histogram to try has two counts, as in 0,16; got {len(counts)}.")
    return counts[0], counts[1]


def risk_mechanisms(
    epsilons: Numbers = "0.1:5",
    *,
    histogram: Numbers | None = None,
    draws: int = MECHANISM_DRAWS,
    delta: float = DELTA,
    seed: int = 0,
    out: PathLike | None = None,
    overwrite: bool = False,
    tell: Tell = silent,
) -> list[tuple[CountError, HistogramError]]:
    """Variance, L1 and L2 error and quantiles of the mechanisms at matched privacy.

    Without a `histogram` its true counts are a made-up payroll of 50 bins. A page with the figures
    is written to `out`, or a table as CSV or Parquet.
    """
    if not 0 < delta < 1:
        raise InputError(f"delta must be between 0 and 1, got {delta}.")
    losses = number_lists.epsilons(as_list(epsilons))
    if min(losses) < LEAST:
        raise InputError(
            f"epsilon must be {float(LEAST):g} or more here, got {float(min(losses)):g}."
        )
    given = SALARIES if histogram is None else number_lists.histogram(as_list(histogram))
    bins = [float(h) for h in given]
    file = None if out is None else Path(out)
    page_or_table(file, overwrite=overwrite)
    pairs = compare(
        losses,
        bins,
        draws=draws,
        rng=np.random.default_rng(seed),
        delta=delta,
        tell=counted(tell, len(losses)),
    )
    if file is not None:
        write_page_or_table(
            lambda: mechanisms_page(pairs, bins=len(bins), draws=draws, delta=delta),
            lambda: mechanisms_table(pairs),
            file,
            overwrite=overwrite,
        )
    return pairs
