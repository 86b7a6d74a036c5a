"""Empirical Bayes: the laws it learns, what it makes of them, and what it gains."""

import json
import sys
import tracemalloc
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln
from scipy.stats import nbinom, norm

import countwise as cw
from cases import HARD_CASES, Case, flat, tree
from countwise.adjust.auto import Auto
from countwise.adjust.bayes import EmpiricalBayes, _best
from countwise.adjust.cellprior import CellPrior, _left_out, resolved_blocks
from countwise.adjust.fitted_priors import PooledPrior, SharePrior
from countwise.adjust.jamesstein import fit_evenness
from countwise.adjust.learning import Division
from countwise.adjust.learning_cost import learning_cost
from countwise.adjust.mixture import maximise
from countwise.adjust.mode import Mode
from countwise.adjust.observations import Observations, RoundedNormal, observe
from countwise.adjust.shareprior import (
    SIZES,
    GammaPoisson,
    Scatter,
    expected_counts,
    grades_of,
    set_free,
)
from countwise.adjust.tree_least_squares import LeastSquares
from countwise.errors import InputError, PlanError, ReleaseError
from countwise.inference.routes import infer_measurements
from countwise.noise.laws import DiscreteGaussian, Geometric, IntegerLaw, RoundedLaplace
from countwise.noise.sampling import sample
from countwise.release.document import check_counts, read_release
from countwise.reproduce.scenarios import scenario_1, scenario_4_counts
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.measurements import Measurements
from test_adjust import measured
from test_leastsquares import squared_error


def noisy_of(hierarchy: Hierarchy, cells: np.ndarray, law: IntegerLaw) -> Measurements:
    """Counts measured with one law at every level."""
    true = hierarchy.sums(cells)
    noisy = tuple(t + sample(law, len(t)) for t in true)
    return Measurements(hierarchy=hierarchy, laws=(law,) * len(true), noisy=noisy)


def seen_of(noisy: np.ndarray, law: IntegerLaw) -> Observations:
    """The cells of a flat table with these noisy counts."""
    both = (np.array([noisy.sum()]), noisy)
    table = Measurements(hierarchy=flat(len(noisy)), laws=(law, law), noisy=both)
    return observe([table], 1, noisy.astype(float), np.full(len(noisy), law.variance))


def fit_prior(noisy: np.ndarray, law: IntegerLaw) -> CellPrior:
    """The prior of one pool in a flat table whose total is known."""
    both = (np.array([noisy.sum()]), noisy)
    table = Measurements(hierarchy=flat(len(noisy)), laws=(law, law), noisy=both)
    prior = EmpiricalBayes(tie_key=1).adjusted([table]).prior
    assert isinstance(prior, PooledPrior)
    return prior.pools[0]


SMALL = [case for case in HARD_CASES if case.name not in ("wide flat tree", "epsilon tiny")]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_the_contract_of_adjustments(case: Case) -> None:
    measurements = measured(case)
    counts = EmpiricalBayes(tie_key=5)(measurements)
    check_counts(case.hierarchy, counts)
    for one, again in zip(counts, EmpiricalBayes(tie_key=5)(measurements), strict=True):
        np.testing.assert_array_equal(one, again)


@pytest.mark.parametrize("kind", [Geometric, RoundedLaplace, DiscreteGaussian])
def test_the_prior_of_the_cells_is_recovered(kind: type[Geometric]) -> None:
    """Twenty thousand cells of 0, 3 and 12: weights near those values, mean and spread right."""
    rng = np.random.default_rng(1)
    true = rng.choice([0, 3, 12], p=[0.5, 0.3, 0.2], size=20_000)
    law = kind(scale=Fraction(3, 2))
    x = np.arange(200)
    chances = np.exp(fit_prior(true + sample(law, len(true)), law).logs(x))
    assert chances.sum() == pytest.approx(1, abs=0.01)
    assert (x * chances).sum() == pytest.approx(true.mean(), abs=0.15)
    assert chances[:2].sum() == pytest.approx(0.5, abs=0.05)
    assert chances[2:6].sum() == pytest.approx(0.3, abs=0.05)
    assert chances[10:15].sum() == pytest.approx(0.2, abs=0.04)


