"""Expected squared error of histogram estimators: one interface, three ways to get it."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Literal

import numpy as np
from flint import arb

from countwise.adjust.histogram import ESTIMATORS
from countwise.errors import InputError
from countwise.noise.laws import Geometric, Laplace
from countwise.progress import Tell, silent
from countwise.risk.closed import CLOSED, enclosure, risk
from countwise.risk.integration import integrable, integrate
from countwise.risk.monte_carlo import Noise, simulate_estimators

Method = Literal["closed", "integration", "simulation"]
METHODS = ("auto", "closed", "integration", "simulation")
DRAWS = 200_000  # a standard error of about half a percent


@dataclass(frozen=True, kw_only=True)
class ExpectedLoss:
    """An expected squared error with its error: a proven bound on the distance from the true
    value, or, by simulation, one standard error."""

    estimator: str
    expected_sse: float
    error: float
    method: Method


def check_bins(bins: Sequence[Fraction]) -> None:
    """A histogram has at least one bin and no negative count."""
    if not bins:
        raise InputError("a histogram needs at least one bin, as in --histogram 0,16.")
    if any(h < 0 for h in bins):
        raise InputError("the counts of a histogram are 0 or more.")


def best_method(name: str, bins: Sequence[Fraction], law: Noise) -> Method:
    """Closed form for one or two bins, integration for three, simulation for more, for other
    noise, and where integration would take long."""
    if not isinstance(law, Laplace | Geometric):
        return "simulation"
    if len(bins) < 3:
        return "closed"
    return "integration" if integrable(name, len(bins), law) else "simulation"


def expected_losses(
    bins: Sequence[Fraction],
    law: Noise,
    *,
    rng: np.random.Generator,
    method: str = "auto",
    names: Sequence[str] = tuple(ESTIMATORS),
    draws: int = DRAWS,
    tell: Tell = silent,
) -> list[ExpectedLoss]:
    """The expected squared error of each named estimator on one histogram."""
    check_bins(bins)
    ways = {name: best_method(name, bins, law) if method == "auto" else method for name in names}
    drawn = [name for name, way in ways.items() if way == "simulation"]
    losses = {}
    for name, way in ways.items():
        if way == "simulation":
            continue
        if not isinstance(law, Laplace | Geometric):
            raise InputError(f"{way} is for laplace and geometric noise; simulate {law.name}.")
        tell(name)
        found = closed_loss if way == "closed" else _integrated
        losses[name] = found(name, bins, law)
    if drawn:
        losses |= _simulated(bins, law, drawn, draws=draws, rng=rng, tell=tell)
    return [losses[name] for name in names]


def closed_loss(name: str, bins: Sequence[Fraction], law: Laplace | Geometric) -> ExpectedLoss:
    """The double nearest to the closed form, with a proven bound on its distance."""
    if len(bins) > 2 or name not in CLOSED:
        raise InputError("the closed form is for one or two bins; integrate or simulate.")
    value = risk(name, bins, law)
    off = float(abs(enclosure(name, bins, law) - arb(value)).upper())
    error = nextafter(off, inf) if off else 0.0
    return ExpectedLoss(estimator=name, expected_sse=value, error=error, method="closed")


def _integrated(name: str, bins: Sequence[Fraction], law: Laplace | Geometric) -> ExpectedLoss:
    value, error = integrate(name, bins, law)
    return ExpectedLoss(estimator=name, expected_sse=value, error=error, method="integration")


def _simulated(
    bins: Sequence[Fraction],
    law: Noise,
    names: Sequence[str],
    *,
    draws: int,
    rng: np.random.Generator,
    tell: Tell,
) -> dict[str, ExpectedLoss]:
    values = np.array([float(h) for h in bins])
    results = simulate_estimators(
        [ESTIMATORS[name] for name in names],
        values,
        law,
        draws=draws,
        rng=rng,
        tell=tell,
    )
    return {
        name: ExpectedLoss(estimator=name, expected_sse=mean, error=error, method="simulation")
        for name, (mean, error) in zip(names, results, strict=True)
    }
