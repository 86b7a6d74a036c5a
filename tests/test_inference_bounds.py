"""Priors with an end, and data that are far from it: against enumeration, or refused by name."""

from fractions import Fraction

import numpy as np
import pytest

from cases import flat, tree
from countwise.errors import InputError
from countwise.inference.routes import infer_measurements
from countwise.noise.laws import DiscreteGaussian, Geometric, IntegerLaw
from countwise.sumproduct.priors import Compositions, Prior, Shares, Uniform
from countwise.tables.measurements import Measurements


def measured(law: IntegerLaw, total: int, cells: list[int]) -> Measurements:
    noisy = (np.array([total]), np.array(cells))
    return Measurements(hierarchy=flat(len(cells)), laws=(law, law), noisy=noisy)


@pytest.mark.parametrize(
    ("scale", "total", "cells", "upper"),
    [("5", 1300, [1500, 400], 1000), ("1", 60, [230, 30], 40), ("2", 9, [-200, 3], 4)],
)
def test_cells_far_beyond_the_end_of_their_prior(
    scale: str, total: int, cells: list[int], upper: int
) -> None:
    law, x = Geometric(scale=Fraction(scale)), np.arange(upper + 1)
    logs = law.logpmf(cells[0] - x)[:, None] + law.logpmf(cells[1] - x)
    logs = logs + law.logpmf(total - x[:, None] - x)
    joint = np.exp(logs - logs.max())
    joint /= joint.sum()
    found = infer_measurements([measured(law, total, cells)], prior=Uniform(upper))
    for axis, name in enumerate(("0000000", "0000001")):
        law_found = [found.node(name).pmf(int(each)) for each in x]
        assert np.abs(law_found - joint.sum(axis=1 - axis)).max() < 1e-9


def test_a_total_beyond_the_end_of_its_prior() -> None:
    """Every division of at most four among four cells, in logarithms."""
    law = Geometric(scale=Fraction(1, 20))
    prior = Shares([0.25] * 4, total=Uniform(4))
    noisy = [0, 0, 1, 4]
    found = infer_measurements([measured(law, 9, noisy)], prior=prior)
    rows = np.array([r for r in np.ndindex(5, 5, 5, 5) if sum(r) <= 4])
    logs = law.logpmf(9 - rows.sum(axis=1)) + law.logpmf(np.array(noisy) - rows).sum(axis=1)
    logs = logs + prior.log_cells(np.tile(np.arange(4), len(rows)), rows.ravel()).reshape(
        -1, 4
    ).sum(axis=1)
    logs = logs + prior.log_total(rows.sum(axis=1), 4)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()
    best = found.top(2)
    truth = {tuple(row): p for row, p in zip(rows.tolist(), chances, strict=True)}
    for each in best:
        assert each.probability == pytest.approx(truth[each.counts], rel=1e-9)
    assert best[0].probability == pytest.approx(max(truth.values()), rel=1e-9)


@pytest.mark.parametrize(
    ("law", "total", "cells", "prior", "named"),
    [
        (Geometric(scale=Fraction(1)), 600, [1500, 400], Uniform(1000), "1,500"),
        (Geometric(scale=Fraction(1, 10_000)), 6, [2, 3], Uniform(), "6"),
        (DiscreteGaussian(scale=Fraction(1)), 205, [2, 3], Uniform(), "205"),
    ],
)
def test_what_can_not_go_together_is_named(
    law: IntegerLaw, total: int, cells: list[int], prior: Prior, named: str
) -> None:
    with pytest.raises(InputError, match=f"noisy count {named} of") as refused:
        infer_measurements([measured(law, total, cells)], prior=prior)
    assert "below e^-700" in str(refused.value)


def test_chains_begin_within_a_bounded_total() -> None:
    """Beyond the end of the prior no move is possible, and a chain would stay there."""
    law = Geometric(scale=Fraction(3))
    seen = measured(law, 14, [9, 7, 4])
    prior = Compositions(Uniform(12))
    sampled = infer_measurements([seen], prior=prior, method="gibbs", rng=np.random.default_rng(5))
    exact = infer_measurements([seen], prior=prior)
    found, truth = sampled.summaries(1), exact.summaries(1)
    assert sampled.summaries(0).upper[0] <= 12
    assert np.abs(found.mean - truth.mean).max() < 0.15


def test_a_parent_and_its_only_child_are_the_same_number() -> None:
    law = Geometric(scale=Fraction(2))
    hierarchy = tree(2, 1)
    noisy = (np.array([9]), np.array([4, 6]), np.array([5, 5]))
    seen = Measurements(hierarchy=hierarchy, laws=(law,) * 3, noisy=noisy)
    found = infer_measurements([seen], prior="uniform")
    parent, child = "'00000'", "'00000/00000'"
    rng = np.random.default_rng(1)
    assert found.probability(f"{parent} == {child}", rng=rng) == 1.0
    assert found.probability(f"{parent} > {child}", rng=rng) == 0.0
    assert found.law(f"{parent} - {child}", rng=rng).interval() == (0, 0)
    assert found.node("00000").interval() == found.node("00000/00000").interval()


def test_improbable_combinations_are_listed_in_order() -> None:
    """Wide noise above narrow noise: the tenth combination may be 1e-12 of the first."""
    law, wide = Geometric(scale=Fraction(1, 12)), Geometric(scale=Fraction(3))
    noisy = (np.array([7]), np.array([2, 4]))
    seen = Measurements(hierarchy=flat(2), laws=(wide, law), noisy=noisy)
    found = infer_measurements([seen], prior="uniform")
    x = np.arange(40)
    logs = law.logpmf(2 - x)[:, None] + law.logpmf(4 - x) + wide.logpmf(7 - x[:, None] - x)
    chances = np.exp(logs - logs.max())
    expected = np.sort((chances / chances.sum()).ravel())[::-1][:12]
    assert expected[-1] < 1e-9
    listed = [each.probability for each in found.top(12)]
    np.testing.assert_allclose(listed, expected, rtol=1e-6)