def test_em_finds_the_largest_likelihood_of_two_blocks() -> None:
    """With cells at 0 and far above: the share of the cells there, one cell added in all."""
    law = Geometric(scale=Fraction(1, 4))
    seen = seen_of(np.array([0] * 70 + [40] * 30), law)
    blocks = resolved_blocks(seen, np.arange(100))
    weights = maximise(blocks.components(np.array([0, 99])).likelihood, np.array([70, 30]))
    share = (70 + 1 / len(weights)) / 101
    prior = blocks.prior(weights)
    assert np.exp(prior.logs(np.zeros(1, np.int64)))[0] == pytest.approx(share, rel=0.01)


def test_a_cell_left_out_leaves_no_trace_in_the_weights() -> None:
    """Alone in its block, what is left for it is what was added there; in company, the others."""
    law = Geometric(scale=Fraction(1, 4))
    values, times = np.array([0, 40]), np.array([70, 1])
    likelihood = law.pmf(values[:, None] - np.array([0, 20, 40]))
    left = _left_out(likelihood, maximise(likelihood, times), times)
    peak = float(law.pmf([0])[0])
    np.testing.assert_allclose(np.exp(left), peak * np.array([69 + 1 / 3, 1 / 3]) / 71, rtol=1e-9)


def test_intervals_under_the_fitted_prior_hold_on_small_tables() -> None:
    """The prior is fitted to the same 50 noisy counts, and must not be surer for that. Of the cells
    94% are held; blocks as narrow as the noise would hold 69%."""
    cells, law = scenario_1(), Geometric(scale=Fraction(1))
    hierarchy = flat(len(cells))
    held = []
    for _ in range(20):
        noisy = tuple(t + sample(law, len(t)) for t in hierarchy.sums(cells))
        measurements = [Measurements(hierarchy=hierarchy, laws=(law, law), noisy=noisy)]
        prior = EmpiricalBayes(tie_key=1).adjusted(measurements).prior
        posterior = infer_measurements(measurements, prior=prior)
        found = posterior.summaries(1)
        held.append(((found.lower <= cells) & (cells <= found.upper)).mean())
    assert np.mean(held) > 0.89


def test_noise_alone_is_read_as_emptiness() -> None:
    law = Geometric(scale=Fraction(1))
    zero = np.zeros(1, np.int64)
    empty = [np.exp(fit_prior(sample(law, 400), law).logs(zero))[0] for _ in range(20)]
    assert np.mean(empty) > 0.93
    assert np.exp(fit_prior(1 + sample(law, 400), law).logs(zero))[0] < 0.6


def test_no_plausible_count_is_impossible_and_a_lone_cell_is_not_lost() -> None:
    """One cell among 200 empty ones: small counts keep the chance of one cell in all, and at 12,
    three standard deviations above the noise, the cell is hardly ever released as empty."""
    law = Geometric(scale=Fraction(2))
    cells = np.array([0] * 200 + [12])
    lost = 0
    for _ in range(40):
        both = noisy_of(flat(201), cells, law)
        made = EmpiricalBayes(tie_key=1).adjusted([both])
        assert isinstance(made.prior, PooledPrior)
        chances = np.exp(made.prior.pools[0].logs(np.arange(30)))
        assert chances.min() > 1e-6
        lost += int(made.counts[1][-1] == 0)
    assert lost <= 12


