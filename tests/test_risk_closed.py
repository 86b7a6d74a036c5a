"""Closed forms against published figures, lattice sums, integration and simulation."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from flint import arb

from countwise.adjust.histogram import ESTIMATORS
from countwise.adjust.noisefirst import NoiseFirst, Segmented
from countwise.errors import InputError
from countwise.noise.laws import DiscreteGaussian, Geometric, Laplace
from countwise.risk.closed import (
    CLOSED,
    PLAIN,
    enclosure,
    geometric_risk,
    laplace_risk,
    price_factor,
    risk,
)
from countwise.risk.loss import closed_loss, expected_losses
from countwise.risk.tails import laplace_tails
from countwise.risk.terms import A, B, TermSum, exponential

TENTH = Laplace(scale=Fraction(10))
ONE = Laplace(scale=Fraction(1))


def bins(*counts: float) -> list[Fraction]:
    return [Fraction(str(count)) for count in counts]


def test_figures_of_the_thesis() -> None:
    """Its quadrature states an error below 1e-5; it is 5e-9 and 6e-7 away from the exact values.

    The exact values are 100·(3 - 2.6·e^-1.6) and 100·(4 - 7.38·e^-1.6).
    """
    clipped, resized = (risk(name, bins(0, 16), TENTH) for name in ("clipped", "resized"))
    assert clipped == pytest.approx(100 * (3 - 2.6 * exp(-1.6)), rel=1e-14)
    assert resized == pytest.approx(100 * (4 - 7.38 * exp(-1.6)), rel=1e-14)
    assert clipped == pytest.approx(247.5069053167384, abs=1e-8)
    assert resized == pytest.approx(251.00037027604492, abs=1e-6)


def test_noisefirst_is_worse_than_identity() -> None:
    assert risk("identity", bins(0, 3), ONE) == 4
    assert risk("noisefirst", bins(0, 3), ONE) == pytest.approx(5.1750, abs=5e-5)
    assert risk("noisefirst", bins(0, 3.5), ONE) == pytest.approx(5.184, abs=5e-4)
    assert risk("noisefirst", bins(0, 8), ONE) == pytest.approx(4.119, abs=5e-4)
    assert risk("noisefirst", bins(0, 1.3), ONE) < 4 < risk("noisefirst", bins(0, 1.4), ONE)


def test_resized_formula() -> None:
    tails = laplace_tails(exponential)
    difference = PLAIN["resized"](A, B, tails) - PLAIN["identity"](A, B, tails)
    quarter = Fraction(1, 4)
    expected = {(1, 1, 0, 0): -1, (0, 0, 1, 1): -1, (0, 1, 0, 1): -10 * quarter}
    expected |= {(1, 1, 0, 1): -5 * quarter, (0, 1, 1, 1): -5 * quarter}
    expected |= {(2, 1, 0, 1): -2 * quarter, (0, 1, 2, 1): -2 * quarter}
    assert difference == TermSum({key: Fraction(value) for key, value in expected.items()})
    assert difference.never_positive


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize(
    ("epsilon", "counts"),
    [("1", (0, 3)), ("1/2", (2, 5)), ("0.1", (0, 30)), ("3", (1, 1)), ("3", (0, 0)), ("7", (9, 0))],
)
def test_geometric_is_the_lattice_sum(name: str, epsilon: str, counts: tuple[int, int]) -> None:
    law = Geometric(scale=1 / Fraction(epsilon))
    noise = np.arange(-int(45 / law.rate) - 2, int(45 / law.rate) + 3)
    noisy = np.stack(np.meshgrid(*(noise + h for h in counts), indexing="ij"), axis=-1) * 1.0
    loss = ((ESTIMATORS[name](noisy, law=law) - np.array(counts)) ** 2).sum(axis=-1)
    expected = float(law.pmf(noise) @ loss @ law.pmf(noise))
    assert risk(name, bins(*counts), law) == pytest.approx(expected, rel=2e-13)


@pytest.mark.parametrize("name", CLOSED)
def test_doubles_are_right_to_twelve_digits(name: str) -> None:
    for epsilon in ("0.001", "0.1", "1", "3", "20"):
        scale = 1 / Fraction(epsilon)
        for law in (Laplace(scale=scale), Geometric(scale=scale)):
            for counts in ((0, 0), (0, 1), (3, 3), (1, 400), (10**6, 0)):
                ball = enclosure(name, bins(*counts), law)
                value = risk(name, bins(*counts), law)
                assert float(ball.rad()) < 1e-30 * value
                assert abs(arb(value) - ball) < 1e-12 * value


def test_arrays_agree_with_single_points() -> None:
    law = Geometric(scale=Fraction(2))
    a, b = np.array([0.0, 3, 3, 50]), np.array([0.0, 0, 9, 2])
    for name in CLOSED:
        line, lattice = laplace_risk(name, a, b), geometric_risk(name, a, b, law)
        for i in range(4):
            assert line[i] == pytest.approx(risk(name, bins(a[i], b[i]), ONE), rel=1e-14)
            assert lattice[i] == pytest.approx(risk(name, bins(a[i], b[i]), law), rel=1e-14)


def test_prices_are_those_of_the_estimators() -> None:
    for estimator in (NoiseFirst(), Segmented()):
        price = 2 * ONE.variance * price_factor(estimator.name, np.log)
        assert estimator.penalty(ONE, 2) == pytest.approx(price, rel=1e-15)


def test_one_bin() -> None:
    clipped = 2 - 3 * exp(-2)
    for name, value in zip(CLOSED, (2, clipped, clipped, 2, 2), strict=True):
        assert risk(name, bins(2), ONE) == pytest.approx(value, rel=1e-14)
        assert enclosure(name, bins(2), ONE).overlaps(arb(value, 1e-14))


def test_three_ways_through_one_interface() -> None:
    rng = np.random.default_rng(1)
    for law in (TENTH, Geometric(scale=Fraction(10))):
        ways = [
            expected_losses(bins(0, 16), law, rng=rng, method=method)
            for method in ("closed", "integration", "simulation")
        ]
        for closed, integrated, simulated in zip(*ways, strict=True):
            assert closed.error < 1e-12 * closed.expected_sse
            between = abs(Fraction(integrated.expected_sse) - Fraction(closed.expected_sse))
            assert between <= integrated.error + closed.error
            off = abs(simulated.expected_sse - closed.expected_sse)
            assert off <= 5 * simulated.error + 1e-9
            assert simulated.error < 0.002 * simulated.expected_sse


def test_refusals() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="at least one bin"):
        expected_losses([], ONE, rng=rng)
    with pytest.raises(InputError, match="0 or more"):
        expected_losses(bins(-1, 2), ONE, rng=rng)
    with pytest.raises(InputError, match="one or two bins"):
        closed_loss("clipped", bins(1, 2, 3), ONE)
    with pytest.raises(InputError, match="whole"):
        enclosure("clipped", bins(0.5, 1), Geometric(scale=Fraction(1)))
    with pytest.raises(InputError, match="simulate gaussian"):
        expected_losses(
            bins(1, 2), DiscreteGaussian(scale=Fraction(1)), rng=rng, method="integration"
        )


def test_segmented_prices_two_bins_as_eight() -> None:
    """(18, 21) under geometric noise at ε = 35/29, over noise vectors; by log 2 it is 2.6."""
    law = Geometric(scale=Fraction(29, 35))
    line = np.arange(-60, 61)
    first, second = np.meshgrid(line, line, indexing="ij")
    weights = np.multiply.outer(law.pmf(line), law.pmf(line))
    losses = {}
    for bins in (2, 8):
        merged = (first - second - 3) ** 2 / 2 <= 2 * np.log(bins) * law.variance
        error = np.where(merged, ((first + second) ** 2 + 9) / 2, first**2 + second**2)
        losses[bins] = float((error * weights).sum())
    assert risk("segmented", [Fraction(18), Fraction(21)], law) == pytest.approx(
        losses[8], rel=1e-12
    )
    assert losses[2] == pytest.approx(2.60, abs=0.005)
    assert losses[8] == pytest.approx(4.88, abs=0.005)
