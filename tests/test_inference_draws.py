"""Posteriors from counts dealt at random and from clipped counts, against brute force."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import gammaln, xlogy

import countwise as cw
from cases import tree
from countwise.arrays import FloatArray
from countwise.inference.sampled_posterior import SampledPosterior
from countwise.noise.laws import DiscreteGaussian, Geometric, IntegerLaw
from countwise.sumproduct.evidence import Evidence
from countwise.sumproduct.node_noise import same_noise
from countwise.sumproduct.priors import Uniform
from countwise.sumproduct.tree import solve
from countwise.withheld.draw_likelihood import DrawTies, quadrature
from posteriors import clipped_chances, sum_grid


def redrawn_chances(law: IntegerLaw, tops: int, reach: int) -> FloatArray:
    """P(v | N), N = 0..tops, v = 0..tops + 2·reach: noise, then a posterior draw, term by term."""
    table = np.zeros((tops + 1, tops + 2 * reach + 1))
    for n in range(-reach, tops + reach + 1):
        draw = law.pmf(np.arange(table.shape[1]) - n)
        draw = draw / draw.sum()
        table += np.outer(law.pmf(n - np.arange(tops + 1)), draw)
    return table


def dealt_likelihood(k: list[int], chances: list[FloatArray]) -> FloatArray:
    """P(k | N): multinomial probabilities averaged over every v."""
    v = np.stack(np.meshgrid(*(np.arange(c.shape[1]) for c in chances), indexing="ij"), axis=-1)
    v = np.where(v.sum(axis=-1, keepdims=True) == 0, 1, v)
    shares = v / v.sum(axis=-1, keepdims=True)
    ways = gammaln(sum(k) + 1) - gammaln(np.array(k) + 1).sum()
    found = np.exp(ways + xlogy(np.array(k), shares).sum(axis=-1))
    for each in chances:
        found = np.tensordot(found, each, axes=([0], [1]))
    return found


@pytest.mark.parametrize("adjust", ["draw-1", "draw-2"])
@pytest.mark.parametrize(
    ("k", "epsilon", "total_epsilon"),
    [
        ([2, 3], "1.5", "1"),
        ([0, 4], "2", "0.5"),
        ([0, 0], "2", "1"),
        ([5], "2", "1"),
        ([1, 0, 2], "3", "2"),
    ],
)
def test_dealt_counts_against_all_combinations(
    k: list[int], epsilon: str, total_epsilon: str, adjust: str
) -> None:
    tops, size = 7, len(k)
    law = Geometric(scale=1 / Fraction(epsilon))
    root = Geometric(scale=1 / Fraction(total_epsilon))
    reach = int(30 / float(epsilon))
    if adjust == "draw-2":
        chances = clipped_chances(law, tops, reach)
        total = clipped_chances(root, size * tops, sum(k))[:, sum(k)]
    else:
        chances = redrawn_chances(law, tops, reach)
        total = redrawn_chances(root, size * tops, int(30 / float(total_epsilon)))[:, sum(k)]
    likelihood = dealt_likelihood(k, [chances] * size) if sum(k) else np.ones([tops + 1] * size)
    joint = likelihood * total[sum_grid([tops + 1] * size)]
    post = cw.infer_counts(
        k, epsilon=epsilon, total_epsilon=total_epsilon, adjust=adjust, prior=Uniform(tops)
    )
    for s, name in enumerate(post.hierarchy.labels[0]):
        others = tuple(i for i in range(size) if i != s)
        expected = joint.sum(axis=others) / joint.sum()
        found = [post.node(name).pmf(x) for x in range(tops + 1)]
        np.testing.assert_allclose(found, expected, atol=1e-9)


def summed_draw_likelihood(
    k: list[int], laws: list[IntegerLaw], root: IntegerLaw, *, tops: int, reach: int
) -> FloatArray:
    """P(k, m | N) of Algorithm 1 with a summed total: over all noisy parts, values and totals."""
    size, m = len(k), sum(k)
    noisy, v = np.arange(-reach, tops + reach + 1), np.arange(tops + 2 * reach + 1)
    given = [law.pmf(v - noisy[:, None]) for law in laws]
    given = [each / each.sum(axis=1, keepdims=True) for each in given]
    shared = dealt_likelihood(k, given) if m else np.ones([len(noisy)] * size)
    one = np.arange(-4 * reach, 4 * reach + 1)
    of_sum = np.ones(1)
    for law in laws:
        of_sum = np.convolve(of_sum, law.pmf(one))
    middle = len(of_sum) // 2
    sums = np.arange(size * noisy[0], size * noisy[-1] + 1)
    far = int(sums[-1]) + 40 * int(root.scale + 1)
    true = np.arange(far + 1)
    totals = np.arange(-far, 2 * far)
    chances = np.zeros((size * tops + 1, len(sums)))
    for i, t in enumerate(sums):
        weights = (
            root.pmf(totals[:, None] - true)
            * of_sum[np.clip(t - true + middle, 0, len(of_sum) - 1)]
        )
        mass = weights.sum(axis=1)
        drawn = np.divide(weights[:, m], mass, out=np.zeros(len(mass)), where=mass > 0)
        chances[:, i] = root.pmf(totals - np.arange(size * tops + 1)[:, None]) @ drawn
    grid = sum_grid([len(noisy)] * size)  # counted from the lowest sum
    joint = np.zeros([tops + 1] * size)
    for point in np.ndindex(joint.shape):
        weight = shared * chances[sum(point)][grid]
        for s in reversed(range(size)):
            weight = weight @ laws[s].pmf(noisy - point[s])
        joint[point] = weight
    return joint / joint.sum()


@pytest.mark.parametrize(
    ("k", "epsilon", "total_epsilon", "law"),
    [
        ([2, 3], ["2", "2"], "1", Geometric),
        ([0, 3], ["2", "3"], "0.8", Geometric),
        ([0, 0], ["2", "2"], "1", Geometric),
        ([3, 1], ["1.5", "1.5"], "2", DiscreteGaussian),
        ([1, 0, 2], ["4", "4", "4"], "1.5", Geometric),
    ],
)
def test_dealt_counts_with_a_summed_total_against_all_combinations(
    k: list[int], epsilon: list[str], total_epsilon: str, law: type[IntegerLaw]
) -> None:
    size = len(k)
    tops, reach = (6, 15) if size < 3 else (3, 8)
    laws = [law(scale=1 / Fraction(each)) for each in epsilon]
    root = law(scale=1 / Fraction(total_epsilon))
    joint = summed_draw_likelihood(k, laws, root, tops=tops, reach=reach)
    post = cw.infer_counts(
        k,
        epsilon=epsilon,
        total_epsilon=total_epsilon,
        mechanism=law.name,
        adjust="draw-1",
        from_total="summed",
        prior=Uniform(tops),
        rng=np.random.default_rng(6),
    )
    assert isinstance(post, SampledPosterior)
    found = np.histogramdd(post.all_draws.cells, bins=[np.arange(tops + 2) - 0.5] * size)[0]
    error = np.sqrt(joint * (1 - joint) / post.effective) + 1e-3
    np.testing.assert_array_less(np.abs(found / found.sum() - joint), 5 * error)


def test_a_dealt_tree_against_all_combinations() -> None:
    hierarchy, tops = tree(2, 2), 3
    counts = (np.array([5]), np.array([2, 3]), np.array([0, 2, 1, 2]))
    laws = [Geometric(scale=Fraction(1, e)) for e in (1, 2, 3)]
    above, cell = clipped_chances(laws[1], 2 * tops, 14), clipped_chances(laws[2], tops, 10)
    middle = dealt_likelihood([2, 3], [above] * 2)
    left, right = dealt_likelihood([0, 2], [cell] * 2), dealt_likelihood([1, 2], [cell] * 2)
    pairs = sum_grid([tops + 1] * 2)
    first, second = pairs[:, :, None, None], pairs[None, None]
    root = clipped_chances(laws[0], 4 * tops, 5)[:, 5]
    joint = left[:, :, None, None] * right[None, None] * middle[first, second]
    joint = joint * root[first + second]
    noise = tuple(same_noise(law, n) for law, n in zip(laws, hierarchy.sizes, strict=True))
    seen = Evidence(noise=noise[0], values=counts[0], how="clipped")
    ties = DrawTies(
        hierarchy=hierarchy,
        counts=counts,
        noise=noise,
        seen=seen,
        prior=Uniform(tops),
        algorithm=2,
    )
    cells = next(solve(ties).marginals(2))
    for s in range(4):
        low, law = cells.one(s)
        expected = joint.sum(axis=tuple(i for i in range(4) if i != s)) / joint.sum()
        np.testing.assert_allclose(law, expected[low : low + len(law)], atol=1e-9)


def test_table_4_of_the_draft() -> None:
    """Wang 2020, Table 4: the order of its ten rows; its probabilities are twice too large."""
    post = cw.infer_counts([250, 357], epsilon=1, total_epsilon=1, adjust="draw-2")
    found = post.top(10)
    assert [each.counts[0] for each in found] == [250, 251, 249, 252, 248, 253, 247, 254, 246, 255]
    assert [round(each.probability, 3) for each in found[:3]] == [0.015] * 3


@pytest.mark.parametrize("total", [1, 2, 7, 40, 1000, 10**6])
def test_quadrature_gives_the_power_of_the_sum(total: int) -> None:
    u, logs = quadrature(total, 0.8 * total, 1.3 * total, 42.0)
    for sum_v in (0.85 * total, float(total), 1.25 * total):
        terms = logs - u * sum_v
        found = terms.max() + np.log(np.exp(terms - terms.max()).sum())
        assert found == pytest.approx(-total * np.log(sum_v), abs=1e-9 + 1e-15 * total)


def test_clipped_counts_one_by_one() -> None:
    post = cw.infer_counts([3, 0], epsilon=1, total_epsilon=1, adjust="clipped", prior="uniform:40")
    law = Geometric(scale=Fraction(1))
    chances = clipped_chances(law, 40, 3)
    for name, k in (("N1", 3), ("N2", 0)):
        expected = chances[:, k] / chances[:, k].sum()
        found = [post.node(name).pmf(x) for x in range(41)]
        np.testing.assert_allclose(found, expected, atol=1e-13)
    total = np.convolve(chances[:, 3], chances[:, 0])
    found = [post.node("total").pmf(x) for x in range(30)]
    np.testing.assert_allclose(found, (total / total.sum())[:30], atol=1e-12)