@pytest.mark.parametrize(("empty", "lone"), [(60, 10), (400, 15), (200, 12)])
def test_a_lone_cell_is_not_spread_over_the_empty_ones(empty: int, lone: int) -> None:
    """Nearly as near as least squares, which takes nothing for usual; spread evenly, the squared
    error were twice that of least squares."""
    law, hierarchy = Geometric(scale=Fraction(2)), flat(empty + 1)
    cells = np.array([0] * empty + [lone])
    off = {"bayes": 0, "least squares": 0}
    for _ in range(60):
        seen = [noisy_of(hierarchy, cells, law)]
        for name, method in (("bayes", EmpiricalBayes), ("least squares", LeastSquares)):
            off[name] += int(((method(tie_key=1)(seen)[1] - cells) ** 2).sum())
    assert off["bayes"] < 1.6 * off["least squares"]


def test_of_laws_that_explain_as_well_the_one_without_a_shape_is_taken() -> None:
    def law(words: str, explains: float, *, shape: bool) -> Division:
        few = np.ones(3)
        return Division(
            words=words, log_likelihood=explains, risk=1.0, means=few, variances=few, shape=shape
        )

    usual = law("usual", -10.0, shape=False)
    assert _best([law("even", -9.0, shape=True), usual]) is usual
    better = law("expected", -8.8, shape=True)
    assert _best([usual, better]) is better
    assert _best([law("usual", -8.0, shape=False), better]).words == "usual"


@pytest.mark.parametrize("law", [Geometric(scale=Fraction(3, 2)), RoundedNormal(40.0)])
def test_components_of_scatter_are_sums_over_all_counts(law: IntegerLaw) -> None:
    """Likelihood, mean and variance of every component, against direct summation."""
    values = np.array([-9, -1, 0, 1, 7, 25, 140, 700])
    expected = np.array([0.05, 0.3, 2.0, 2.0, 9.0, 20.0, 120.0, 900.0])
    size = len(values)
    seen = Observations(values=values, estimates=values.astype(float),
                        variances=np.full(size, law.variance), laws=(law,),
                        which=np.zeros(size, np.int64), free=np.ones(size, np.bool_))  # fmt: skip
    scatter = Scatter(seen=seen, grades=grades_of(expected), top=5000)
    found = scatter.components(np.arange(size))
    x = np.arange(6000)
    for node in range(size):
        means = np.exp(grades_of(expected)[node] / 12 + np.arange(-20, 13) / 4)
        for column, mean in enumerate(means):
            weights = nbinom.pmf(x, 16, 16 / (16 + mean)) * law.pmf(values[node] - x)
            if weights.sum() < 1e-6 * law.pmf(0):
                assert found.likelihood[node, column] < 1e-6
                continue
            assert found.likelihood[node, column] == pytest.approx(weights.sum(), rel=2e-3)
            centre = (weights * x).sum() / weights.sum()
            assert found.means[node, column] == pytest.approx(centre, rel=1e-2, abs=1e-4)
        assert found.likelihood[node, -2] == pytest.approx(float(law.pmf(values[node])))
        assert found.means[node, -2] == found.variances[node, -2] == 0
        assert found.likelihood[node, -1] == pytest.approx(
            law.pmf(values[node] - np.arange(5001)).sum() / 5001, rel=1e-6
        )


def test_negative_binomials_about_expectations_are_sums_over_all_counts() -> None:
    law = Geometric(scale=Fraction(2))
    values, expected = np.array([-3, 0, 6, 30, 90]), np.array([0.2, 4.0, 4.0, 25.0, 60.0])
    seen = Observations(values=values, estimates=values.astype(float),
                        variances=np.full(5, law.variance), laws=(law,),
                        which=np.zeros(5, np.int64), free=np.ones(5, np.bool_))  # fmt: skip
    around = GammaPoisson(seen=seen, grades=grades_of(expected), top=1000)
    found, x = around.components(np.arange(5)), np.arange(3000)
    for node, (value, grade) in enumerate(zip(values, grades_of(expected), strict=True)):
        mean = np.exp(grade / 12)
        for column, size in enumerate(SIZES):
            weights = nbinom.pmf(x, size, size / (size + mean)) * law.pmf(value - x)
            assert found.likelihood[node, column] == pytest.approx(weights.sum(), rel=1e-6)
            centre = (weights * x).sum() / weights.sum()
            assert found.means[node, column] == pytest.approx(centre, rel=1e-4, abs=1e-6)


