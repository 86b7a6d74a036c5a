"""Expected squared error of histogram estimators: one interface, three ways to get it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Literal

import numpy as np
from flint import arb

from countwise.adjust.histogram import ESTIMATORS, Estimator
from countwise.errors import InputError
from countwise.privacy.laws import Geometric, Laplace
from countwise.risk.closed import CLOSED, enclosure, risk
from countwise.risk.draws import Noise, simulate_estimators
from countwise.risk.integration import integrate

Method = Literal["closed", "integration", "simulation"]
METHODS = ("auto", "closed", "integration", "simulation")
RELATIVE = {2: 1e-11, 3: 1e-6}
DRAWS = 200_000


@dataclass(frozen=True, kw_only=True)
class Loss:
    """An expected squared error with its error: a proven bound, a bound from the difference of
    two rules, or one standard error, by method."""

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


def best_method(bins: Sequence[Fraction], law: Noise) -> Method:
    """Closed form up to two bins, integration for three, simulation beyond or for other noise."""
    if not isinstance(law, Laplace | Geometric) or len(bins) > 3:
        return "simulation"
    return "closed" if len(bins) < 3 else "integration"


def expected_losses(
    bins: Sequence[Fraction],
    law: Noise,
    *,
    rng: np.random.Generator,
    method: str = "auto",
    names: Sequence[str] = tuple(ESTIMATORS),
    draws: int = DRAWS,
    tell: Callable[[str], None] = lambda _: None,
) -> list[Loss]:
    """The expected squared error of each named estimator on one histogram."""
    check_bins(bins)
    chosen = best_method(bins, law) if method == "auto" else method
    if chosen == "simulation":
        return _simulated(bins, law, names, draws=draws, rng=rng, tell=tell)
    if not isinstance(law, Laplace | Geometric):
        raise InputError(f"{chosen} is for laplace and geometric noise; simulate {law.name}.")
    losses = []
    for name in names:
        tell(name)
        losses.append(
            closed_loss(name, bins, law)
            if chosen == "closed"
            else _integrated(ESTIMATORS[name], bins, law)
        )
    return losses


def closed_loss(name: str, bins: Sequence[Fraction], law: Laplace | Geometric) -> Loss:
    """The double nearest to the closed form, with a proven bound on its distance."""
    if len(bins) > 2 or name not in CLOSED:
        raise InputError("the closed form is for one or two bins; integrate or simulate.")
    value = risk(name, bins, law)
    off = float(abs(enclosure(name, bins, law) - arb(value)).upper())
    error = nextafter(off, inf) if off else 0.0
    return Loss(estimator=name, expected_sse=value, error=error, method="closed")


def _integrated(estimator: Estimator, bins: Sequence[Fraction], law: Laplace | Geometric) -> Loss:
    values = np.array([float(h) for h in bins])
    relative = RELATIVE.get(len(bins), 1e-4)
    value, error = integrate(estimator, values, law, relative=relative)
    return Loss(estimator=estimator.name, expected_sse=value, error=error, method="integration")


def _simulated(
    bins: Sequence[Fraction],
    law: Noise,
    names: Sequence[str],
    *,
    draws: int,
    rng: np.random.Generator,
    tell: Callable[[str], None],
) -> list[Loss]:
    values = np.array([float(h) for h in bins])
    results = simulate_estimators(
        [ESTIMATORS[name] for name in names],
        values,
        law,
        draws=draws,
        rng=rng,
        tell=lambda done: tell(f"{done:,} draws"),
    )
    return [
        Loss(estimator=name, expected_sse=mean, error=error, method="simulation")
        for name, (mean, error) in zip(names, results, strict=True)
    ]
