"""The closed-form posterior against brute force, both Gibbs samplers, and the coupled sums."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc, betaln, gammaln, xlogy

from countwise.kernels import coupled
from countwise.verification.proportion_posterior import ProportionPosterior, majorities
from countwise.verification.reference_samplers import coefficient_table, standard_draws, table_draws

CASES = [
    # noisy, M, epsilon, alpha
    ([38, 7, 5], 50, 1, [1, 1, 1]),
    ([50, 0, 0], 50, 1, [1, 1, 1]),
    ([-4, 9, 25], 30, 2, [1, 1, 1]),
    ([70, -30, 10], 50, 1, [1, 1, 1]),
    ([12.3, 4.9, 9.1], 20, 1, [1, 1, 1]),
    ([3.2, -1.5, 2.0], 12, 0.5, [0.5, 2.5, 1.0]),
    ([7, 3], 10, 1, [1, 1]),
    ([4, 1, 3, 2], 10, 1, [1, 1, 1, 1]),
    ([2.5, 3.1, -0.2, 1.9, 3.3], 9, 1.5, [0.7, 1, 2, 1, 1]),
]


def posterior(noisy, size, epsilon, alpha):
    return ProportionPosterior(
        noisy=np.array(noisy, dtype=float),
        partitions=size,
        epsilon=Fraction(str(epsilon)),
        alpha=np.array(alpha, dtype=float),
    )


def enumerated(noisy, size, epsilon, alpha):
    """All count vectors and their posterior probabilities, from the definition."""
    kinds = len(noisy)
    vectors = np.array(
        [v for v in product(range(size + 1), repeat=kinds - 1) if sum(v) <= size], dtype=float
    )
    vectors = np.column_stack([vectors, size - vectors.sum(axis=1)])
    logs = -epsilon / 2 * np.abs(vectors - np.array(noisy)).sum(axis=1)
    logs += (gammaln(np.array(alpha) + vectors) - gammaln(vectors + 1)).sum(axis=1)
    weights = np.exp(logs - logs.max())
    return vectors, weights / weights.sum()


@pytest.mark.parametrize("case", CASES)
def test_share_agrees_with_enumeration(case):
    alpha = case[3]
    vectors, weights = enumerated(*case)
    law = posterior(*case).share([0], [0, 1])
    a, b = alpha[0] + vectors[:, 0], alpha[1] + vectors[:, 1]
    for x in (0.001, 0.2, 0.5, 0.77, 0.999):
        assert law.cdf(x) == pytest.approx(weights @ betainc(a, b, x), abs=1e-12)
        density = np.exp(xlogy(a - 1, x) + xlogy(b - 1, 1 - x) - betaln(a, b))
        assert law.density(x) == pytest.approx(weights @ density, rel=1e-10)
    for q in (0.025, 0.5, 0.975):
        assert law.cdf(law.quantile(q)) == pytest.approx(q, abs=1e-11)
    assert law.above(0.5) == pytest.approx(weights @ betainc(b, a, 0.5), abs=1e-12)
    assert law.mean == pytest.approx(weights @ (a / (a + b)), abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_every_proportion_agrees_with_enumeration(case):
    _, size, _, alpha = case
    vectors, weights = enumerated(*case)
    whole = sum(alpha) + size
    for j in range(len(alpha)):
        law = posterior(*case).share([j])
        a = alpha[j] + vectors[:, j]
        assert law.cdf(0.3) == pytest.approx(weights @ betainc(a, whole - a, 0.3), abs=1e-12)


@pytest.mark.parametrize(
    "case", [*CASES, ([90, 60, 40, 70, 30, 10], 300, 0.2, [1, 0.5, 2, 1, 1, 3])]
)
def test_counts_agree_with_the_coupled_sums(case):
    noisy, size, epsilon, alpha = case
    x = np.arange(size + 1)
    weights = np.concatenate(
        [
            np.exp(-epsilon / 2 * abs(n - x) + gammaln(a + x) - gammaln(x + 1))
            for n, a in zip(noisy, alpha, strict=True)
        ]
    )
    offsets = np.arange(len(noisy) + 1) * (size + 1)
    found = coupled.marginals(
        weights,
        offsets,
        lows=np.zeros(len(noisy), dtype=np.int64),
        coupling=np.ones(1),
        coupling_low=size,
    ).reshape(len(noisy), size + 1)
    for j in range(len(noisy)):
        law = posterior(*case).share([j])
        assert law.total == size
        np.testing.assert_allclose(
            law.weights, found[j, law.low : law.low + len(law.weights)], atol=1e-12
        )


@pytest.mark.parametrize("case", CASES)
def test_mode_is_the_highest_point(case):
    law = posterior(*case).share([0], [0, 1])
    mode = law.mode
    grid = np.linspace(1e-6, 1 - 1e-6, 20_001)
    if case[3][0] >= 1 and case[3][1] >= 1:
        best = law.density(np.clip(mode, 1e-9, 1 - 1e-9))
        assert best >= law.density(grid).max() * (1 - 1e-9)


SHARP = [
    ([19.0, 1.0, 0.0], 20, 2, [0.2, 0.2, 0.2]),
    ([20.0, 0.0, 0.0], 20, 5, [0.3, 0.05, 0.5]),
    ([0.0, 12.0, 0.0], 12, 1, [0.05, 0.3, 0.2]),
    ([9.0, 2.0], 11, 0.5, [0.5, 0.2]),
    ([25.0, 25.0], 50, 1, [0.02, 0.02]),
]


@pytest.mark.parametrize("case", SHARP)
@pytest.mark.parametrize("q", [1e-6, 0.001, 0.025, 0.5, 0.975, 0.999, 1 - 1e-6])
def test_quantiles_next_to_an_end_are_right_to_a_rounding_of_x(case, q):
    """With alpha below 1 a quantile can be within 1e-13 of 1, or within 1e-100 of 0."""
    law = posterior(*case).share([0], [0, 1])
    x = law.quantile(q)
    a, b = law.a + law.low + np.arange(len(law.weights)), law.b + law.total - law.low
    b = b - np.arange(len(law.weights))

    def cdf(x):
        return law.weights @ betainc(a, b, x)

    below, above = x * (1 - 1e-11), x * (1 + 1e-11)
    if x > 0.5:
        below, above = 1 - (1 - x) * (1 + 1e-11), 1 - (1 - x) * (1 - 1e-11)
    below, above = min(below, np.nextafter(x, 0)), max(above, np.nextafter(x, 1))
    # Nearer to 0 than 1e-300, or to 1 than half a rounding, no double is.
    assert x <= 1e-299 or cdf(below) <= q + 1e-13
    assert above >= 1 or cdf(above) >= q - 1e-13


@pytest.mark.parametrize("case", SHARP)
def test_the_mode_is_an_end_where_the_density_is_largest_beside_it(case):
    law = posterior(*case).share([0], [0, 1])
    near = 10.0 ** np.linspace(-12, -1, 4000)
    points = np.concatenate([near, np.linspace(0.1, 0.9, 4000), 1 - near[::-1]])
    best = points[np.argmax(law.density(points))]
    assert law.mode == pytest.approx({points[0]: 0.0, points[-1]: 1.0}.get(best, best), abs=1e-3)


def test_a_density_that_rises_at_both_ends_and_has_a_hump():
    """All of r's mass is around 0.9 but for a spike at 1; no spike where the weight is nothing."""
    law = posterior([18.0, 2.0], 20, 3, [0.2, 0.2]).share([0], [0, 1])
    assert law.mode == 1.0
    law = posterior([18.0, 2.0], 20, 60, [0.2, 0.2]).share([0], [0, 1])
    assert 0.9 < law.mode < 0.95