def test_scatter_of_children_is_learned_as_if_their_sum_were_not_known() -> None:
    """Pairs divided evenly at random: given its parent x, a child varies by x²/12, and two
    independent ones by twice that. Stretched distances vary by that and the noise."""
    rng = np.random.default_rng(15)
    sizes = np.full(4000, 60)
    first = rng.integers(0, 61, 4000)
    cells = np.column_stack([first, 60 - first]).ravel()
    hierarchy = tree(4000, 2)
    law = Geometric(scale=Fraction(2))
    noisy = cells + sample(law, len(cells))
    both = (np.array([240_000]), sizes, noisy)
    table = Measurements(hierarchy=hierarchy, laws=(law,) * 3, noisy=both)
    seen = observe([table], 2, noisy.astype(float), np.full(8000, law.variance))
    expected = expected_counts(hierarchy, 2, sizes, seen)
    free = set_free(seen, expected)
    away = float(((free.estimates - expected.counts) ** 2).mean())
    assert away == pytest.approx(2 * (60 * 62 / 12 + law.variance), rel=0.05)


def test_wide_errors_are_tabled_in_units_of_several_counts() -> None:
    """24 to a standard deviation: half a unit is 1/48 of one, and moves a likelihood 1.5 standard
    deviations from its centre by 3%, and so does half a unit of the count."""
    law = RoundedNormal(2000.0**2)
    values, expected = np.array([-3000, 100, 9000]), np.array([50.0, 800.0, 9000.0])
    seen = Observations(values=values, estimates=values.astype(float),
                        variances=np.full(3, law.variance), laws=(law,),
                        which=np.zeros(3, np.int64), free=np.ones(3, np.bool_))  # fmt: skip
    found = Scatter(seen=seen, grades=grades_of(expected), top=50_000).components(np.arange(3))
    x = np.arange(80_000)
    for node in range(3):
        mean = np.exp(grades_of(expected)[node] / 12)
        weights = nbinom.pmf(x, 16, 16 / (16 + mean)) * norm.pdf(values[node] - x, scale=2000)
        assert found.likelihood[node, 20] == pytest.approx(weights.sum(), rel=0.06)
        centre = (weights * x).sum() / weights.sum()
        assert found.means[node, 20] == pytest.approx(centre, abs=42)


def test_blocks_are_integrals_of_the_noise() -> None:
    law = Geometric(scale=Fraction(2))
    noisy = np.concatenate([np.arange(-5, 40), np.array([3, 900])])
    blocks = resolved_blocks(seen_of(noisy, law), np.arange(len(noisy)))
    found = blocks.components(np.arange(len(noisy)))
    for block, start in enumerate(blocks.starts[:-1]):
        x = np.arange(start, blocks.starts[block + 1])
        direct = law.pmf(noisy[:, None] - x).mean(axis=1)
        np.testing.assert_allclose(found.likelihood[:, block], direct, rtol=1e-9, atol=1e-16)


def test_small_cells_learn_from_each_other() -> None:
    """Squared errors at the same noise: several times lower than least squares where most cells
    are empty, 2 times lower on cells of one size, and little worse on the papers' tables. The
    first ratio is 5.6 in 150 releases, a few outlying cells having most of the error: hence the
    bound."""
    rng = np.random.default_rng(3)
    empty = np.array([0] * 200 + [500, 2000, 9000])
    fit = squared_error(LeastSquares(tie_key=1), empty, "1", 150)
    assert squared_error(EmpiricalBayes(tie_key=1), empty, "1", 150) < fit / 3.5
    alike = rng.poisson(3, 500)
    fit = squared_error(LeastSquares(tie_key=1), alike, "0.5", 30)
    assert squared_error(EmpiricalBayes(tie_key=1), alike, "0.5", 30) < fit / 2
    for cells in (scenario_1(), scenario_4_counts()):
        best = min(
            squared_error(method, cells, "1", 200)
            for method in (Mode(tie_key=1), LeastSquares(tie_key=1))
        )
        assert squared_error(EmpiricalBayes(tie_key=1), cells, "1", 200) < 1.12 * best


