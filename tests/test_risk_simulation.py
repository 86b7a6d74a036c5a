"""Simulation of more bins and of releases, against known means."""

from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from countwise.adjust.histogram import ESTIMATORS
from countwise.noise.laws import DiscreteGaussian, Geometric, Laplace
from countwise.release.plan import Plan
from countwise.risk.advice import advise
from countwise.risk.monte_carlo import Tally, draw_noise, simulate_estimators, simulate_plan
from countwise.tables.hierarchy import build

ONE = Laplace(scale=Fraction(1))
UNIT = Geometric(scale=Fraction(1))


def test_clipped_is_a_sum_over_bins() -> None:
    """Fifty bins: E = Σ (2 - (h+1)·e^-h)."""
    counts = np.linspace(0, 5, 50)
    rng = np.random.default_rng(4)
    [(mean, error)] = simulate_estimators(
        [ESTIMATORS["clipped"]], counts, ONE, draws=20_000, rng=rng
    )
    exact = (2 - (counts + 1) * np.exp(-counts)).sum()
    assert abs(mean - exact) < 4 * error
    assert error < 1e-3 * exact


def test_variance_reduction_and_honest_errors() -> None:
    counts = np.array([0.0, 1, 4, 4, 9])
    estimators = [ESTIMATORS[name] for name in ("identity", "clipped", "resized")]
    rng = np.random.default_rng(5)
    runs = np.array(
        [simulate_estimators(estimators, counts, ONE, draws=500, rng=rng) for _ in range(150)]
    )
    assert runs[:, 0, 0] == pytest.approx(10, rel=1e-12)
    for which in (1, 2):
        claimed, seen = runs[:, which, 1].mean(), runs[:, which, 0].std(ddof=1)
        assert claimed == pytest.approx(seen, rel=0.25)
        noise = rng.laplace(size=(20_000, 5))
        losses = ((estimators[which](counts + noise, law=ONE) - counts) ** 2).sum(axis=1)
        assert claimed < 0.6 * losses.std() / np.sqrt(2 * 500)


def test_same_generator_same_answer() -> None:
    counts = np.arange(6.0)
    first, second = (
        simulate_estimators(
            list(ESTIMATORS.values()), counts, UNIT, draws=3000, rng=np.random.default_rng(8)
        )
        for _ in range(2)
    )
    assert first == second


def test_batches_add_up() -> None:
    rng = np.random.default_rng(6)
    losses, controls = rng.exponential(size=(2, 1000))
    controls += losses
    whole, parts = Tally(control_mean=2.0), Tally(control_mean=2.0)
    whole.add(losses, controls)
    for part in range(0, 1000, 130):
        parts.add(losses[part : part + 130], controls[part : part + 130])
    assert parts.result() == pytest.approx(whole.result(), rel=1e-12)


@pytest.mark.parametrize("law", [ONE, UNIT, DiscreteGaussian(scale=Fraction(3))])
def test_noise_has_its_variance(law: Laplace | Geometric | DiscreteGaussian) -> None:
    noise = draw_noise(law, (200, 500), rng=np.random.default_rng(7))
    assert (noise**2).mean() == pytest.approx(law.variance, rel=0.04)


HIERARCHY, _ = build(pl.DataFrame({"a": list("xxyyy"), "b": list("12123")}))
CELLS = np.array([0, 3, 50, 0, 7])


def test_release_methods_are_simulated_with_errors() -> None:
    plan = Plan(epsilon=3, adjust="clipped", split={"total": 1, "a": 1, "b": 1})
    rng = np.random.default_rng(9)
    results = simulate_plan(HIERARCHY, CELLS, plan, repetitions=1500, rng=rng)
    [(mean, error)] = simulate_estimators(
        [ESTIMATORS["clipped"]], CELLS * 1.0, UNIT, draws=200_000, rng=rng
    )
    assert abs(results[-1][0] - mean) < 4 * np.hypot(results[-1][1], error)
    plan = Plan(epsilon=3, adjust="mode")
    mode = simulate_plan(HIERARCHY, CELLS, plan, repetitions=300, rng=rng)
    assert mode[0] == pytest.approx((UNIT.variance, 0), rel=1e-9, abs=1e-6)
    assert 0 < mode[-1][1] < 0.2 * mode[-1][0]


def test_advice_ranks_and_says_what_it_could_not_do() -> None:
    ranked, refused = advise(
        HIERARCHY,
        CELLS,
        Plan(epsilon=3),
        rng=np.random.default_rng(0),
        repetitions=40,
        adjustments=("mode", "clipped", "segmented", "identity"),
        mechanisms=("geometric", "laplace"),
    )
    assert len(ranked) == 6
    assert [o.overall for o in ranked] == sorted(o.overall for o in ranked)
    best = ranked[0].level_rmse
    assert ranked[0].overall == pytest.approx(np.exp(np.mean(np.log(best))))
    for each in ranked:
        assert each.spoiled == () if each.adjustment == "mode" else "total" in each.spoiled
    assert ranked[-1].adjustment == "segmented"
    assert [name for name, _ in refused] == ["identity, geometric", "identity, laplace"]
