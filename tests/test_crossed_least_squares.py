"""Least squares on tables that cross, against dense linear algebra."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from countwise.errors import PlanError
from countwise.margins.leastsquares import fit
from countwise.margins.measurement import Measurement
from countwise.margins.variances import variances
from countwise.noise.laws import DiscreteGaussian
from countwise.tables.variable import make_variable
from countwise.tables.workload import Margin, Workload
from crossings import (
    Dense,
    all_margins,
    flat,
    measure,
    noise_of,
    random_tree,
    variable,
)
from needs import needs


def one_tree(rng):
    return (flat("b", 3), random_tree(rng, "a", 3), flat("c", 2))


def balanced_trees(rng):
    a = random_tree(rng, "a", 2)
    return (variable("b", [2], [2, 2]), a, variable("c", [3], [1, 1, 1]))


def only_flat(_):
    return (flat("a", 4), flat("b", 3), flat("c", 2))


def deep(rng):
    return (random_tree(rng, "a", 4),)


SHAPES = [one_tree, balanced_trees, only_flat, deep]


def agree(found, dense, margins):
    for margin in margins:
        np.testing.assert_allclose(found.margin(margin), dense.margin(margin), atol=1e-7)
        expected = dense.variance(margin)
        variance = np.broadcast_to(found.variance(margin), expected.shape)
        np.testing.assert_allclose(variance, expected, rtol=1e-7, atol=1e-9)
        mean = found.variances.mean_variance(margin)
        np.testing.assert_allclose(mean, expected.mean(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kept", [1.0, 0.5, 0.2])
def test_estimates_and_variances_are_those_of_dense_algebra(shape, seed, kept):
    """Margins left out at random, one measured twice; what is not determined is infinite."""
    rng = np.random.default_rng(seed)
    variables = shape(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    chosen = [m for m in margins if rng.random() < kept] or [margins[-1]]
    scales = [(m, float(rng.choice([0.8, 1.5, 4.0]))) for m in [*chosen, chosen[0]]]
    _, measurements = measure(rng, workload, scales)
    agree(fit(workload, measurements), Dense(workload, measurements), margins)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_margins_known_exactly_are_kept_and_sharpen_the_others(shape, seed):
    rng = np.random.default_rng(seed)
    variables = shape(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    kinds = rng.choice([0.0, 1.0, 2.5, np.nan], len(margins), p=[0.2, 0.3, 0.3, 0.2])
    scales = [(m, float(s)) for m, s in zip(margins, kinds, strict=True) if not np.isnan(s)]
    cells, measurements = measure(rng, workload, scales)
    found = fit(workload, measurements)
    agree(found, Dense(workload, measurements), margins)
    for each in measurements:
        if each.law.variance == 0:
            exact = workload.sums(cells, each.margin)
            np.testing.assert_allclose(found.margin(each.margin), exact, atol=1e-8)
            assert not found.variance(each.margin).any()


def test_variances_need_no_data():
    rng = np.random.default_rng(5)
    variables = one_tree(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    _, measurements = measure(rng, workload, [(m, 2.0) for m in margins[::2]])
    alone = variances(workload, noise_of(measurements))
    found = fit(workload, measurements)
    for margin in margins:
        np.testing.assert_array_equal(alone.variance(margin), found.variance(margin))


def test_estimates_add_up_to_those_of_every_coarser_margin():
    rng = np.random.default_rng(6)
    variables = one_tree(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    _, measurements = measure(rng, workload, [(m, 3.0) for m in margins])
    found = fit(workload, measurements)
    whole = found.margin(Margin((0, 0, 0))).item()
    assert found.margin(Margin((1, 2, 0))).sum() == pytest.approx(whole)


def two_trees(rng):
    return (random_tree(rng, "a", 2), flat("b", 2), random_tree(rng, "c", 2))


def three_trees(rng):
    return tuple(random_tree(rng, name, 2) for name in "abc")


@pytest.mark.parametrize("shape", [two_trees, three_trees])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kept", [1.0, 0.5, 0.2])
@pytest.mark.parametrize("exact", [0.0, 0.2])
def test_several_trees_take_a_few_steps_to_the_same_estimates(shape, seed, kept, exact):
    rng = np.random.default_rng(seed)
    variables = shape(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    chosen = [m for m in margins if rng.random() < kept] or [margins[-1]]
    scales = [(m, float(rng.choice([0.8, 1.5, 4.0]))) for m in [*chosen, chosen[0]]]
    scales = [(m, 0.0 if rng.random() < exact else s) for m, s in scales]
    _, measurements = measure(rng, workload, scales)
    found, dense = fit(workload, measurements), Dense(workload, measurements)
    assert found.steps < 60
    assert found.variances.exact
    for margin in margins:
        np.testing.assert_allclose(found.margin(margin), dense.margin(margin), atol=1e-6)
        expected = dense.variance(margin)
        variance = np.broadcast_to(found.variance(margin), expected.shape)
        np.testing.assert_allclose(variance, expected, rtol=1e-6, atol=1e-9)
        mean = found.variances.mean_variance(margin)
        np.testing.assert_allclose(mean, expected.mean(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("shape", [*SHAPES, two_trees])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("public", [0, 1])
def test_cells_where_nobody_can_be_are_kept_at_nought(shape, seed, public):
    rng = np.random.default_rng(seed)
    variables = shape(rng)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    possible = rng.random(workload.shape) < 0.7
    measurements = []
    for margin in margins[1::2] + margins[-1:]:
        _, (one,) = measure(rng, workload, [(margin, 1.5)])
        exact = workload.sums(possible.astype(np.int64), margin) == 0
        noisy = np.where(exact, 0, one.noisy)
        if margin == margins[1] and public:
            exact[:] = not exact.any()
        measurements.append(Measurement(margin=margin, law=one.law, noisy=noisy, exact=exact))
    found, dense = fit(workload, measurements), Dense(workload, measurements)
    for margin in margins:
        np.testing.assert_allclose(found.margin(margin), dense.margin(margin), atol=1e-6)
        variance, without = found.variance(margin), found.variances.variance(margin)
        assert (dense.variance(margin) <= variance + 1e-8).all()
        assert (variance <= without).all()
        empty = workload.sums(possible.astype(np.int64), margin) == 0
        assert not found.variance(margin)[empty].any()


def test_exact_counts_above_nought_beside_noisy_ones_are_refused():
    rng = np.random.default_rng(0)
    variables = (flat("a", 3), flat("b", 2))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    _, (one,) = measure(rng, workload, [(Margin((1, 0)), 1.5)])
    exact = np.array([[True], [False], [False]])
    mixed = Measurement(margin=one.margin, law=one.law, noisy=np.full((3, 1), 7), exact=exact)
    with pytest.raises(PlanError, match="table a1 has counts with noise and exact counts"):
        fit(workload, [mixed])


def test_impossible_cells_beside_exact_tables_that_do_not_refine_each_other_are_refused():
    rng = np.random.default_rng(0)
    variables = (flat("a", 3), flat("b", 2))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    _, exact = measure(rng, workload, [(Margin((1, 0)), 0.0), (Margin((0, 1)), 0.0)])
    impossible = np.zeros((3, 2), dtype=bool)
    impossible[0, 0] = True
    noisy = np.where(impossible, 0, 4)
    law = DiscreteGaussian(scale=Fraction(2))
    cells = Measurement(margin=Margin((1, 1)), law=law, noisy=noisy, exact=impossible)
    with pytest.raises(PlanError, match="tables a1, b1 are exact, none refines the others"):
        fit(workload, [*exact, cells])


@pytest.mark.parametrize("shape", [one_tree, two_trees])
def test_nothing_measured_determines_nothing(shape):
    variables = shape(np.random.default_rng(1))
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    found = fit(workload, [])
    for margin in margins:
        assert not found.margin(margin).any()
        assert np.isinf(found.variance(margin)).all()
        assert found.variances.mean_variance(margin) == np.inf


def test_impossible_cells_sharpen_the_stated_variance():
    """The only possible cell of a row is measured by the row too."""
    variables = (flat("a", 3), flat("b", 2))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    impossible = np.array([[False, True], [False, False], [False, False]])
    law = DiscreteGaussian(scale=Fraction(2))
    noisy = np.where(impossible, 0, 4)
    cells = Measurement(margin=Margin((1, 1)), law=law, noisy=noisy, exact=impossible)
    rows = Measurement(margin=Margin((1, 0)), law=law, noisy=noisy.sum(axis=1, keepdims=True))
    found = fit(workload, [cells, rows])
    assert found.variance(Margin((1, 1)))[0, 0] == pytest.approx(law.variance / 2)
    assert found.variances.variance(Margin((1, 1))).max() > 0.6 * law.variance


NORTH_CAROLINA = Path(__file__).parents[2] / "shared/data/nc_tracts_race_hispanic_2020.csv"


def test_margins_measured_evenly_on_north_carolina():
    """Standard deviations at ρ = ½: twelve margins, and the tree of today's totals and cells."""
    needs(NORTH_CAROLINA.exists(), "the shared data beside the project")
    places = pl.read_csv(NORTH_CAROLINA, schema_overrides={"tract": pl.String})
    geography, _ = make_variable("geography", places.select("county", "tract").unique())
    variables = (geography, flat("race", 7), flat("hispanic", 2))
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    twelve = variances(workload, dict.fromkeys(margins, 12.0))
    for margin in margins:
        expected = (2.63, 2.52, 2.60)[margin.levels[0]]
        assert twelve.mean_variance(margin) ** 0.5 == pytest.approx(expected, abs=0.006)
    tree = [Margin((0, 0, 0)), Margin((1, 0, 0)), Margin((2, 0, 0)), Margin((2, 1, 1))]
    today = variances(workload, dict.fromkeys(tree, 4.0))
    for place, expected in ((0, 135.4), (1, 13.5)):
        found = today.mean_variance(Margin((place, 1, 0))) ** 0.5
        assert found == pytest.approx(expected, rel=5e-3)
    assert today.mean_variance(Margin((2, 1, 1))) ** 0.5 == pytest.approx(1.93, abs=0.006)