def test_pools_keep_kinds_of_cells_apart() -> None:
    """Half the cells empty, half of 8: by shares and with a pool for each errors are few."""
    hierarchy = tree(60, 2)
    cells = np.tile([0, 8], 60)
    law = Geometric(scale=Fraction(2))
    true = hierarchy.sums(cells)
    errors, fit = {"": 0, "l1": 0}, 0
    for _ in range(5):
        noisy = tuple(t + sample(law, len(t)) for t in true)
        measurements = [Measurements(hierarchy=hierarchy, laws=(law,) * 3, noisy=noisy)]
        for pool in errors:
            counts = EmpiricalBayes(tie_key=1, pool=pool)(measurements)
            errors[pool] += int(((counts[-1] - cells) ** 2).sum())
        fit += int(((LeastSquares(tie_key=1)(measurements)[-1] - cells) ** 2).sum())
    assert errors["l1"] < fit / 3
    assert errors[""] < fit / 3


def test_the_total_keeps_small_counts_from_passing_for_empty() -> None:
    """Cells of 0 and 1 under wide noise: the total says how many are not empty. An error like
    that of leaving all empty but a few would be several times that of the mode."""
    cells = np.tile([0, 0, 0, 0, 1], 80)
    mine = squared_error(EmpiricalBayes(tie_key=1), cells, "1", 60)
    assert mine < 1.1 * squared_error(Mode(tie_key=1), cells, "1", 60)


def shares_tree(rng: np.random.Generator) -> tuple:
    """Forty parents of very different sizes in four groups, with labels of differing shares."""
    hierarchy = tree(4, 10, 5)
    sizes = np.exp(rng.normal(5, 1, 40))
    shares = rng.dirichlet([1, 2, 4, 8, 16], 4).repeat(10, axis=0)
    return hierarchy, rng.poisson(sizes[:, None] * shares).ravel()


def test_shares_elsewhere_are_learned_where_labels_recur() -> None:
    rng = np.random.default_rng(8)
    hierarchy, cells = shares_tree(rng)
    law = Geometric(scale=Fraction(8))
    error = {"shares": 0.0, "fit": 0.0}
    for _ in range(4):
        noisy = noisy_of(hierarchy, cells, law)
        made = EmpiricalBayes(tie_key=1).adjusted([noisy])
        assert isinstance(made.prior, SharePrior)
        error["shares"] += float(((made.counts[-1] - cells) ** 2).sum())
        fit = LeastSquares(tie_key=1)([noisy])[-1]
        error["fit"] += float(((fit - cells) ** 2).sum())
    assert error["shares"] < 0.7 * error["fit"]


def test_rare_labels_share_what_is_known_of_them() -> None:
    """Deaths by cause: of 40 causes thirty are rare, and some regions do not list all of them.
    The rare ones cost the shares of the others nothing."""
    rng = np.random.default_rng(12)
    sizes, shares = rng.lognormal(4, 1, 100), rng.dirichlet([3.0] * 10 + [0.05] * 30)
    listed = np.ones((100, 40), np.bool_)
    listed[3:, 38:] = False
    rows, causes = np.nonzero(listed)
    hierarchy, order = build(
        pl.DataFrame({"region": [f"{r:03}" for r in rows], "cause": [f"{c:03}" for c in causes]})
    )
    cells = rng.poisson(np.outer(sizes, shares))[listed][order]
    noisy = noisy_of(hierarchy, cells, Geometric(scale=Fraction(3)))
    made = EmpiricalBayes(tie_key=1).adjusted([noisy])
    assert isinstance(made.prior, SharePrior)
    error = ((made.counts[-1] - cells) ** 2).sum()
    assert error < 0.4 * ((LeastSquares(tie_key=1)([noisy])[-1] - cells) ** 2).sum()


