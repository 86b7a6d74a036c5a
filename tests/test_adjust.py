"""One contract for every adjustment, on every hard case; and the parts behind them."""

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cases import HARD_CASES, Case, flat, tree
from countwise.adjust.adjustments import ADJUSTMENTS, AdjustmentKind, Choices
from countwise.adjust.count_modes import posterior_modes
from countwise.adjust.draw import MultinomialDraw, deal, draw_from_likelihood, posterior_draws
from countwise.adjust.mode import Mode
from countwise.adjust.protocol import Adjustment
from countwise.adjust.tree_walk import share_among_children, task_bounds
from countwise.errors import PlanError
from countwise.kernels.apportion import last_ranks
from countwise.noise.laws import DiscreteGaussian, Geometric, IntegerLaw, RoundedLaplace
from countwise.noise.noise_sums import sum_of
from countwise.noise.sampling import sample
from countwise.release.document import check_counts
from countwise.tables.measurements import Measurements

ONE = Geometric(scale=Fraction(1))


def measured(case: Case, copies: int = 1) -> list[Measurements]:
    budget = case.make_plan().budget(case.hierarchy)
    true = case.hierarchy.sums(case.cells)
    return [
        Measurements(
            hierarchy=case.hierarchy,
            laws=budget.laws,
            noisy=tuple(t + sample(law, len(t)) for t, law in zip(true, budget.laws, strict=True)),
        )
        for _ in range(copies)
    ]


def made(kind: AdjustmentKind, **changes: Any) -> Adjustment:
    """An adjustment with its random choices given."""
    return kind.make(Choices(**({"tie_key": 7, "rng": np.random.default_rng(1)} | changes)))


METHODS = {name: partial(made, kind) for name, kind in ADJUSTMENTS.items()} | {
    "mode summed": partial(made, ADJUSTMENTS["mode"], total="summed"),
    "mode last": partial(made, ADJUSTMENTS["mode"], tie_key=None),
    "draw-1 summed": partial(made, ADJUSTMENTS["draw-1"], total="summed"),
}


PAIRS = [
    pytest.param(method, case, id=f"{method}-{case.name}")
    for method in METHODS
    for case in HARD_CASES
    if (method, case.name) != ("bayes", "epsilon tiny")  # right as well, but half a minute
]


@pytest.mark.parametrize(("method", "case"), PAIRS)
def test_every_adjustment_keeps_its_promise(method: str, case: Case) -> None:
    """Whole, none negative, additive; the input untouched; the same input, the same output."""
    measurements = measured(case)
    before = [noisy.copy() for noisy in measurements[0].noisy]
    counts = METHODS[method]()(measurements)
    check_counts(case.hierarchy, counts)
    for noisy, kept in zip(measurements[0].noisy, before, strict=True):
        np.testing.assert_array_equal(noisy, kept)
    for first, again in zip(counts, METHODS[method]()(measurements), strict=True):
        np.testing.assert_array_equal(first, again)


@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
def test_several_noisy_values_are_accepted_by_the_modes(case: Case) -> None:
    check_counts(case.hierarchy, Mode(tie_key=1, total="summed")(measured(case, copies=3)))


def test_consistent_noisy_counts_are_left_as_they_are() -> None:
    hierarchy = tree(3, 4)
    values = hierarchy.sums(np.arange(12))
    measurements = Measurements(hierarchy=hierarchy, laws=(ONE,) * 3, noisy=values)
    for got, given in zip(Mode(tie_key=3)([measurements]), values, strict=True):
        np.testing.assert_array_equal(got, given)


def test_the_parents_total_is_the_trial_size_of_its_children() -> None:
    hierarchy = tree(2, 2)
    noisy = (np.array([10]), np.array([30, 10]), np.array([1, 1, 3, 1]))
    counts = Mode(tie_key=None)([Measurements(hierarchy=hierarchy, laws=(ONE,) * 3, noisy=noisy)])
    assert [c.tolist() for c in counts] == [[10], [8, 2], [4, 4, 2, 0]]


def test_tasks_cover_every_parent_once() -> None:
    rng = np.random.default_rng(3)
    for scale in (1, 50, 40_000):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, scale + 1, 200))])
        bounds = task_bounds(offsets)
        assert bounds[0] == 0
        assert bounds[-1] == 200
        assert sorted(set(bounds)) == bounds


def test_parallel_tasks_give_what_one_gives() -> None:
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 4000, 100))])
    values = rng.integers(0, 50, offsets[-1])
    parents = np.add.reduceat(values, offsets[:-1]) + rng.integers(-5, 50, 100)
    together = share_among_children(offsets, parents, values, last_ranks(len(values)))
    for i in (0, 41, 99):
        piece = slice(offsets[i], offsets[i + 1])
        alone = share_among_children(
            np.array([0, offsets[i + 1] - offsets[i]]),
            parents[i : i + 1],
            values[piece],
            last_ranks(len(values))[piece],
        )
        np.testing.assert_array_equal(together[piece], alone)


