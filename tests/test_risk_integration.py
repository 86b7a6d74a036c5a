"""Integration: its bound holds against the closed form, limits, symmetry and simulation."""

from fractions import Fraction
from itertools import permutations
from math import nextafter, pi, sqrt

import numpy as np
import pytest
from flint import arb, ctx
from scipy.integrate import dblquad

from countwise.adjust.histogram import ESTIMATORS
from countwise.errors import CountwiseError, InputError
from countwise.noise.laws import Geometric, Laplace
from countwise.risk.closed import CLOSED, enclosure, risk
from countwise.risk.integration import integrate
from countwise.risk.loss import best_method, expected_losses
from countwise.risk.monte_carlo import simulate_estimators
from countwise.risk.plane import Border, Region, integrate_plane, separated
from countwise.risk.tails import geometric_balls, laplace_balls, outside

ONE = Laplace(scale=Fraction(1))
UNIT = Geometric(scale=Fraction(1))
FAR = Fraction(10**9)
ZERO = Fraction(0)


def close(name: str, bins: list[Fraction], law: Laplace | Geometric, true: arb) -> None:
    """The bound is kept, and is no wider than doubles allow."""
    value, error = integrate(name, bins, law)
    assert float(abs(true - arb(value)).upper()) <= error
    assert error < (1e-15 if isinstance(law, Laplace) else 3e-10) * value


@pytest.mark.parametrize("name", CLOSED)
def test_bound_holds_on_many_points_under_laplace_noise(name: str) -> None:
    rng = np.random.default_rng(0)
    points = [[Fraction(int(n), 7) for n in row] for row in rng.integers(0, 80, (25, 2))]
    corners = [[ZERO, ZERO], [ZERO, Fraction(16)], [FAR, Fraction(2)], [FAR, FAR], [ZERO, FAR]]
    for bins in points + corners:
        for law in (ONE, Laplace(scale=Fraction(10, 3))):
            close(name, bins, law, enclosure(name, bins, law))


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("epsilon", ["0.1", "1", "5/3", "8"])
def test_bound_holds_under_geometric_noise(name: str, epsilon: str) -> None:
    law = Geometric(scale=1 / Fraction(epsilon))
    for row in np.random.default_rng(1).integers(0, 60, (4, 2)):
        bins = [Fraction(int(n)) for n in row]
        close(name, bins, law, enclosure(name, bins, law))


def test_bound_would_notice_another_estimator_or_a_digit() -> None:
    bins = [Fraction(3), Fraction(7)]
    value, error = integrate("noisefirst", bins, ONE)
    assert abs(value - risk("segmented", bins, ONE)) > error
    true = enclosure("noisefirst", bins, ONE)
    off = value + 1e-13
    assert float(abs(true - arb(off)).lower()) > error
    assert off != nextafter(value, off + 1)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("law", [ONE, UNIT], ids=["laplace", "geometric"])
@pytest.mark.parametrize("counts", [(0, 2, 3), (6, 1, 0), (4, 4, 4)])
def test_three_bins_agree_with_simulation(
    name: str, law: Laplace | Geometric, counts: tuple[int, ...]
) -> None:
    value, error = integrate(name, [Fraction(h) for h in counts], law)
    [(mean, spread)] = simulate_estimators(
        [ESTIMATORS[name]],
        np.array(counts, dtype=np.float64),
        law,
        draws=100_000,
        rng=np.random.default_rng(3),
    )
    assert error < 3e-10 * value
    assert abs(mean - value) < error + 5 * spread
    assert spread < 0.004 * mean


@pytest.mark.parametrize("name", ["noisefirst", "segmented"])
def test_a_bin_far_away_leaves_two(name: str) -> None:
    """It is a run of its own and adds the variance of its noise."""
    for a, b in ((0, 3), (5, 1), (2, 2)):
        pair = [Fraction(a), Fraction(b)]
        value, error = integrate(name, [*pair, FAR], ONE)
        with ctx.workprec(200):
            off = abs(enclosure(name, pair, ONE) + 2 - arb(value))
        assert float(off.upper()) <= error < 1e-14
        mirrored, _ = integrate(name, [FAR, *pair[::-1]], ONE)
        assert mirrored == pytest.approx(value, abs=1e-14)


