"""The Gibbs sampler against the exact route, and against brute force where there is none."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import countwise as cw
from cases import tree
from countwise.adjust.count_modes import posterior_modes
from countwise.errors import InputError
from countwise.inference.diagnostics import effective_size, split_rhat
from countwise.inference.sampled_posterior import SampledPosterior
from countwise.noise.laws import Geometric
from countwise.noise.noise_sums import sum_of
from countwise.sumproduct.priors import Uniform
from countwise.tables.measurements import Measurements
from posteriors import leads_to


@pytest.mark.parametrize(
    ("counts", "adjust"),
    [
        ([250, 357], "mode"),
        ([4, 0, 7], "mode"),
        ([0, 0], "mode"),
        ([3, 0], "mode"),
        ([1, 1], "mode"),
        ([4, 0, 7], "draw-2"),
        ([4, 0, 7], "draw-1"),
        ([3, 0], "clipped"),
    ],
)
def test_sampler_agrees_with_the_exact_route(counts: list[int], adjust: str) -> None:
    arguments = {"counts": counts, "epsilon": 1, "total_epsilon": "0.7", "adjust": adjust}
    exact = cw.infer_counts(**arguments).summaries(1)
    post = cw.infer_counts(**arguments, method="gibbs", rng=np.random.default_rng(11))
    assert isinstance(post, SampledPosterior)
    assert post.rhat < 1.02
    found = post.summaries(1)
    error = exact.sd / np.sqrt(post.effective)
    np.testing.assert_array_less(np.abs(found.mean - exact.mean), 5 * error)
    np.testing.assert_allclose(found.sd, exact.sd, rtol=0.05)


def test_sampler_of_published_noisy_counts_on_a_tree() -> None:
    hierarchy = tree(2, 3)
    laws = tuple(Geometric(scale=Fraction(s)) for s in (1, 2, 2))
    noisy = (np.array([30]), np.array([10, 17]), np.array([1, -2, 12, 5, 6, 9]))
    measurements = [Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy)]
    exact = cw.infer_measurements(measurements, prior="uniform")
    rng = np.random.default_rng(5)
    found = cw.infer_measurements(measurements, prior="uniform", method="gibbs", rng=rng)
    assert isinstance(found, SampledPosterior)
    expected = exact.summaries(2)
    error = expected.sd / np.sqrt(found.effective)
    np.testing.assert_array_less(np.abs(found.summaries(2).mean - expected.mean), 5 * error)
    assert "effective sample size" in found.diagnostics


def test_summed_total_against_brute_force() -> None:
    """Step 3' of the paper: m is the mode given the noisy total and the sum of noisy parts."""
    k, tops, reach = [2, 3], 7, 12
    law, root = Geometric(scale=Fraction(1, 2)), Geometric(scale=Fraction(1))
    rank = np.array([1, 0])
    width = tops + reach
    parts = np.arange(-reach, width)
    made = leads_to(k, rank, [width, width])
    joint = np.zeros((tops + 1, tops + 1))
    total_noisy = np.arange(5 - 40, 5 + 41)
    for first, second in product(parts, parts):
        if not made[max(first, 0), max(second, 0)]:
            continue
        sums = np.full(len(total_noisy), first + second)
        modes = posterior_modes([(total_noisy, root), (sums, sum_of({law: 2}))])
        leads = total_noisy[modes == 5]
        grid = np.arange(tops + 1)
        likelihood = law.pmf(first - grid)[:, None] * law.pmf(second - grid)
        chance = root.pmf(leads - (grid[:, None] + grid)[..., None]).sum(axis=-1)
        joint += likelihood * chance
    joint /= joint.sum()
    post = cw.infer_counts(
        k,
        epsilon=2,
        total_epsilon=1,
        from_total="summed",
        prior=Uniform(tops),
        method="gibbs",
        rng=np.random.default_rng(2),
    )
    assert isinstance(post, SampledPosterior)
    for s, name in enumerate(("N1", "N2")):
        expected = joint.sum(axis=1 - s)
        found = np.array([post.node(name).pmf(x) for x in range(tops + 1)])
        error = np.sqrt(expected * (1 - expected) / post.effective) + 1e-3
        np.testing.assert_array_less(np.abs(found - expected), 5 * error)


def test_a_sampler_needs_a_generator() -> None:
    with pytest.raises(InputError, match="rng"):
        cw.infer_counts([2, 3], epsilon=1, total_epsilon=1, method="gibbs")


def test_what_would_take_minutes_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("countwise.withheld.counts_only.COSTLIEST", 10.0)
    post = cw.infer_counts([2, 3], epsilon=1, total_epsilon=1, rng=np.random.default_rng(1))
    assert isinstance(post, SampledPosterior)
    assert "would take minutes" in post.route
    assert "R-hat" in post.diagnostics


def test_a_draw_with_a_summed_total_is_sampled_and_says_so() -> None:
    how = {"epsilon": 1, "total_epsilon": 1, "adjust": "draw-1", "from_total": "summed"}
    post = cw.infer_counts([2, 3], **how, rng=np.random.default_rng(1))
    assert isinstance(post, SampledPosterior)
    assert "summed total" in post.route
    assert "no exact route" in post.route
    with pytest.raises(InputError, match="--method gibbs"):
        cw.infer_counts([2, 3], **how, method="exact")


def test_answers_from_draws_state_their_error() -> None:
    post = cw.infer_counts(
        [20, 30], epsilon=1, total_epsilon=1, method="gibbs", rng=np.random.default_rng(1)
    )
    exact = cw.infer_counts([20, 30], epsilon=1, total_epsilon=1)
    for statement in ("N1 + N2 >= 51", "N2 - N1 > 10"):
        found, expected = post.probability(statement), exact.probability(statement)
        assert not found.exact
        assert abs(found - expected) < 5 * found.error
    best, expected_best = post.top(1)[0], exact.top(1)[0]
    assert best.counts == expected_best.counts
    assert best.probability == pytest.approx(expected_best.probability, abs=0.02)
    assert post.law("N1 + N2").mean == pytest.approx(exact.node("total").mean, abs=0.1)
    assert (post.draws(10, rng=np.random.default_rng(1)).cells >= 0).all()


def test_diagnostics_see_chains_that_disagree_or_stick() -> None:
    rng = np.random.default_rng(0)
    fine = rng.standard_normal((8, 1000, 1))
    assert split_rhat(fine)[0] == pytest.approx(1, abs=0.01)
    assert effective_size(fine)[0] == pytest.approx(8000, rel=0.15)
    assert split_rhat(fine + np.arange(8)[:, None, None])[0] > 2
    slow = np.empty((8, 4000, 1))
    slow[:, 0] = rng.standard_normal((8, 1))
    for t in range(1, 4000):
        slow[:, t] = 0.9 * slow[:, t - 1] + np.sqrt(0.19) * rng.standard_normal((8, 1))
    assert effective_size(slow)[0] == pytest.approx(32_000 / 19, rel=0.25)