def test_density_integrates_to_one():
    law = posterior([3.2, 9.9, 1.1], 14, 1, [1.5, 2, 0.8]).share([0], [0, 1])
    assert quad(lambda x: float(law.density(x)), 0, 1)[0] == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(("size", "epsilon"), [(1000, 1), (10_000, 1), (2000, 0.01)])
def test_large_problems_agree_with_beta_functions(size, epsilon):
    noisy = np.array([0.55 * size, 0.35 * size, 0.1 * size])
    law = posterior(noisy, size, epsilon, [1, 1, 1]).share([0], [0, 1])
    k = law.low + np.arange(len(law.weights))
    for x in (0.5, 0.6, 0.62):
        exact = law.weights @ betainc(law.a + k, law.b + law.total - k, x)
        assert law.cdf(x) == pytest.approx(exact, abs=1e-10)
    assert law.cdf(law.median) == pytest.approx(0.5, abs=1e-10)


def test_trimmed_supports_lose_nothing():
    # 600 partitions at epsilon 1 are trimmed to about 45 counts either side.
    noisy, size = [310, 240, 50], 600
    law = posterior(noisy, size, 1, [1, 1, 1]).share([0], [0, 1])
    s, t = np.meshgrid(np.arange(size + 1), np.arange(size + 1), indexing="ij")
    distance = abs(310 - s) + abs(240 - t) + abs(50 - (size - s - t))
    weights = np.where(s + t <= size, np.exp(-0.5 * distance), 0)
    weights /= weights.sum()
    exact = (weights * betainc(1 + s, 1 + t, 0.55)).sum()
    assert law.cdf(0.55) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("sampler", [standard_draws, table_draws])