def test_known_values_of_three_bins() -> None:
    """Resized, all empty: 15/8. Clipped: a sum over bins. A giant: two bins docked by their own."""
    assert integrate("resized", [ZERO] * 3, ONE)[0] == pytest.approx(15 / 8, abs=1e-14)
    bins = [Fraction(1), Fraction(5, 2), Fraction(0)]
    clipped = sum(2 - (h + 1) * np.exp(-h) for h in (1, 2.5, 0))
    assert integrate("clipped", bins, ONE)[0] == pytest.approx(clipped, abs=1e-14)
    assert integrate("clipped", [FAR, FAR, FAR], ONE)[0] == pytest.approx(6, abs=1e-14)
    assert integrate("resized", [FAR, FAR, FAR], ONE)[0] == pytest.approx(6, abs=1e-14)


@pytest.mark.parametrize("name", ["clipped", "resized"])
def test_order_of_three_bins_does_not_matter(name: str) -> None:
    bins = [Fraction(0), Fraction(7, 5), Fraction(3)]
    values = [integrate(name, list(order), ONE)[0] for order in permutations(bins)]
    assert values == pytest.approx([values[0]] * 6, abs=2e-15)


def test_merging_three_bins_is_symmetric_and_scales() -> None:
    """(0, 4, 0) has a kink of the density that touches the arc between two segmentations."""
    for counts in ((0, 4, 0), (0, 4, 1), (1, 5, 9)):
        bins = [Fraction(h) for h in counts]
        value, error = integrate("noisefirst", bins, ONE)
        again, other_error = integrate("noisefirst", bins[::-1], ONE)
        assert abs(Fraction(value) - Fraction(again)) <= error + other_error
        wide, wide_error = integrate(
            "noisefirst", [10 * h for h in bins], Laplace(scale=Fraction(10))
        )
        assert abs(Fraction(wide) - 100 * Fraction(value)) <= wide_error + 100 * error


def test_resized_three_bins_by_another_quadrature() -> None:
    """The expectation over two noises of the one-dimensional average over the third."""
    counts = np.array([0.0, 1, 2])
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    z = np.concatenate([-nodes, nodes])
    w = np.concatenate([weights, weights]) / 2
    noisy = np.stack(np.meshgrid(z, z, z, indexing="ij"), axis=-1)
    loss = ((ESTIMATORS["resized"](noisy + counts, law=ONE) - counts) ** 2).sum(axis=-1)
    rough = np.einsum("ijk,i,j,k->", loss, w, w, w)
    assert integrate("resized", [Fraction(int(h)) for h in counts], ONE)[0] == pytest.approx(
        rough, rel=2e-3
    )


def test_no_loss_is_above_what_the_tail_assumes() -> None:
    rng = np.random.default_rng(4)
    for law in (ONE, UNIT):
        for name, estimator in ESTIMATORS.items():
            for size in (2, 3):
                bins = rng.integers(0, 9, size) * rng.choice([0.0, 1, 10])
                noise = np.round(rng.laplace(scale=rng.choice([1, 9]), size=(4000, size)), 1)
                loss = ((estimator(bins + noise, law=law) - bins) ** 2).sum(axis=1)
                most = (noise**2).sum(axis=1) + (bins**2).sum()
                assert (loss <= most * (1 + 1e-12) + 1e-12).all(), name


def test_tail_is_the_expectation_it_says() -> None:
    """Against the sum over noise of which one entry is beyond 4, a union bound from above."""
    bins = [Fraction(1), Fraction(2)]
    noise = np.arange(-60, 61)
    x, y = np.meshgrid(noise, noise, indexing="ij")
    mass = np.outer(UNIT.pmf(noise), UNIT.pmf(noise)) * (x**2 + y**2 + 5)
    far = [(mass * (np.abs(each) > 4)).sum() for each in (x, y)]
    bound = float(outside(bins, geometric_balls(Fraction(1)), arb(4)).mid())
    assert bound == pytest.approx(sum(far), rel=1e-12)
    assert (mass * ((np.abs(x) > 4) | (np.abs(y) > 4))).sum() <= bound
    line = float(outside(bins, laplace_balls(), arb(4)).mid())
    assert line == pytest.approx(2 * np.exp(-4) * (16 + 8 + 2 + 2 + 5), rel=1e-12)