def test_expected_counts_are_shares_of_the_other_parents() -> None:
    """Two groups of ten parents, their labels' shares recomputed parent by parent."""
    rng = np.random.default_rng(13)
    hierarchy = tree(2, 10, 3)
    cells = rng.poisson(np.tile([5.0, 20.0, 80.0], 20))
    law = Geometric(scale=Fraction(2))
    noisy = noisy_of(hierarchy, cells, law)
    sizes = hierarchy.sums(cells)[2]
    seen = observe([noisy], 3, noisy.noisy[3].astype(float), np.full(60, law.variance))
    found = expected_counts(hierarchy, 3, sizes, seen).counts.reshape(2, 10, 3)
    counts, size = noisy.noisy[3].reshape(2, 10, 3), sizes.reshape(2, 10)
    overall = counts.sum(axis=(0, 1)) / size.sum()
    heads = 2 * np.sqrt(10 * law.variance)
    for group in range(2):
        for parent in range(10):
            others = np.arange(10) != parent
            share = (counts[group, others].sum(axis=0) + heads) / (
                size[group, others].sum() + heads / overall
            )
            direct = size[group, parent] * share / share.sum()
            np.testing.assert_allclose(found[group, parent], direct, rtol=1e-9)


def test_children_are_drawn_towards_each_other_as_james_and_stein_do() -> None:
    """With equal variances the pull is 1 - (n - 3)V/S, n nodes about their own mean."""
    rng = np.random.default_rng(14)
    cells = rng.poisson(60, 12)
    law = Geometric(scale=Fraction(4))
    noisy = noisy_of(flat(12), cells, law)
    estimates = noisy.noisy[1].astype(float)
    seen = observe([noisy], 1, estimates, np.full(12, law.variance))
    total = int(estimates.sum())
    means, _ = fit_evenness(flat(12), 1, np.array([total]), seen).moments(seen)
    apart = estimates - estimates.mean()
    pull = max(1 - 9 * law.variance / (apart**2).sum(), 0.0)
    np.testing.assert_allclose(means, estimates.mean() + pull * apart, rtol=1e-6)


def test_sums_are_those_of_least_squares_whatever_the_cells_say(income_cells: tuple) -> None:
    """Where many cells are empty their prior is sure of a wrong total; it must not be asked.

    Level by level the error is no larger than that of least squares, far lower in the cells, and
    the total is as near as its noise.
    """
    hierarchy, cells = income_cells
    law = Geometric(scale=Fraction(6))
    true = hierarchy.sums(cells)
    ours, theirs = np.zeros(6), np.zeros(6)
    for _ in range(3):
        noisy = noisy_of(hierarchy, cells, law)
        made, fit = Auto(tie_key=1).adjusted([noisy]), LeastSquares(tie_key=1)([noisy])
        check_counts(hierarchy, made.counts)
        assert made.counts[0] == fit[0]
        assert abs(int(made.counts[0][0]) - int(true[0][0])) < 150
        for errors, counts in ((ours, made.counts), (theirs, fit)):
            errors += [((c - t) ** 2).mean() for c, t in zip(counts, true, strict=True)]
    ratio = np.sqrt(ours / theirs)
    assert (ratio < 1.03).all()
    assert ratio[-1] < 0.85
    assert ratio[-2] < 0.8


