"""Posteriors from published noisy counts, against brute force and the true counts."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import countwise as cw
from cases import HARD_CASES, Case, flat, tree
from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, IntegerLaw, RoundedLaplace
from countwise.release.run import release
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.measured_nodes import MeasuredTies, measured
from countwise.sumproduct.node_noise import mixed_noise
from countwise.sumproduct.priors import (
    Compositions,
    NegativeBinomial,
    Pmf,
    Poisson,
    Prior,
    Shares,
    Uniform,
)
from countwise.sumproduct.tree import Family, solve
from countwise.tables.confidential import Confidential
from countwise.tables.measurements import Measurements
from countwise.tables.reading import read_public_counts
from needs import needs
from posteriors import sum_grid

NORTH_CAROLINA = Path(__file__).parents[2] / "shared/data/nc_tracts_2020.csv"
TOPS = 12


def noisy_flat(seed: int, laws: list[IntegerLaw], size: int) -> Measurements:
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 7, size)
    noisy = [np.array([cells.sum() + rng.integers(-3, 4)]), cells + rng.integers(-3, 4, size)]
    return Measurements(hierarchy=flat(size), laws=tuple(laws), noisy=tuple(noisy))


def brute_flat(measurements: list[Measurements], size: int, prior: FloatArray) -> FloatArray:
    """The joint posterior on the grid 0..TOPS of every cell; prior on the same grid."""
    joint = prior.copy()
    grid = np.arange(TOPS + 1)
    sums = sum_grid([TOPS + 1] * size)
    for each in measurements:
        joint = joint * each.laws[0].pmf(each.noisy[0][0] - sums)
        for s in range(size):
            shape = [1] * size
            shape[s] = TOPS + 1
            joint = joint * each.laws[1].pmf(each.noisy[1][s] - grid).reshape(shape)
    return joint / joint.sum()


def compare(post: cw.inference.posterior.Posterior, joint: FloatArray) -> None:
    for s, name in enumerate(post.hierarchy.labels[0]):
        others = tuple(i for i in range(joint.ndim) if i != s)
        found = [post.node(name).pmf(x) for x in range(TOPS + 1)]
        np.testing.assert_allclose(found, joint.sum(axis=others), atol=1e-11)
    sums = sum_grid(joint.shape).ravel()
    expected = np.bincount(sums, joint.ravel())
    found = [post.node("total").pmf(x) for x in range(len(expected))]
    np.testing.assert_allclose(found, expected, atol=1e-11)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(
    "laws",
    [
        (Geometric(scale=Fraction(1)), Geometric(scale=Fraction(1))),
        (Geometric(scale=Fraction(3)), RoundedLaplace(scale=Fraction(1, 2))),
        (DiscreteGaussian(scale=Fraction(1)), DiscreteGaussian(scale=Fraction(2))),
        (Exact(), Geometric(scale=Fraction(2))),
    ],
)
def test_one_table_against_all_combinations(size: int, laws: tuple[IntegerLaw, ...]) -> None:
    measurements = noisy_flat(size, list(laws), size)
    if isinstance(laws[0], Exact):
        measurements.noisy[0][0] = 4 * size
    flat_prior = np.ones([TOPS + 1] * size)
    joint = brute_flat([measurements], size, flat_prior)
    compare(cw.infer_measurements([measurements], prior=Uniform(TOPS)), joint)


def test_any_number_of_noisy_values() -> None:
    laws = [
        [Geometric(scale=Fraction(1)), Geometric(scale=Fraction(2))],
        [DiscreteGaussian(scale=Fraction(2)), RoundedLaplace(scale=Fraction(1))],
        [Geometric(scale=Fraction(1, 2)), Geometric(scale=Fraction(5))],
    ]
    several = [noisy_flat(7, each, 2) for each in laws]
    joint = brute_flat(several, 2, np.ones((TOPS + 1, TOPS + 1)))
    compare(cw.infer_measurements(several, prior=Uniform(TOPS)), joint)
    one = brute_flat(several[:1], 2, np.ones((TOPS + 1, TOPS + 1)))
    assert np.abs(joint - one).max() > 0.01


def prior_grid(prior: Prior) -> FloatArray:
    """p(N1, N2) on the grid, from the definition of each prior."""
    x = np.arange(TOPS + 1)
    first = np.exp(prior.log_cells(np.zeros(TOPS + 1, np.int64), x))
    second = np.exp(prior.log_cells(np.ones(TOPS + 1, np.int64), x))
    total = np.exp(prior.log_total(np.arange(2 * TOPS + 1), 2))
    return first[:, None] * second * total[sum_grid([TOPS + 1] * 2)]


@pytest.mark.parametrize(
    "prior",
    [
        Poisson(3.0),
        Poisson([2.0, 6.0]),
        NegativeBinomial(3.0, 0.5),
        Pmf([0.5, 0.3, 0.1, 0.05, 0.05]),
        Pmf([[0.2, 0.8], [0.0, 0.1, 0.2, 0.7]]),
        Compositions(Poisson(6.0)),
        Shares([0.3, 0.7], Poisson(6.0)),
    ],
)
def test_priors_against_all_combinations(prior: Prior) -> None:
    """Noise so small that the grid holds all mass."""
    laws = [Geometric(scale=Fraction(1, 5))] * 2
    measurements = Measurements(
        hierarchy=flat(2), laws=tuple(laws), noisy=(np.array([4]), np.array([1, 3]))
    )
    joint = brute_flat([measurements], 2, prior_grid(prior))
    compare(cw.infer_measurements([measurements], prior=prior), joint)


def test_known_laws_of_the_priors() -> None:
    x = np.arange(400)
    zero = np.zeros(400, np.int64)
    assert np.exp(Poisson(3.0).log_cells(zero, x)).sum() == pytest.approx(1)
    p = np.exp(NegativeBinomial(3.0, 0.5).log_cells(zero, x))
    assert (p * x).sum() == pytest.approx(3, rel=1e-9)
    assert (p * x * x).sum() - 9 == pytest.approx(3 + 9 / 0.5, rel=1e-6)
    ways = np.exp(-Compositions().log_total(np.array([5]), 3))
    assert ways[0] == pytest.approx(21)
    multinomial = Shares([1.0, 3.0])
    chance = np.exp(
        multinomial.log_cells(np.array([0, 1]), np.array([2, 3])).sum()
        + multinomial.log_total(np.array([5]), 2)[0]
    )
    assert chance == pytest.approx(10 * 0.25**2 * 0.75**3)


def test_a_tree_against_all_combinations_with_noise_that_differs_by_node() -> None:
    hierarchy, tops = tree(2, 2), 6
    laws = [
        [Geometric(scale=Fraction(1))],
        [Geometric(scale=Fraction(2)), RoundedLaplace(scale=Fraction(1, 2))],
        [
            Geometric(scale=Fraction(1)),
            Geometric(scale=Fraction(3)),
            DiscreteGaussian(scale=Fraction(2)),
            Geometric(scale=Fraction(1)),
        ],
    ]
    noisy = [np.array([9]), np.array([3, 7]), np.array([-1, 4, 2, 3])]
    seen = [
        [Evidence(noise=mixed_noise(level), values=values)]
        for level, values in zip(laws, noisy, strict=True)
    ]
    solved = solve(measured(hierarchy, seen, Uniform(tops)))
    joint = np.zeros([tops + 1] * 4)
    for x in product(range(tops + 1), repeat=4):
        values = [[sum(x)], [x[0] + x[1], x[2] + x[3]], x]
        joint[x] = np.prod(
            [
                law.pmf(n - v)
                for level in range(3)
                for law, n, v in zip(laws[level], noisy[level], values[level], strict=True)
            ]
        )
    joint /= joint.sum()
    cells = next(solved.marginals(2))
    for s in range(4):
        low, law = cells.one(s)
        expected = joint.sum(axis=tuple(i for i in range(4) if i != s))
        np.testing.assert_allclose(law, expected[low : low + len(law)], atol=1e-12)


FEASIBLE = [each for each in HARD_CASES if each.name != "epsilon tiny"]


@pytest.mark.parametrize("case", FEASIBLE, ids=lambda case: case.name)
def test_hard_cases_have_a_posterior_that_adds_up(case: Case) -> None:
    made = release(Confidential(case.hierarchy, case.cells), case.make_plan())
    post = cw.infer(made, prior="uniform")
    for level, offsets in enumerate(case.hierarchy.offsets):
        means = [post.summaries(d).mean for d in (level, level + 1)]
        sums = np.add.reduceat(means[1], offsets[:-1])
        np.testing.assert_allclose(sums, means[0], rtol=1e-9, atol=1e-5)
        assert np.isfinite(means[1]).all()


def test_tiny_epsilon() -> None:
    case = next(each for each in HARD_CASES if each.name == "epsilon tiny")
    made = release(Confidential(case.hierarchy, case.cells), case.make_plan(epsilon="0.01"))
    post = cw.infer(made, prior="uniform")
    sums = np.add.reduceat(post.summaries(2).mean, case.hierarchy.offsets[1][:-1])
    np.testing.assert_allclose(sums, post.summaries(1).mean, rtol=1e-6)


def test_noisy_counts_that_contradict_each_other() -> None:
    """A total 300 above its parts: windows widen, and the gap is shared by what is likely."""
    law = Geometric(scale=Fraction(1))
    measurements = Measurements(
        hierarchy=flat(2), laws=(law, law), noisy=(np.array([400]), np.array([50, 50]))
    )
    post = cw.infer_measurements([measurements], prior="uniform")
    first = post.node("0000000")
    # With a total N of 100..400 all splits have weight e^-300: uniform over a triangle.
    assert first.mean == pytest.approx(50 + 100, abs=1.0)
    assert post.node("total").mean == pytest.approx(300, abs=1.0)


def test_every_node_of_north_carolina() -> None:
    needs(NORTH_CAROLINA.exists(), "the shared data beside the project")
    by = ["state", "county", "tract", "race"]
    hierarchy, cells = read_public_counts(NORTH_CAROLINA, by=by, count="count")
    law = Geometric(scale=Fraction(1))
    rng = np.random.default_rng(4)
    true = hierarchy.sums(cells)
    noisy = tuple(each + geometric(rng, law, len(each)) for each in true)
    measured = Measurements(hierarchy=hierarchy, laws=(law,) * 5, noisy=noisy)
    post = cw.infer_measurements([measured], prior="uniform")
    for level in (3, 4):
        found = post.summaries(level)
        covered = np.mean((found.lower <= true[level]) & (true[level] <= found.upper))
        assert 0.94 < covered < 0.995
        error = np.mean((found.mean - true[level]) ** 2)
        assert error < 0.95 * np.mean((np.maximum(noisy[level], 0) - true[level]) ** 2)
        assert np.mean(found.sd**2) == pytest.approx(error, rel=0.15)


def geometric(rng: np.random.Generator, law: Geometric, size: int) -> IntArray:
    return rng.geometric(1 - law.alpha, size) - rng.geometric(1 - law.alpha, size)


def test_a_prior_that_excludes_the_release_is_refused() -> None:
    measurements = Measurements(
        hierarchy=flat(2), laws=(Exact(), Exact()), noisy=(np.array([5]), np.array([2, 3]))
    )
    with pytest.raises(InputError, match="contradicts"):
        cw.infer_measurements([measurements], prior="uniform:1")
    wrong = Measurements(
        hierarchy=flat(2), laws=(Exact(), Exact()), noisy=(np.array([6]), np.array([2, 3]))
    )
    with pytest.raises(InputError, match="contradicts"):
        cw.infer_measurements([wrong])


@pytest.mark.parametrize(
    "text", ["poisson", "uniform:x", "normal:3", "negative-binomial:3", "poisson:-1", "pmf:"]
)
def test_priors_that_are_none_are_refused(text: str) -> None:
    law = Geometric(scale=Fraction(1))
    measurements = noisy_flat(1, [law, law], 2)
    with pytest.raises(InputError):
        cw.infer_measurements([measurements], prior=text)


@pytest.mark.parametrize("seed", range(6))
def test_joint_mode_of_a_tree_is_the_best_of_all_combinations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hierarchy, tops = tree(2, 2), 8
    laws = tuple(Geometric(scale=Fraction(s)) for s in (1, 2, 1))
    noisy = (rng.integers(3, 16, 1), rng.integers(-2, 12, 2), rng.integers(-3, 8, 4))
    measurements = Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy)

    def log(cells: tuple[int, ...]) -> float:
        levels = hierarchy.sums(np.array(cells))
        return sum(
            float(law.logpmf(n - v).sum()) for law, n, v in zip(laws, noisy, levels, strict=True)
        )

    best = max(log(cells) for cells in product(range(tops + 1), repeat=4))
    found = cw.infer_measurements([measurements], prior=Uniform(tops)).joint_mode()
    assert log(tuple(found[-1].tolist())) == pytest.approx(best, abs=1e-9)
    np.testing.assert_array_equal(hierarchy.sums(found[-1])[1], found[1])


@pytest.mark.parametrize("source", ["measurements", "counts"])
def test_statements_across_families_are_exact(source: str) -> None:
    """Against joint draws, and against the exact law of siblings where both are known."""
    hierarchy = tree(2, 2, 2)
    cells = np.array([3, 0, 8, 5, 1, 2, 6, 4])
    made = release(Confidential(hierarchy, cells), cw.Plan(epsilon=6, adjust="mode"))
    post = cw.infer(made, source=source, prior="uniform")
    draws = post.draws(20_000, rng=np.random.default_rng(3))
    names = [f"00000/00001/{i:05}" for i in range(2)] + ["00001/00000/00001", "00001/00001"]
    for one, other in ((0, 2), (1, 3), (3, 0), (2, 3)):
        first, second = names[one], names[other]
        found = post.probability(f"'{first}' > '{second}'")
        assert found.exact
        share = (draws[first] > draws[second]).mean()
        assert abs(found - share) < 5 * np.sqrt(0.25 / 20_000)
    below = post.probability("'00000/00000/00001' / total >= 0.2")
    share = (draws["00000/00000/00001"] >= 0.2 * draws["total"]).mean()
    assert below.exact
    assert abs(below - share) < 5 * np.sqrt(0.25 / 20_000)
    law = post.law(f"'{names[0]}' - '{names[2]}'")
    mean = post.node(names[0]).mean - post.node(names[2]).mean
    assert law.mean == pytest.approx(mean, abs=1e-9)
    assert law.chances.sum() == pytest.approx(1, abs=1e-12)


def test_a_posterior_lost_to_rounding_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No input is known that leads there, so a family is made to lose its mass."""
    down = MeasuredTies.down

    def lossy(self: MeasuredTies, level: int, *rest: Any) -> Family:
        family = down(self, level, *rest)
        if level == 0:
            return family
        nothing = replace(family.marginals, values=0.0 * family.marginals.values)
        return family._replace(marginals=nothing)

    monkeypatch.setattr(MeasuredTies, "down", lossy)
    laws = (Geometric(scale=Fraction(1)),) * 3
    noisy = (np.array([9]), np.array([4, 5]), np.array([1, 3, 2, 3]))
    measured = Measurements(hierarchy=tree(2, 2), laws=laws, noisy=noisy)
    with pytest.raises(InputError, match="rounding lost the posterior below a l0"):
        cw.infer_measurements([measured], prior="uniform")
