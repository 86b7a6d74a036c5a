"""The noise that leaves `measure`, the boundary of a verification, has the stated scale.

Every test here calls `measure` itself on known counts: its noise is accepted at the law of the
stated ε and refused at 0.9 and 1.1 of it. The laws are written down again in the tests.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import chi2

from countwise.verification import outcome_noise
from countwise.verification.outcome_noise import measure

EPSILONS = [Fraction(1, 2), Fraction(1), Fraction(2)]
ACCEPTED, REFUSED = 1e-6, 1e-9
CALLS, OUTCOMES = 20_000, 100_000
REACH = 400
Floats = npt.NDArray[np.float64]


def p_value(noise: Floats, probability: Callable[[Floats], Floats], edges: Floats) -> float:
    """Pearson's chi-square of noise in bins with at least 20 expected."""
    expected = len(noise) * probability(edges)
    enough = np.flatnonzero(expected >= 20)
    first, last = enough[0], enough[-1] + 1
    inside = np.histogram(noise, edges)[0][first:last]
    seen = np.array([*inside, len(noise) - inside.sum()])
    wanted = np.array([*expected[first:last], len(noise) - expected[first:last].sum()])
    if wanted[-1] < 5:
        seen, wanted = (
            np.array([*seen[:-2], seen[-2:].sum()]),
            np.array([*wanted[:-2], wanted[-2:].sum()]),
        )
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


def laplace(epsilon: float) -> Callable[[Floats], Floats]:
    """Laplace noise of scale 2/ε, between edges."""

    def cdf(x: Floats) -> Floats:
        tail = np.exp(-np.abs(x) * epsilon / 2) / 2
        return np.where(x < 0, tail, 1 - tail)

    return lambda edges: np.diff(cdf(edges))


def lattice(epsilon: float, outcomes: int) -> Callable[[Floats], Floats]:
    """The first of whole numbers that add up to 0, P(z) ∝ exp(-(ε/2)·Σ|z|), by convolution."""
    line = np.exp(-epsilon / 2 * np.abs(np.arange(-REACH, REACH + 1)))
    rest = np.ones(1)
    for _ in range(outcomes - 1):
        rest = np.convolve(rest, line)
    middle = len(rest) // 2
    reach = min(middle, REACH)
    law = line[REACH - reach : REACH + reach + 1] * rest[middle - reach : middle + reach + 1]
    law = law / law.sum()

    def between(edges: Floats) -> Floats:
        places = np.ceil(edges).astype(int) + reach
        return np.diff(np.concatenate([[0], np.cumsum(law)])[np.clip(places, 0, len(law))])

    return between


def whole_numbers(reach: int) -> Floats:
    """Edges between whole numbers."""
    return np.arange(-reach, reach + 2) - 0.5


def judged(
    noise: Floats, law: Callable[[float], Callable[[Floats], Floats]], edges: Floats, e: float
) -> None:
    """Noise fits the law of ε = e, and not the laws of scales 0.9 and 1.1 times its own."""
    assert p_value(noise, law(e), edges) > ACCEPTED
    for times in (0.9, 1.1):
        assert p_value(noise, law(e / times), edges) < REFUSED


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_noise_on_every_count(epsilon: Fraction) -> None:
    counts = np.arange(OUTCOMES)
    noise = measure(counts, mechanism="laplace", epsilon=epsilon) - counts
    edges = np.linspace(-24, 24, 97) / float(epsilon)
    judged(noise, laplace, edges, float(epsilon))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("outcomes", [2, 3, 5])
def test_lattice_noise_that_adds_up_to_nothing(
    monkeypatch: pytest.MonkeyPatch, epsilon: Fraction, outcomes: int
) -> None:
    monkeypatch.setattr(outcome_noise, "BATCH", 64)  # how many are drawn to keep one; not its law
    counts = np.arange(10, 10 + outcomes)
    noise = np.array(
        [measure(counts, mechanism="lattice", epsilon=epsilon) - counts for _ in range(CALLS)]
    )
    assert (noise.sum(axis=1) == 0).all()
    assert (noise == np.rint(noise)).all()
    for j in (0, outcomes - 1):
        assert p_value(noise[:, j], lattice(float(epsilon), outcomes), whole_numbers(60)) > ACCEPTED
    # The scale is judged by the size of the whole vector, which is sufficient for it.
    size = np.abs(noise).sum(axis=1).mean()
    spread = np.abs(noise).sum(axis=1).std() / np.sqrt(CALLS)
    assert abs(size - mean_size(float(epsilon), outcomes)) < 5 * spread
    for times in (0.9, 1.1):
        assert abs(size - mean_size(float(epsilon) / times, outcomes)) > 5 * spread


def mean_size(epsilon: float, outcomes: int) -> float:
    """E Σ|z| of the lattice, K times that of one."""
    places = np.arange(-REACH, REACH + 1)
    chances = lattice(epsilon, outcomes)(whole_numbers(REACH))
    return outcomes * float(np.abs(places) @ chances)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_binary_noise_is_geometric_at_epsilon(
    monkeypatch: pytest.MonkeyPatch, epsilon: Fraction
) -> None:
    """z and -z with P(z) ∝ e^(-ε|z|); errors are among the failures."""
    monkeypatch.setattr(outcome_noise, "BATCH", 64)
    noisy = np.array(
        [measure(np.array([20, 7, 3]), mechanism="binary", epsilon=epsilon) for _ in range(CALLS)]
    )
    noise = noisy - [20, 10]
    assert (noise[:, 0] == -noise[:, 1]).all()

    def law(e: float) -> Callable[[Floats], Floats]:
        peak = np.tanh(e / 2)
        line = peak * np.exp(-e * np.abs(np.arange(-60, 61)))
        return lambda _: line

    rate = float(epsilon)
    assert p_value(noise[:, 0], law(rate), whole_numbers(60)) > ACCEPTED
    size = np.abs(noise[:, 0]).mean()
    spread = np.abs(noise[:, 0]).std() / np.sqrt(len(noise))
    for times, close in ((1, True), (0.9, False), (1.1, False)):
        e = rate / times
        assert bool(abs(size - 1 / np.sinh(e)) < 5 * spread) is close