def test_plane_of_a_triangle_and_of_a_half_disc() -> None:
    """s²·t over a triangle against scipy; the area of a half of an ellipse."""
    whole = Fraction(1)
    lines = [Border(arb(0), ZERO), Border(arb(1), -whole), Border(arb(1), whole)]
    inside = Region((ZERO, ZERO, whole, ZERO, ZERO, ZERO), ((whole, 1, -1),))

    def triangle(s: arb, t: arb) -> Region | None:
        return inside if t > 0 and t < 1 - abs(s) else None

    with ctx.workprec(400):
        value = integrate_plane(lines, [], triangle, window=arb(5), most=arb(9))
        expected, _ = dblquad(
            lambda t, s: t * np.exp(s - t), -1, 1, 0, lambda s: 1 - abs(s), epsabs=1e-11
        )
        assert float(value.rad()) < 1e-17
        assert float(value.mid()) == pytest.approx(expected, abs=1e-9)
        arc = Border(arb(0), ZERO, 1, arb(3), arb(1))
        area = Region((whole, ZERO, ZERO, ZERO, ZERO, ZERO), ((whole, 0, 0),))

        def half(s: arb, t: arb) -> Region | None:
            """Cut off before the ends, where the root is not analytic."""
            return area if abs(s + 1) < 1 and t > 0 and t * t < 3 - (s + 1) ** 2 * 3 / 4 else None

        kinks = [arb(-2), arb(0)]
        cut = integrate_plane([lines[0], arc], kinks, half, window=arb(5), most=arb(9))
        exact = sqrt(3) * (sqrt(3) / 2 + pi / 3)
        assert float(cut.mid()) == pytest.approx(exact, rel=1e-14)


def test_points_too_close_are_one_and_counted() -> None:
    with ctx.workprec(400):
        near = arb(1) + arb(2) ** -200
        points, lost = separated([arb(1), near, arb(3)], window=arb(2))
        assert len(points) == 3
        assert points[1].contains(near)
        assert 0 < float(lost) < 1e-50
        with pytest.raises(CountwiseError, match="precision"):
            separated([arb(1), arb(1, 1e-20)], window=arb(2))


def test_sums_over_differences_and_over_all_noise_agree() -> None:
    """Three merged bins at ε = 2, where the whole lattice is small."""
    law = Geometric(scale=Fraction(1, 2))
    counts = np.array([1.0, 0, 2])
    noise = np.arange(-22, 23)
    noisy = np.stack(np.meshgrid(*(noise + h for h in counts), indexing="ij"), axis=-1)
    pmf = law.pmf(noise)
    for name in CLOSED:
        loss = ((ESTIMATORS[name](noisy, law=law) - counts) ** 2).sum(axis=-1)
        whole = np.einsum("ijk,i,j,k->", loss, pmf, pmf, pmf)
        value, error = integrate(name, [Fraction(int(h)) for h in counts], law)
        assert abs(value - whole) <= error + 1e-12


def test_each_estimator_gets_the_first_method_that_fits() -> None:
    bins = [Fraction(1)] * 3
    assert best_method("resized", bins, Geometric(scale=Fraction(2))) == "integration"
    assert best_method("resized", bins, Laplace(scale=Fraction(1000))) == "integration"
    wide = Geometric(scale=Fraction(4))
    rng = np.random.default_rng(0)
    found = expected_losses(bins, wide, draws=500, rng=rng)
    assert {each.estimator: each.method for each in found} == {
        **dict.fromkeys(CLOSED, "integration"),
        "resized": "simulation",
    }
    with pytest.raises(InputError, match="too long"):
        expected_losses(bins, wide, method="integration", rng=rng)


def test_refusals() -> None:
    with pytest.raises(InputError, match="two or three bins"):
        integrate("clipped", [ZERO] * 4, ONE)
    with pytest.raises(InputError, match="whole"):
        integrate("clipped", [ZERO, Fraction(1, 2)], UNIT)
