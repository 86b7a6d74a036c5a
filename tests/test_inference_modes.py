"""Posteriors from the published counts of mode releases, against brute force and the papers."""

from fractions import Fraction

import numpy as np
import pytest

import countwise as cw
from cases import tree
from countwise.arrays import FloatArray
from countwise.errors import InputError
from countwise.inference.exact_posterior import ExactPosterior
from countwise.inference.paper_tables import infer_counts
from countwise.inference.routes import infer_published
from countwise.noise.laws import DiscreteGaussian, Exact, Geometric, RoundedLaplace
from countwise.release.plan import Plan
from countwise.release.run import release
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import same_noise
from countwise.sumproduct.priors import Poisson, Uniform
from countwise.sumproduct.tree import solve
from countwise.tables.confidential import Confidential
from countwise.withheld.counts_only import CountsOnly
from countwise.withheld.mode_likelihood import ModeTies
from posteriors import clipped_chances, mode_likelihood, sum_grid

TABLE_3 = [0.214, 0.128, 0.079, 0.079, 0.065, 0.047, 0.047, 0.029, 0.029, 0.027]


def test_table_3_of_the_paper() -> None:
    """Wang & Reiter 2021, Table 3, to three decimals and in its order."""
    post = infer_counts([250, 357], total=607, epsilon=1, total_epsilon=1, ties="last")
    found = post.top(10)
    assert [round(each.probability, 3) for each in found] == TABLE_3
    assert [each.counts for each in found[:5]] == [
        (250, 357),
        (251, 356),
        (251, 357),
        (250, 356),
        (249, 358),
    ]


def test_other_order_of_ties_does_not_give_table_3() -> None:
    post = infer_counts([250, 357], epsilon=1, total_epsilon=1, ties=[0, 1])
    assert [round(each.probability, 3) for each in post.top(10)] != TABLE_3
    assert post.top(3)[1].probability == pytest.approx(0.097, abs=5e-4)


def test_three_components_have_the_known_means() -> None:
    post = infer_counts([4, 0, 7], epsilon=1, total_epsilon="0.7")
    np.testing.assert_allclose(post.summaries(1).mean, [4.26384, 0.54161, 6.93206], atol=6e-6)


def test_fifty_components_have_the_known_means_and_deviations() -> None:
    k = np.random.default_rng(50).integers(0, 1000, 50)
    found = infer_counts(k.tolist(), epsilon=1, total_epsilon=1).summaries(1)
    np.testing.assert_allclose(found.mean[:3], [781.38708, 787.32543, 714.32011], atol=6e-6)
    np.testing.assert_allclose(found.sd[:3], [1.434754, 1.439468, 1.420781], atol=6e-7)


def marginal(joint: FloatArray, axis: int) -> FloatArray:
    return joint.sum(axis=tuple(i for i in range(joint.ndim) if i != axis)) / joint.sum()


@pytest.mark.parametrize(
    ("k", "epsilon", "total_epsilon", "law"),
    [
        ([3, 5], "1", "1", Geometric),
        ([0, 4], "1.5", "0.5", Geometric),
        ([4, 4], "0.8", "2", RoundedLaplace),
        ([0, 0], "1", "1", Geometric),
        ([1, 0], "1", "0.3", Geometric),
        ([6], "1", "1", Geometric),
        ([0], "1", "1", Geometric),
        ([2, 3, 1], "2", "1", Geometric),
        ([1, 1, 1], "1.5", "1", Geometric),
        ([0, 0, 2], "2", "3", DiscreteGaussian),
        ([0, 0, 0], "1.5", "1.5", Geometric),
        ([4, 0, 2], "2.5", "0.7", RoundedLaplace),
    ],
)
@pytest.mark.parametrize("order", ["last", "random"])
def test_posterior_is_that_of_brute_force(
    k: list[int], epsilon: str, total_epsilon: str, law: type[Geometric], order: str
) -> None:
    size, tops = len(k), 8
    rank = np.arange(size)[::-1] if order == "last" else np.random.default_rng(3).permutation(size)
    laws = [law(scale=1 / Fraction(epsilon))] * size
    root = law(scale=1 / Fraction(total_epsilon))
    reach = int(30 / float(epsilon)) + 2
    likelihood = mode_likelihood(k, rank, laws, tops=tops, reach=reach)
    total = clipped_chances(root, size * tops, sum(k))[:, sum(k)]
    joint = likelihood * total[sum_grid([tops + 1] * size)]
    post = infer_counts(
        k,
        epsilon=epsilon,
        total_epsilon=total_epsilon,
        mechanism=law.name,
        ties=rank.tolist(),
        prior=Uniform(tops),
    )
    for s, name in enumerate(post.hierarchy.labels[0]):
        node = post.node(name)
        expected = marginal(joint, s)
        found = np.array([node.pmf(x) for x in range(tops + 1)])
        np.testing.assert_allclose(found, expected, atol=1e-9)
    best = np.unravel_index(joint.argmax(), joint.shape)
    top = post.top(5)
    assert top[0].probability == pytest.approx(joint.max() / joint.sum(), abs=1e-9)
    assert joint[top[0].counts] == pytest.approx(joint[best], rel=1e-9)


