"""Posteriors of releases whose total was also made from the sum of the noisy parts."""

from fractions import Fraction

import numpy as np
import pytest

import countwise as cw
from countwise.adjust.likelihood import SumLaw, posterior_modes
from countwise.arrays import FloatArray, IntArray
from countwise.inference.computed import Computed
from countwise.privacy.laws import DiscreteGaussian, Geometric, IntegerLaw, RoundedLaplace
from countwise.sumproduct.priors import Uniform
from posteriors import leads_to


def summed_likelihood(
    k: list[int], rank: IntArray, law: IntegerLaw, root: IntegerLaw, *, tops: int, reach: int
) -> FloatArray:
    """P(k, m | N) for every N in 0..tops: over every noisy part, and every noisy total."""
    size, m = len(k), sum(k)
    parts = np.arange(-reach, tops + reach + 1)
    grids = np.meshgrid(*[parts] * size, indexing="ij")
    made = leads_to(k, rank, [tops + reach + 1] * size) if m else None
    possible = (
        made[tuple(np.maximum(each, 0) for each in grids)]
        if made is not None
        else 1.0 + 0 * grids[0]
    )
    sums = np.sum(grids, axis=0)
    far = 3 * reach + size * tops + m
    noisy = np.arange(-far, far + 1)
    chances = np.zeros((int(sums.max() - sums.min()) + 1, size * tops + 1))
    for t in range(int(sums.min()), int(sums.max()) + 1):
        of_sum = SumLaw(law=law, terms=size)
        modes = posterior_modes([(noisy, root), (np.full(len(noisy), t), of_sum)])
        leads = noisy[modes == m]
        chances[t - sums.min()] = root.pmf(leads - np.arange(size * tops + 1)[:, None]).sum(axis=1)
    likelihood = np.zeros([tops + 1] * size)
    to_noisy = law.pmf(parts - np.arange(tops + 1)[:, None])
    for point in np.ndindex(likelihood.shape):
        weight = possible * chances[sums - sums.min(), sum(point)]
        for x in reversed(point):
            weight = weight @ to_noisy[x]
        likelihood[point] = weight
    return likelihood


CASES = [
    ([3, 5], "2", "0.5", Geometric),
    ([0, 4], "2", "0.5", Geometric),
    ([4, 4], "1.5", "0.7", RoundedLaplace),
    ([0, 0], "2", "0.6", Geometric),
    ([1, 0], "1.5", "0.4", Geometric),
    ([2, 2], "2", "2.5", Geometric),
    ([6], "1", "0.5", Geometric),
    ([3, 2], "1", "0.5", DiscreteGaussian),
    ([0, 3], "1", "1.5", DiscreteGaussian),
    ([2, 3, 1], "3", "0.6", Geometric),
    ([1, 1, 1], "3", "0.8", RoundedLaplace),
    ([0, 0, 2], "3", "0.9", Geometric),
    ([0, 0, 0], "3", "0.7", Geometric),
]


@pytest.mark.parametrize(("k", "epsilon", "total_epsilon", "law"), CASES)
@pytest.mark.parametrize("order", ["last", "random"])
def test_posterior_is_that_of_brute_force(
    k: list[int], epsilon: str, total_epsilon: str, law: type[IntegerLaw], order: str
) -> None:
    size = len(k)
    tops = 8 if size < 3 else 5
    rank = np.arange(size)[::-1] if order == "last" else np.random.default_rng(3).permutation(size)
    part, root = law(scale=1 / Fraction(epsilon)), law(scale=1 / Fraction(total_epsilon))
    reach = int(30 / float(epsilon)) + 2
    joint = summed_likelihood(k, rank, part, root, tops=tops, reach=reach)
    post = cw.infer_counts(
        k,
        epsilon=epsilon,
        total_epsilon=total_epsilon,
        mechanism=law.name,
        ties=rank.tolist(),
        prior=Uniform(tops),
        from_total="summed",
    )
    assert isinstance(post, Computed)
    for s, name in enumerate(post.hierarchy.labels[0]):
        others = tuple(i for i in range(size) if i != s)
        found = [post.node(name).pmf(x) for x in range(tops + 1)]
        np.testing.assert_allclose(found, joint.sum(axis=others) / joint.sum(), atol=1e-9)


@pytest.mark.parametrize(
    ("k", "epsilon", "total_epsilon"), [([3, 0], "2", "0.5"), ([1, 0, 2], "3", "0.8")]
)
def test_combinations_statements_and_draws_are_those_of_brute_force(
    k: list[int], epsilon: str, total_epsilon: str
) -> None:
    size, tops = len(k), 5
    rank = np.random.default_rng(8).permutation(size)
    part = Geometric(scale=1 / Fraction(epsilon))
    root = Geometric(scale=1 / Fraction(total_epsilon))
    reach = int(30 / float(epsilon)) + 2
    joint = summed_likelihood(k, rank, part, root, tops=tops, reach=reach)
    joint /= joint.sum()
    post = cw.infer_counts(
        k,
        epsilon=epsilon,
        total_epsilon=total_epsilon,
        ties=rank.tolist(),
        prior=Uniform(tops),
        from_total="summed",
    )
    best = post.top(6)
    expected = np.sort(joint.ravel())[::-1][:6]
    np.testing.assert_allclose([each.probability for each in best], expected, atol=1e-9)
    for each in best:
        assert joint[each.counts] == pytest.approx(each.probability, abs=1e-9)
    first, second = np.indices(joint.shape)[:2]
    for statement, holds in (
        ("N1 > N2", first > second),
        ("2*N1 - N2 >= 3", 2 * first - second >= 3),
    ):
        found = post.probability(statement)
        assert found.exact
        assert found == pytest.approx(joint[holds].sum(), abs=1e-9)
    draws = post.draws(20_000, rng=np.random.default_rng(1)).cells
    found = np.histogramdd(draws, bins=[np.arange(tops + 2) - 0.5] * size)[0] / len(draws)
    error = np.sqrt(joint * (1 - joint) / len(draws)) + 1e-4
    np.testing.assert_array_less(np.abs(found - joint), 5 * error)
