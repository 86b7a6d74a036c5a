"""Noise laws against direct summation and against one another."""

from fractions import Fraction

import numpy as np
import pytest
from flint import ctx

from countwise.errors import PlanError
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.laws import (
    Exact,
    Geometric,
    IntegerLaw,
    Laplace,
    RoundedLaplace,
)

KINDS = list(dict.fromkeys(each.law for each in MECHANISMS.values()))
SCALES = [Fraction(text) for text in ("1/2", "1", "3/2", "7/3", "3", "10")]
LAWS = [kind(scale=scale) for kind in KINDS for scale in SCALES]
K = np.arange(-900, 901)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_probabilities_add_up_to_the_other_functions(law: IntegerLaw) -> None:
    pmf = law.pmf(K)
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(np.cumsum(pmf), law.cdf(K), atol=1e-13)
    np.testing.assert_allclose(law.sf(K), 1 - law.cdf(K), atol=1e-13)
    assert (K**2 * pmf).sum() == pytest.approx(law.variance, rel=1e-10)
    inner = np.arange(-30, 30)
    np.testing.assert_allclose(law.slope(inner), np.diff(law.logpmf(np.arange(-30, 31))), atol=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_quantiles_invert_the_distribution_function(law: IntegerLaw) -> None:
    p = np.concatenate([np.random.default_rng(1).random(500), [1e-12, 1e-6, 1 - 1e-6]])
    upper = law.isf(p)
    assert (law.sf(upper) <= p).all()
    assert (law.sf(upper - 1) > p).all()
    lower = law.quantile(p)
    assert (law.cdf(lower) >= p).all()
    assert (law.cdf(lower - 1) < p).all()
    margin = law.margin(0.95)
    assert law.pmf(np.arange(-margin, margin + 1)).sum() >= 0.95
    assert margin == 0 or law.pmf(np.arange(1 - margin, margin)).sum() < 0.95


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_balls_enclose_the_floating_point_values(law: IntegerLaw) -> None:
    with ctx.workprec(160):
        for k in (-40, -7, -1, 0, 1, 12):
            assert float(law.cdf_ball(k)) == pytest.approx(float(law.cdf(k)), abs=1e-14)


def test_log_concave_slopes_fall_and_mirror() -> None:
    for law in LAWS:
        slopes = law.slope(np.arange(-50, 50))
        assert (np.diff(slopes) <= 1e-15).all()
        np.testing.assert_allclose(slopes, -slopes[::-1])


def test_colemans_variance_and_inequality() -> None:
    """Coleman 2020: 2·e^-ε/(1-e^-ε)², never above the 2/ε² of Laplace noise."""
    for epsilon in ("0.01", "0.1", "0.5", "1", "2", "3", "5", "10"):
        scale = 1 / Fraction(epsilon)
        e = float(epsilon)
        geometric = Geometric(scale=scale).variance
        assert geometric == pytest.approx(2 * np.exp(-e) / (1 - np.exp(-e)) ** 2, rel=1e-12)
        assert geometric < Laplace(scale=scale).variance
        assert geometric < RoundedLaplace(scale=scale).variance
    three = Fraction(1, 3)
    assert Laplace(scale=three).variance / Geometric(scale=three).variance > 2


def test_laplace_is_a_distribution() -> None:
    law = Laplace(scale=Fraction(7, 3))
    x = np.linspace(-120, 120, 2_000_001)
    step = x[1] - x[0]
    assert law.pdf(x).sum() * step == pytest.approx(1, abs=1e-6)
    assert (x**2 * law.pdf(x)).sum() * step == pytest.approx(law.variance, rel=1e-5)
    p = np.array([0.01, 0.3, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(law.cdf(law.quantile(p)), p)


def test_rounding_laplace_noise_gives_the_rounded_law() -> None:
    exact, rounded = Laplace(scale=Fraction(3, 2)), RoundedLaplace(scale=Fraction(3, 2))
    k = np.arange(-20, 21)
    np.testing.assert_allclose(rounded.pmf(k), exact.cdf(k + 0.5) - exact.cdf(k - 0.5))


def test_exact_counts_have_no_noise() -> None:
    law = Exact()
    assert law.pmf([0, 1]).tolist() == [1, 0]
    assert law.variance == 0
    assert law.margin(0.95) == 0


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(2**41)])
def test_scales_out_of_range_are_refused(scale: Fraction) -> None:
    with pytest.raises(PlanError, match="noise scale must be positive"):
        Geometric(scale=scale)
