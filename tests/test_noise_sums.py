"""The law of a sum of noises against recurrences, closed forms and convolutions."""

from fractions import Fraction
from math import exp, expm1, sqrt

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import logsumexp

from countwise.adjust.count_modes import posterior_modes
from countwise.arrays import FloatArray
from countwise.noise.laws import (
    DiscreteGaussian,
    Exact,
    Geometric,
    IntegerLaw,
    RoundedLaplace,
)
from countwise.noise.noise_sums import LONGEST, sum_of

Terms = dict[IntegerLaw, int]


def geometric(scale: str) -> Geometric:
    return Geometric(scale=Fraction(scale))


def laplace(scale: str) -> RoundedLaplace:
    return RoundedLaplace(scale=Fraction(scale))


def gaussian(scale: str) -> DiscreteGaussian:
    return DiscreteGaussian(scale=Fraction(scale))


def deviation(terms: Terms) -> float:
    return sqrt(sum(n * law.variance for law, n in terms.items()))


def check(got: FloatArray, expected: FloatArray, sd: float) -> None:
    """To eleven digits, where slopes are small to as much of a slope one deviation out."""
    np.testing.assert_array_less(np.abs(got - expected), 1e-11 * (np.abs(expected) + 1 / sd))


def by_recurrence(rate: float, terms: int, far: int) -> FloatArray:
    """Slopes of S equal geometric noises at 0, …, far-1, in α = e^{-rate}.

    Their generating function g has z·g'/g = S·α(z - 1/z)/((1 - αz)(1 - α/z)), so
    (1 + α²)k·p_k = α(k-1+S)·p_{k-1} + α(k+1-S)·p_{k+1}. It is followed downwards, where errors
    die out, in d_k = 1 - p_{k+1}/p_k, which keeps its digits where the law is wide.
    """
    alpha, d = exp(-rate), -expm1(-rate)
    square = d * d
    falls = np.empty(far)
    for k in range(far + int(25 / rate) + 50, 0, -1):
        lost = k * square + alpha * (k + 1 - terms) * d
        d = lost / (lost + alpha * (k - 1 + terms))
        if k <= far:
            falls[k - 1] = d
    return np.log1p(-falls)


def by_convolution(terms: Terms, far: int) -> FloatArray:
    """Slopes at 0, …, far-1, adding positive numbers only, in logarithms, far beyond `far`."""
    wide = far + 10 + int(25 * max(law.scale for law in terms))
    places = np.arange(-wide, wide + 1)
    total = np.where(places == 0, 0.0, -np.inf)
    for law, n in terms.items():
        doubled = law.logpmf(places)
        for digit in reversed(f"{n:b}"):
            total = convolved(total, doubled) if digit == "1" else total
            doubled = convolved(doubled, doubled)
    return np.diff(total[wide : wide + far + 1])


