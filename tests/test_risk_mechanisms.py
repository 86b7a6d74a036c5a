"""Mechanisms: closed forms against sums over the law, privacy of the matched Gaussian, figures."""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest

from countwise.noise.laws import DiscreteGaussian, IntegerLaw, Laplace
from countwise.pages.lines import Axis, Line, lines
from countwise.reports.risk_page import mechanisms_page
from countwise.risk.mechanisms import (
    MECHANISMS,
    SALARIES,
    compare,
    count_error,
    gaussian_delta,
    histogram_error,
    law_of,
    mean_absolute,
    narrowest_gaussian,
)

EPSILONS = [Fraction(1, 10), Fraction(1), Fraction(3)]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_closed_forms_are_sums_over_the_law(mechanism: str, epsilon: Fraction) -> None:
    law = law_of(mechanism, epsilon)
    error = count_error(mechanism, epsilon)
    if isinstance(law, Laplace):
        assert error.variance == pytest.approx(float(2 / epsilon**2), rel=1e-15)
        assert error.mean_absolute == float(1 / epsilon)
        for p, w in error.within.items():
            assert 1 - exp(-w * epsilon) == pytest.approx(float(p))
        return
    assert isinstance(law, IntegerLaw)
    k = np.arange(-2000, 2001)
    mass = law.pmf(k)
    assert error.variance == pytest.approx((k**2 * mass).sum(), rel=1e-10)
    assert error.mean_absolute == pytest.approx((np.abs(k) * mass).sum(), rel=1e-10)
    for p, within in error.within.items():
        assert mass[np.abs(k) <= within].sum() >= float(p)
        assert within == 0 or mass[np.abs(k) < within].sum() < float(p)


def test_geometric_beats_laplace_as_coleman_says() -> None:
    ratio = {
        e: count_error("laplace", e).variance / count_error("geometric", e).variance
        for e in EPSILONS
    }
    assert ratio[EPSILONS[0]] < 1.001
    assert ratio[EPSILONS[1]] == pytest.approx(1.086, abs=1e-3)
    assert (
        count_error("laplace", Fraction(5)).variance
        > 5 * count_error("geometric", Fraction(5)).variance
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_delta_is_the_sum_of_what_exceeds(epsilon: Fraction) -> None:
    for scale in (Fraction(1), Fraction(5, 2), Fraction(20)):
        law = DiscreteGaussian(scale=scale)
        k = np.arange(-600, 601)
        over = np.maximum(law.pmf(k) - exp(epsilon) * law.pmf(k - 1), 0).sum()
        assert gaussian_delta(law, epsilon) == pytest.approx(over, rel=1e-6, abs=1e-15)


def test_matched_gaussian_is_just_private() -> None:
    for epsilon in EPSILONS:
        scale = narrowest_gaussian(epsilon, 1e-6)
        law = DiscreteGaussian(scale=scale)
        tighter = DiscreteGaussian(scale=scale * Fraction(99, 100))
        assert gaussian_delta(law, epsilon) <= 1e-6 < gaussian_delta(tighter, epsilon)
    assert law_of("gaussian-rho", Fraction(1, 3)).scale == 3


def test_payroll() -> None:
    assert len(SALARIES) == 50
    assert sum(SALARIES) == 29_000
    assert sum(SALARIES[36:]) == 10


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_simulated_histogram_has_the_closed_mean(mechanism: str) -> None:
    rng = np.random.default_rng(0)
    found = histogram_error(mechanism, Fraction(1), SALARIES, draws=4000, rng=rng)
    expected = 50 * mean_absolute(law_of(mechanism, Fraction(1)))
    assert found.l1 == pytest.approx(expected, abs=5 * found.l1_sd / sqrt(4000))
    assert found.l1_clipped < found.l1
    variance = law_of(mechanism, Fraction(1)).variance
    assert found.l2**2 + found.l2_sd**2 == pytest.approx(50 * variance, rel=0.03)


def test_page_has_two_figures_with_names_and_bands() -> None:
    rng = np.random.default_rng(0)
    pairs = compare([Fraction(1, 2), Fraction(1), Fraction(2)], SALARIES, draws=20, rng=rng)
    page = mechanisms_page(pairs, bins=50, draws=20, delta=1e-6)
    assert page.count('role="img"') == 2
    assert page.count('class="band') == 5
    assert all(page.count(f"</svg>{name}</li>") == 2 for name in MECHANISMS)
    assert "nan" not in page
    assert "inf" not in page.replace("info", "")


def test_one_epsilon_is_enough_for_a_page() -> None:
    pairs = compare([Fraction(1)], [5, 0], draws=3, rng=np.random.default_rng(0))
    page = mechanisms_page(pairs, bins=2, draws=3, delta=1e-6)
    assert page.count('role="img"') == 2


def test_chart_escapes_and_places() -> None:
    curve = Line(label="<b>&", x=[0.1, 1, 10], y=[100, 1, 0.01])
    svg = lines([curve], title="t", x_axis="x", y_axis="y", log_x=True, log_y=True)
    assert "&lt;b&gt;&amp;" in svg
    assert "<b>" not in svg
    axis = Axis(0.1, 10, 0, 100, log=True)
    assert [axis.place(v) for v in (0.001, 0.1, 1, 10, 99)] == [0, 0, 50, 100, 100]
    assert axis.ticks() == [0.1, 0.2, 0.5, 1, 2, 5, 10]