def test_the_share_prior_is_its_definition() -> None:
    """Tables and interpolation against the sum of negative binomials, also at large counts."""
    rng = np.random.default_rng(10)
    hierarchy, cells = shares_tree(rng)
    law = Geometric(scale=Fraction(2))
    cells = cells * np.tile([1, 1, 1, 1, 300], 40)
    prior = EmpiricalBayes(tie_key=1).adjusted([noisy_of(hierarchy, cells, law)]).prior
    assert isinstance(prior, SharePrior)
    for cell in (0, 4, 77, 199):
        spread = prior.pools[prior.members[cell]]
        mean = np.exp(prior.grades[cell] / 12 + np.arange(-20, 13) / 4)[:, None]
        x = np.array([0, 1, 5, 511, 512, 513, 700, 4321, 30_000])
        x = x[x <= spread.top]
        logs = (gammaln(x + 16) - gammaln(16) - gammaln(x + 1.0)
                + 16 * np.log(16 / (16 + mean)) + x * np.log(mean / (16 + mean)))  # fmt: skip
        chances = spread.weights[:-2] @ np.exp(logs)
        chances += spread.weights[-2] * (x == 0) + spread.weights[-1] / (spread.top + 1)
        found = prior.log_cells(np.full(len(x), cell), x)
        np.testing.assert_allclose(found, np.log(chances), atol=2e-3)


@pytest.mark.parametrize("pool", ["", "l2"])
@pytest.mark.parametrize("kind", ["blocks", "shares"])
def test_the_published_prior_is_the_one_that_was_learned(
    kind: str, pool: str, tmp_path: Path
) -> None:
    hierarchy, cells = shares_tree(np.random.default_rng(8))
    if kind == "blocks":
        hierarchy, pool = flat(200), "part"[: len(pool) * 2]
    table = Confidential(hierarchy, cells)
    release = cw.release(table, cw.Plan(epsilon="0.5", adjust="bayes", pool=pool))
    release.save(tmp_path / "r")
    again = read_release(tmp_path / "r")
    assert again.prior is not None
    assert json.loads((tmp_path / "r" / "release.json").read_text())["adjustment"]["prior"][
        "model"
    ] == kind  # fmt: skip
    assert ("grade" in pl.read_parquet(tmp_path / "r" / "measurements.parquet").columns) == (
        kind == "shares"
    )
    posterior = cw.infer(tmp_path / "r", prior="published")
    assert "fitted to the noisy cells" in posterior.prior
    learned = (
        EmpiricalBayes(tie_key=release.tie_key, pool=pool).adjusted([release.measurements]).prior
    )
    direct = infer_measurements([release.measurements], prior=learned)
    for level in range(len(hierarchy.sizes)):
        found, expected = posterior.summaries(level), direct.summaries(level)
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.sd, expected.sd, rtol=1e-9, atol=1e-9)


def test_a_release_without_a_prior_or_with_a_garbled_one_is_refused(tmp_path: Path) -> None:
    table = Confidential(flat(3), np.array([1, 2, 3]))
    with pytest.raises(InputError, match="publishes no prior"):
        cw.infer(cw.release(table, cw.Plan(epsilon=1, adjust="mode")), prior="published")
    many = Confidential(flat(40), np.arange(40))
    cw.release(many, cw.Plan(epsilon=1, adjust="bayes")).save(tmp_path / "r")
    path = tmp_path / "r" / "release.json"
    manifest = json.loads(path.read_text())
    del manifest["adjustment"]["prior"]["pools"]["all"]["weights"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(ReleaseError, match="'weights'"):
        read_release(tmp_path / "r")


def test_auto_says_what_it_chose_and_why() -> None:
    few = measured(HARD_CASES[0])
    made = Auto(tie_key=3).adjusted(few)
    assert (made.method, "too few" in made.reason) == ("least-squares", True)
    for one, other in zip(made.counts, LeastSquares(tie_key=3)(few), strict=True):
        np.testing.assert_array_equal(one, other)
    apart = Case(name="", hierarchy=flat(60), cells=np.arange(1, 61) * 100_000)
    made = Auto(tie_key=3).adjusted(measured(apart))
    assert (made.method, "next to nothing" in made.reason) == ("least-squares", True)
    many = Case(name="", hierarchy=tree(30, 10), cells=np.arange(300) % 10)
    made = Auto(tie_key=3).adjusted(measured(many))
    assert (made.method, "l1 by" in made.reason) == ("bayes", True)
    empty = Case(name="", hierarchy=flat(90), cells=np.array([0] * 87 + [500, 2000, 9000]))
    assert Auto(tie_key=3).adjusted(measured(empty)).method == "bayes"


def test_tables_that_take_too_much_to_learn_from_are_known_by_their_shape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    many = measured(Case(name="", hierarchy=flat(300), cells=np.zeros(300, np.int64)))
    assert Auto(tie_key=3).adjusted(many).method == "bayes"
    for most, least in (("MOST_SECONDS", "seconds"), ("MOST_BYTES", "GB")):
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[learning_cost.__module__], most, 1e-3)
            made = Auto(tie_key=3).adjusted(many)
        assert (made.method, least in made.reason) == ("least-squares", True)
        for one, other in zip(made.counts, LeastSquares(tie_key=3)(many), strict=True):
            np.testing.assert_array_equal(one, other)