def convolved(x: FloatArray, y: FloatArray) -> FloatArray:
    """log Σ_j exp(x_j + y_{k-j}), all three on -w … w."""
    padded = np.pad(y[::-1], len(y) // 2, constant_values=-np.inf)
    return logsumexp(x + sliding_window_view(padded, len(x))[::-1], axis=1)


@pytest.mark.parametrize("terms", [2, 6, 50, 1000])
@pytest.mark.parametrize("epsilon", ["10", "1", "0.01", "0.001"])
def test_equal_geometric_noises_follow_their_recurrence(epsilon: str, terms: int) -> None:
    law = Geometric(scale=1 / Fraction(epsilon))
    sd = deviation({law: terms})
    far = min(int(110 * sd) + 10, 1_000_000)
    got = sum_of({law: terms}).slope(np.arange(far))
    check(got, by_recurrence(law.rate, terms, far), sd)


MIXED: list[Terms] = [
    {geometric("1"): 2},
    {geometric("1/10"): 6},
    {geometric("3"): 6},
    {laplace("1/10"): 2},
    {laplace("1"): 6},
    {laplace("1"): 50},
    {gaussian("1/10"): 6},
    {gaussian("1"): 2},
    {gaussian("1/3"): 50},
    {gaussian("5"): 6},
    {geometric("5"): 1, gaussian("2"): 3},
    {geometric("4"): 1, geometric("1"): 1},
    {gaussian("3"): 1, gaussian("1/2"): 2},
    {laplace("2"): 3, geometric("1"): 2, gaussian("3/2"): 4},
]


@pytest.mark.parametrize("terms", MIXED, ids=str)
def test_any_noises_follow_their_convolution(terms: Terms) -> None:
    sd = deviation(terms)
    far = int(101 * sd) + 10
    check(sum_of(terms).slope(np.arange(far)), by_convolution(terms, far), sd)


@pytest.mark.parametrize("terms", [*MIXED, {geometric("100"): 50}, {laplace("9000"): 3}], ids=str)
def test_slopes_fall_and_mirror_without_rounding(terms: Terms) -> None:
    law, far = sum_of(terms), int(300 * deviation(terms)) + 100
    places = np.concatenate([np.arange(1000), np.geomspace(1000, 1e4 * far, 5000).astype(np.int64)])
    slopes = law.slope(places)
    assert (np.diff(slopes) <= 0).all()
    assert slopes[0] < 0
    np.testing.assert_array_equal(law.slope(-places - 1), -slopes)


def two_geometric(law: Geometric, k: FloatArray) -> FloatArray:
    """P(k) is in proportion to (k + (1+α²)/(1-α²))·α^k."""
    constant = (1 + law.alpha**2) / -expm1(-2 * law.rate)
    return np.log1p(1 / (k + constant)) - law.rate


@pytest.mark.parametrize("scale", ["1", "1000", "10000", "1000000", "1000000000"])
def test_wide_sums_and_places_beyond_the_table_are_nearly_exact(scale: str) -> None:
    law = geometric(scale)
    k = np.unique(np.geomspace(1, 1e6 * float(law.scale), 3000).astype(np.int64))
    got, expected = sum_of({law: 2}).slope(k), two_geometric(law, k)
    assert (np.abs(got - expected) < 1 / k).all()
    np.testing.assert_allclose(got, expected, atol=2e-5 * law.rate)
    near = k < 100 * deviation({law: 2})
    np.testing.assert_allclose(got[near], expected[near], atol=3e-7 * law.rate)


@pytest.mark.parametrize(("scale", "terms"), [("1/10", 2), ("1/2", 3), ("1", 2), ("5", 50)])
def test_gaussian_noises_repeat_themselves(scale: str, terms: int) -> None:
    """Every term one higher is a tilt by 1/scale², so slope(k + S) = slope(k) - 1/scale²."""
    law = sum_of({gaussian(scale): terms})
    k = np.unique(np.geomspace(1, 1e6, 2000).astype(np.int64))
    expected = law.slope(k % terms) - (k // terms) / float(Fraction(scale)) ** 2
    np.testing.assert_allclose(law.slope(k), expected, rtol=5e-3)
    within = k < 600
    np.testing.assert_allclose(law.slope(k)[within], expected[within], rtol=1e-12)


def test_a_slope_is_the_same_whatever_else_is_asked() -> None:
    law = sum_of({geometric("2"): 7})
    alone = law.slope(np.arange(50))
    assert (law.slope(np.append(np.arange(50), LONGEST // 8))[:50] == alone).all()
    assert law.slope(np.empty(0, np.int64)).shape == (0,)
    assert float(law.slope(3)) == alone[3]


def test_sums_of_one_or_none() -> None:
    one, none = geometric("2"), Exact()
    assert sum_of({}) == sum_of({none: 3}) == sum_of({one: 0}) == none
    assert sum_of({one: 1, none: 4}) == one
    assert sum_of({one: 2, laplace("1"): 1}) == sum_of({laplace("1"): 1, one: 2, none: 9})


def test_two_equal_sums_meet_in_the_middle() -> None:
    for terms in MIXED:
        law = sum_of(terms)
        for apart in (10, 500, 20_000):
            meet = posterior_modes([(np.array([7]), law), (np.array([7 + apart]), law)])
            assert meet.tolist() == [7 + apart // 2]