@pytest.mark.parametrize("case", [CASES[0], CASES[4], CASES[7]])
def test_gibbs_samplers_agree_with_the_closed_form(sampler, case):
    noisy, size, epsilon, alpha = case
    draws = sampler(
        np.array(noisy, dtype=float),
        partitions=size,
        epsilon=Fraction(str(epsilon)),
        alpha=np.array(alpha, dtype=float),
        rng=np.random.default_rng(1),
        sweeps=41_000 if sampler is table_draws else 11_000,
        burn_in=1000,
    )
    r = draws[:, 0] / (draws[:, 0] + draws[:, 1])
    law = posterior(*case).share([0], [0, 1])
    # Draws are dependent: an effective size of a tenth of their number is assumed.
    tolerance = 4 * 0.5 / np.sqrt(len(r) / 10)
    for q in (0.1, 0.5, 0.9):
        assert np.mean(r <= law.quantile(q)) == pytest.approx(q, abs=tolerance)
    error = posterior(*case).share([len(noisy) - 1])
    assert np.mean(draws[:, -1] <= error.median) == pytest.approx(0.5, abs=tolerance)


@pytest.mark.parametrize(("size", "kinds"), [(50, 3), (20, 4), (12, 6), (1, 3)])
def test_coefficient_table_to_twelve_digits(size, kinds):
    rows, coefficients = coefficient_table(size, kinds)
    assert (rows.sum(axis=1) == size).all()
    assert len(np.unique(rows, axis=0)) == len(rows)
    exact = np.exp(gammaln(size + 1) - gammaln(rows + 1).sum(axis=1))
    rng = np.random.default_rng(2)
    for p in rng.dirichlet(np.ones(kinds), 200):
        ours = coefficients * np.exp((rows * np.log(p)).sum(axis=1))
        theirs = exact * np.exp((rows * np.log(p)).sum(axis=1))
        assert (np.abs(ours / theirs - 1) < 1e-12).all()
        assert ours.sum() == pytest.approx(1, abs=1e-12)


def test_coefficient_table_has_the_papers_order():
    rows, coefficients = coefficient_table(50, 3)
    assert rows[:6].tolist() == [
        [50, 0, 0], [49, 0, 1], [49, 1, 0], [48, 0, 2], [48, 1, 1], [48, 2, 0],
    ]  # fmt: skip
    assert coefficients[:6].tolist() == [1, 50, 50, 1225, 2450, 1225]


def test_the_papers_frozen_sampler_is_wrong():
    # Balmat et al. 2018 never update p; one noisy vector then gives .69 to .85 for a median.
    noisy, rng = np.array([38.0, 9.0, 3.0]), np.random.default_rng(5)
    rows, coefficients = coefficient_table(50, 3)
    lap = -0.5 * np.abs(rows - noisy).sum(axis=1)
    medians = []
    for _ in range(4):
        p = rng.dirichlet(np.ones(3))
        logs = np.log(coefficients) + (rows * np.log(p)).sum(axis=1) + lap
        weights = np.exp(logs - logs.max())
        chosen = rows[rng.choice(len(rows), 400, p=weights / weights.sum())]
        draws = np.array([rng.dirichlet(1 + s) for s in chosen])
        medians.append(np.median(draws[:, 0] / (draws[:, 0] + draws[:, 1])))
    exact = posterior(noisy, 50, 1, [1, 1, 1]).share([0], [0, 1]).median
    assert max(abs(np.array(medians) - exact)) > 0.02


def test_many_majorities_are_the_posteriors():
    rng = np.random.default_rng(3)
    for kinds in (2, 3):
        noisy = rng.normal(10, 12, size=(20, kinds))
        alpha = np.array([1, 1.5, 0.7][:kinds])
        found = majorities(noisy, partitions=25, epsilon=Fraction(1), alpha=alpha, border=0.42)
        for row, (above, errors, below) in zip(noisy, found, strict=True):
            exact = posterior(row, 25, 1, alpha)
            law = exact.share([0], [0, 1])
            assert above == pytest.approx(law.above(0.58), abs=1e-12)
            assert below == pytest.approx(law.cdf(0.42), abs=1e-12)
            if kinds == 3:
                assert errors == pytest.approx(exact.share([2]).above(0.5), abs=1e-12)