def test_what_learning_takes_grows_with_nodes_levels_and_noise() -> None:
    """By shape and noise alone; five million flat cells are learned from, twenty are not."""
    narrow, wide = [2.0] * 3, [800.0] * 3
    small, large, deep = tree(20, 10), tree(20, 1000), tree(20, 10, 10)
    base = learning_cost(small, narrow)
    for more in (
        learning_cost(large, narrow), learning_cost(deep, [2.0] * 4), learning_cost(small, wide)
    ):  # fmt: skip
        assert more.seconds > base.seconds
        assert more.bytes > base.bytes
    five = SimpleNamespace(sizes=(1, 5_000_000), offsets=(np.array([0, 5_000_000]),))
    twenty = SimpleNamespace(sizes=(1, 20_000_000), offsets=(np.array([0, 20_000_000]),))
    assert learning_cost(five, [8.0, 8.0]).bearable
    assert not learning_cost(twenty, [8.0, 8.0]).bearable


@pytest.mark.slow
def test_what_learning_takes_is_not_less_than_it_takes() -> None:
    """Bytes beyond those of least squares, by what Python allocates, of spread-out counts."""
    hierarchy, law = tree(300, 200), Geometric(scale=Fraction(20))
    cells = np.random.default_rng(19).pareto(0.7, hierarchy.cells) * 20
    noisy = noisy_of(hierarchy, np.minimum(cells, 1e6).astype(np.int64), law)
    peaks = []
    for method in (LeastSquares(tie_key=1), Auto(tie_key=1)):
        tracemalloc.start()
        method([noisy])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    cost = learning_cost(hierarchy, [law.variance] * 3)
    assert cost.bytes / 8 < peaks[1] - peaks[0] < cost.bytes


def test_releases_record_the_choice_and_the_pool() -> None:
    """A tree of empty and full cells: labels tell them apart."""
    table = Confidential(tree(40, 3), np.tile([0, 1, 9], 40))
    release = cw.release(table, cw.Plan(epsilon=1, adjust="auto", pool="l1"))
    told = release.manifest()["adjustment"]
    assert told["method"] == "bayes"
    assert "l1 by" in told["reason"]
    with pytest.raises(PlanError, match="pool must be one of l0, l1"):
        cw.release(table, cw.Plan(epsilon=1, adjust="bayes", pool="county"))


def test_a_default_release_is_auto_and_infers_from_its_noisy_counts() -> None:
    """Not from its counts alone: how they were made has no inverse that is known."""
    made = cw.release(Confidential(flat(120), np.arange(120) % 4), cw.Plan(epsilon=2))
    assert (made.plan.adjust, made.method) == ("auto", "bayes")
    assert "exact" in cw.infer(made).route
    assert "fitted" in cw.infer(made, prior="published").prior
    with pytest.raises(InputError, match="--from measurements"):
        cw.infer(made, source="counts")