@pytest.mark.parametrize("kind", [Geometric, RoundedLaplace, DiscreteGaussian])
def test_modes_of_several_values_maximise_the_likelihood(kind: type[IntegerLaw]) -> None:
    rng = np.random.default_rng(6)
    laws = [kind(scale=Fraction(s)) for s in ("1", "3/2", "5")]
    for _ in range(200):
        values = rng.integers(-12, 25, len(laws))
        grid = np.arange(0, 40)
        likelihood = sum(law.logpmf(v - grid) for v, law in zip(values, laws, strict=True))
        observed = [(np.array([v]), law) for v, law in zip(values, laws, strict=True)]
        mode = int(posterior_modes(observed)[0])
        assert likelihood[mode] == pytest.approx(likelihood.max(), abs=1e-9)


def test_two_equally_noisy_values_meet_in_the_middle() -> None:
    assert posterior_modes([(np.array([10]), ONE), (np.array([20]), ONE)]).tolist() == [15]
    assert posterior_modes([(np.array([-9]), ONE), (np.array([-3]), ONE)]).tolist() == [0]


def test_the_summed_total_is_the_mode_of_equation_10() -> None:
    """Brute force over N with the exact law of the sum, Wang & Reiter 2021, eq. (10)."""
    rng = np.random.default_rng(11)
    laws = (Geometric(scale=Fraction(10)), Geometric(scale=Fraction(1, 5)))
    size = 50
    power = np.array([1.0])
    one = laws[1].pmf(np.arange(-60, 61))
    for _ in range(size):
        power = np.convolve(power, one)
    centre = len(power) // 2
    hierarchy = flat(size)
    for _ in range(50):
        noisy = (np.array([500 + rng.integers(-40, 40)]), 10 + rng.integers(-1, 2, size))
        counts = Mode(tie_key=None, total="summed")(
            [Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy)]
        )
        grid = np.arange(400, 600)
        log_sum = np.log(power[centre + noisy[1].sum() - grid])
        log_posterior = laws[0].logpmf(noisy[0] - grid) + log_sum
        assert log_posterior[counts[0][0] - 400] == pytest.approx(log_posterior.max(), abs=1e-9)


def test_dealing_is_multinomial() -> None:
    rng = np.random.default_rng(12)
    offsets, values = np.array([0, 3, 5]), np.array([1, 2, 3, 0, 0])
    deals = np.array([deal(offsets, np.array([6, 4]), values, rng=rng) for _ in range(40_000)])
    assert (deals[:, :3].sum(axis=1) == 6).all()
    assert (deals[:, 3:].sum(axis=1) == 4).all()
    np.testing.assert_allclose(deals.mean(axis=0), [1, 2, 3, 2, 2], atol=0.03)
    np.testing.assert_allclose(deals.var(axis=0), [5 / 6, 4 / 3, 1.5, 1, 1], atol=0.04)
    assert np.cov(deals[:, 0], deals[:, 1])[0, 1] == pytest.approx(-6 * (1 / 6) * (2 / 6), abs=0.03)


def test_posterior_draws_have_the_cut_law() -> None:
    rng = np.random.default_rng(13)
    for noisy in (-300, -4, 0, 3, 50):
        draws = posterior_draws(np.full(60_000, noisy), ONE, rng=rng)
        grid = np.arange(0, 120)
        logs = ONE.logpmf(grid - noisy)
        pmf = np.exp(logs - logs.max())
        pmf /= pmf.sum()
        assert draws.min() >= 0
        assert draws.mean() == pytest.approx((grid * pmf).sum(), abs=0.05)
        assert draws.var() == pytest.approx(
            ((grid - (grid * pmf).sum()) ** 2 * pmf).sum(), rel=0.06
        )


def test_total_draws_follow_the_likelihood() -> None:
    rng = np.random.default_rng(14)
    observed = [(np.array([3]), ONE), (np.array([6]), sum_of({ONE: 4}))]
    draws = np.array([draw_from_likelihood(observed, rng=rng)[0] for _ in range(4000)])
    four = np.array([1.0])
    for _ in range(4):
        four = np.convolve(four, ONE.pmf(np.arange(-60, 61)))
    grid = np.arange(0, 60)
    pmf = ONE.pmf(3 - grid) * four[len(four) // 2 + 6 - grid]
    pmf /= pmf.sum()
    assert draws.mean() == pytest.approx((grid * pmf).sum(), abs=0.12)


def test_algorithm_limits_are_said() -> None:
    measurements = measured(HARD_CASES[0], copies=2)
    rng = np.random.default_rng(1)
    with pytest.raises(PlanError, match="one noisy value"):
        MultinomialDraw(rng=rng, algorithm=1)(measurements)
    with pytest.raises(PlanError, match="independent"):
        MultinomialDraw(rng=rng, algorithm=2, total="summed")(measurements)