def test_two_levels_against_brute_force() -> None:
    hierarchy, tops = tree(2, 2), 4
    counts = (np.array([7]), np.array([3, 4]), np.array([0, 3, 2, 2]))
    order = (np.zeros(1, np.int64), np.array([1, 0]), np.array([0, 1, 1, 0]))
    laws = [Geometric(scale=Fraction(1, e)) for e in (1, 2, 2)]
    middle = mode_likelihood([3, 4], order[1], [laws[1]] * 2, tops=2 * tops, reach=16)
    left = mode_likelihood([0, 3], np.array([0, 1]), [laws[2]] * 2, tops=tops, reach=16)
    right = mode_likelihood([2, 2], np.array([1, 0]), [laws[2]] * 2, tops=tops, reach=16)
    pairs = sum_grid([tops + 1] * 2)
    root = clipped_chances(laws[0], 4 * tops, 7)[:, 7]
    first, second = pairs[:, :, None, None], pairs[None, None]
    joint = left[:, :, None, None] * right[None, None] * middle[first, second]
    joint = joint * root[first + second]
    ties = ModeTies(
        hierarchy=hierarchy,
        counts=counts,
        order=order,
        noise=tuple(same_noise(law, n) for law, n in zip(laws, hierarchy.sizes, strict=True)),
        seen=Evidence(noise=same_noise(laws[0], 1), values=counts[0], how="clipped"),
        prior=Uniform(tops),
    )
    solved = solve(ties)
    cells = next(solved.marginals(2))
    for s in range(4):
        low, law = cells.one(s)
        expected = marginal(joint, s)[low : low + len(law)]
        np.testing.assert_allclose(law, expected, atol=1e-9)
    tops_laws = next(solved.marginals(1))
    for s, sums in enumerate((first, second)):
        low, law = tops_laws.one(s)
        grid = np.broadcast_to(sums, joint.shape).ravel()
        expected = np.bincount(grid, joint.ravel(), minlength=low + len(law)) / joint.sum()
        np.testing.assert_allclose(law, expected[low : low + len(law)], atol=1e-9)


def test_a_prior_far_from_the_counts_is_followed() -> None:
    """Windows grow until no mass is at their ends."""
    post = infer_counts([60, 5], epsilon=1, total_epsilon="0.1", prior=Poisson([20.0, 5.0]))
    node = post.node("N1")
    assert node.mean < 60
    assert node.chances[-1] < 1e-12


def test_counts_of_a_billion() -> None:
    post = infer_counts([10**9, 3, 5 * 10**8], epsilon="0.2", total_epsilon=10)
    assert post.node("N1").mean == pytest.approx(10**9, abs=40)
    assert sum(post.summaries(1).mean) == pytest.approx(post.node("total").mean, abs=1e-3)


def test_tables_that_are_no_releases_are_refused() -> None:
    with pytest.raises(InputError, match="not to the total"):
        infer_counts([10, 10], total=21, epsilon=1, total_epsilon=1)
    with pytest.raises(InputError, match="0 or more"):
        infer_counts([10, -1], epsilon=1, total_epsilon=1)
    with pytest.raises(InputError, match="places 0 to 1"):
        infer_counts([10, 1], epsilon=1, total_epsilon=1, ties=[1, 1])
    with pytest.raises(InputError, match="one a component"):
        infer_counts([10, 1], epsilon=[1, 1, 1], total_epsilon=1)


def test_a_total_without_noise_against_brute_force() -> None:
    """Replace-one neighbours: the total is exact, and windows must not grow for it."""
    k, tops, law = [3, 0, 2], 5, Geometric(scale=Fraction(1, 2))
    rank = np.array([1, 0, 2])
    joint = mode_likelihood(k, rank, [law] * 3, tops=tops, reach=16)
    joint = joint * (sum_grid([tops + 1] * 3) == 5)
    hierarchy = tree(3)
    published = CountsOnly(
        hierarchy=hierarchy,
        counts=(np.array([5]), np.array(k)),
        order=(np.zeros(1, np.int64), rank),
        noise=(same_noise(Exact(), 1), same_noise(law, 3)),
        adjust="mode",
    )
    post = infer_published(published)
    assert isinstance(post, ExactPosterior)
    assert isinstance(post.solved.ties, ModeTies)
    assert post.solved.ties.depth == ModeTies.depth
    assert post.node("total").pmf(5) == pytest.approx(1)
    for s in range(3):
        found = [post.node(f"{s:05}").pmf(x) for x in range(tops + 1)]
        np.testing.assert_allclose(found, marginal(joint, s), atol=1e-9)


@pytest.mark.parametrize("adjust", ["mode", "draw-2"])
def test_deep_trees_from_counts_add_up(adjust: str) -> None:
    hierarchy = tree(2, 1, 3, 2)
    cells = np.random.default_rng(5).poisson(6, hierarchy.cells)
    made = release(Confidential(hierarchy, cells), Plan(epsilon=10, adjust=adjust))
    post = cw.infer(made, source="counts")
    for level, offsets in enumerate(hierarchy.offsets):
        sums = np.add.reduceat(post.summaries(level + 1).mean, offsets[:-1])
        np.testing.assert_allclose(sums, post.summaries(level).mean, atol=1e-6)
    draws = post.draws(200, rng=np.random.default_rng(1))
    spread = 5 * post.summaries(4).sd / np.sqrt(200) + 1e-9
    np.testing.assert_array_less(np.abs(draws.cells.mean(0) - post.summaries(4).mean), spread)
