"""Posteriors of releases whose total was also made from the sum of the noisy parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

import countwise as cw
from cases import tree
from countwise.adjust.count_modes import posterior_modes
from countwise.arrays import FloatArray, IntArray
from countwise.inference.combinations import Siblings
from countwise.inference.exact_posterior import ExactPosterior
from countwise.inference.posterior import Posterior
from countwise.inference.routes import infer_published
from countwise.noise.laws import DiscreteGaussian, Geometric, IntegerLaw, RoundedLaplace
from countwise.noise.noise_sums import sum_of
from countwise.sumproduct.node_noise import same_noise
from countwise.sumproduct.priors import Uniform
from countwise.withheld import summed_root
from countwise.withheld.counts_only import CountsOnly
from countwise.withheld.summed_total import FAR, TotalMode, noisy_totals
from posteriors import leads_to, mode_likelihood, sum_grid


@dataclass(frozen=True)
class Table:
    """A law around zero, as `posterior_modes` asks for it."""

    chances: FloatArray

    def slope(self, k: IntArray) -> FloatArray:
        middle = len(self.chances) // 2
        at = np.clip(k + middle, 0, len(self.chances) - 2)
        return np.diff(np.log(self.chances))[at]


def by_convolution(laws: Sequence[IntegerLaw], reach: int) -> Table:
    """The law of a sum of noises, on -reach..reach times their number."""
    total = np.ones(1)
    for law in laws:
        total = np.convolve(total, law.pmf(np.arange(-reach, reach + 1)))
    lost = int((total < 1e-290).sum()) // 2  # where logarithms fail
    return Table(total[lost : len(total) - lost])


def summed_likelihood(
    k: list[int],
    rank: IntArray,
    laws: Sequence[IntegerLaw],
    root: IntegerLaw,
    *,
    tops: int,
    reach: int,
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
    alike = len(set(laws)) == 1
    of_sum = sum_of({laws[0]: size}) if alike else by_convolution(laws, 2 * reach)
    chances = np.zeros((int(sums.max() - sums.min()) + 1, size * tops + 1))
    for t in range(int(sums.min()), int(sums.max()) + 1):
        modes = posterior_modes([(noisy, root), (np.full(len(noisy), t), of_sum)])
        leads = noisy[modes == m]
        chances[t - sums.min()] = root.pmf(leads - np.arange(size * tops + 1)[:, None]).sum(axis=1)
    likelihood = np.zeros([tops + 1] * size)
    to_noisy = [law.pmf(parts - np.arange(tops + 1)[:, None]) for law in laws]
    for point in np.ndindex(likelihood.shape):
        weight = possible * chances[sums - sums.min(), sum(point)]
        for s in reversed(range(size)):
            weight = weight @ to_noisy[s][point[s]]
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
    k: list[int],
    epsilon: str,
    total_epsilon: str,
    law: type[IntegerLaw],
    order: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Packed pairs, as few of them are solved, and by frequency, as many are."""
    size = len(k)
    tops = 8 if size < 3 else 5
    rank = np.arange(size)[::-1] if order == "last" else np.random.default_rng(3).permutation(size)
    part, root = law(scale=1 / Fraction(epsilon)), law(scale=1 / Fraction(total_epsilon))
    reach = int(30 / float(epsilon)) + 2
    joint = summed_likelihood(k, rank, [part] * size, root, tops=tops, reach=reach)
    for few in (summed_root.FEW, 0):
        monkeypatch.setattr(summed_root, "FEW", few)
        post = cw.infer_counts(
            k,
            epsilon=epsilon,
            total_epsilon=total_epsilon,
            mechanism=law.name,
            ties=rank.tolist(),
            prior=Uniform(tops),
            from_total="summed",
        )
        assert isinstance(post, ExactPosterior)
        for s, name in enumerate(post.hierarchy.labels[0]):
            others = tuple(i for i in range(size) if i != s)
            found = [post.node(name).pmf(x) for x in range(tops + 1)]
            np.testing.assert_allclose(found, joint.sum(axis=others) / joint.sum(), atol=1e-9)


@pytest.mark.parametrize("prior", ["uniform", "negative-binomial:12,1.5"])
@pytest.mark.parametrize("law", [Geometric, DiscreteGaussian])
def test_transforms_give_what_packed_pairs_do(
    prior: str, law: type[IntegerLaw], monkeypatch: pytest.MonkeyPatch
) -> None:
    k = [7, 0, 12, 3, 1, 30]
    found = []
    for few in (10**12, 0):
        monkeypatch.setattr(summed_root, "FEW", few)
        post = cw.infer_counts(
            k,
            epsilon=1,
            total_epsilon="0.4",
            mechanism=law.name,
            prior=prior,
            from_total="summed",
        )
        assert isinstance(post, ExactPosterior)
        found.append(post.solved.family(0, 0, 1))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.scaled().values, other.scaled().values, atol=1e-11)


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
    joint = summed_likelihood(k, rank, [part] * size, root, tops=tops, reach=reach)
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


def small_tree(total: str) -> tuple[Posterior, FloatArray]:
    """The posterior of two by two cells, and their joint law by brute force."""
    hierarchy, tops = tree(2, 2), 3
    counts = (np.array([5]), np.array([2, 3]), np.array([0, 2, 2, 1]))
    order = (np.zeros(1, np.int64), np.array([1, 0]), np.array([0, 1, 1, 0]))
    laws = [Geometric(scale=Fraction(each)) for each in ("2", "1/2", "1/2")]
    twice = [laws[1]] * 2
    pairs = sum_grid([tops + 1] * 2)
    if total == "summed":
        middle = summed_likelihood([2, 3], order[1], twice, laws[0], tops=2 * tops, reach=16)
    else:
        middle = mode_likelihood([2, 3], order[1], twice, tops=2 * tops, reach=16)
        middle = middle * laws[0].pmf(5 - sum_grid([2 * tops + 1] * 2))
    left = mode_likelihood([0, 2], np.array([0, 1]), [laws[2]] * 2, tops=tops, reach=16)
    right = mode_likelihood([2, 1], np.array([1, 0]), [laws[2]] * 2, tops=tops, reach=16)
    joint = left[:, :, None, None] * right[None, None]
    joint = joint * middle[pairs[:, :, None, None], pairs[None, None]]
    published = CountsOnly(
        hierarchy=hierarchy,
        counts=counts,
        order=order,
        noise=tuple(same_noise(law, n) for law, n in zip(laws, hierarchy.sizes, strict=True)),
        adjust="mode",
        total=total,
    )
    return infer_published(published, prior=Uniform(tops)), joint / joint.sum()


def test_a_tree_with_a_summed_total_against_brute_force() -> None:
    post, joint = small_tree("summed")
    assert isinstance(post, ExactPosterior)
    for cell in range(4):
        expected = joint.sum(axis=tuple(i for i in range(4) if i != cell))
        found = [post.node_at(2, cell).pmf(x) for x in range(4)]
        np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("total", ["independent", "summed"])
@pytest.mark.parametrize("grid", [Siblings.grid, 0])
def test_joint_mode_of_a_tree_of_counts_is_that_of_brute_force(
    total: str, grid: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By all combinations of every family, and, with none of them allowed, by search."""
    monkeypatch.setattr(Siblings, "grid", grid)
    post, joint = small_tree(total)
    found = post.joint_mode()
    assert joint[tuple(found[-1])] == pytest.approx(joint.max(), abs=1e-12)
    np.testing.assert_array_equal(found[0], found[-1].sum())


@pytest.mark.parametrize("total", ["independent", "summed"])
def test_statements_across_families_are_estimated_with_their_error(total: str) -> None:
    post, joint = small_tree(total)
    cells = np.indices(joint.shape)
    a, b, c, d = (f"'0000{i}/0000{j}'" for i in (0, 1) for j in (0, 1))
    for statement, holds in (
        (f"{a} + {c} > {d}", cells[0] + cells[2] > cells[3]),
        (f"{a} + 2*{b} - {c} >= 3", cells[0] + 2 * cells[1] - cells[2] >= 3),
    ):
        found = post.probability(statement, rng=np.random.default_rng(2))
        assert not found.exact
        assert abs(found - joint[holds].sum()) < 5 * found.error


def test_the_sum_of_the_parts_matters_where_the_total_is_noisier() -> None:
    arguments = {"counts": [20, 30, 0], "epsilon": 1}
    for total_epsilon, matters in (("0.3", True), ("1", False), ("2", False)):
        alone = cw.infer_counts(**arguments, total_epsilon=total_epsilon)
        summed = cw.infer_counts(**arguments, total_epsilon=total_epsilon, from_total="summed")
        gap = np.abs(alone.summaries(1).mean - summed.summaries(1).mean).max()
        assert (gap > 0.01) == matters
        assert "summed total" in summed.route


@pytest.mark.parametrize("scale", ["2", "7/3", "5"])
def test_with_geometric_noise_the_rule_is_a_clip(scale: str) -> None:
    """m = max(clip(n, n* - η, n* + η), 0), so the noisy totals of m are one of three intervals."""
    rule = TotalMode(
        released=40,
        noise=Geometric(scale=Fraction(scale)),
        parts=(Geometric(scale=Fraction(1)),) * 9,
    )
    low, high = rule.sums(-200, 300)
    assert 40 - low == high - 40
    firsts, lasts = noisy_totals(rule, low, high)
    assert (firsts[:-1] == 40).all()
    assert (lasts[1:] == 40).all()
    assert firsts[-1] == -FAR
    assert lasts[0] == FAR


def test_many_components_with_zeros_keep_their_precision() -> None:
    """Marginals add up to one, and their means to that of the total."""
    k = np.random.default_rng(50).integers(0, 5, 20)
    post = cw.infer_counts(k.tolist(), epsilon=1, total_epsilon="0.1", from_total="summed")
    assert isinstance(post, ExactPosterior)
    family = post.solved.family(0, 0, 1)
    np.testing.assert_allclose(family.marginals.sums(), 1, atol=1e-12)
    assert post.summaries(1).mean.sum() == pytest.approx(post.node("total").mean, abs=1e-9)


@pytest.mark.parametrize(
    ("k", "epsilon", "total_epsilon", "law"),
    [
        ([3, 5], ["2", "1"], "0.5", Geometric),
        ([0, 4], ["1.2", "3"], "0.6", Geometric),
        ([2, 0, 1], ["3", "2", "4"], "0.8", Geometric),
        ([4, 1], ["1", "0.7"], "0.5", DiscreteGaussian),
    ],
)
def test_components_may_have_different_noise(
    k: list[int],
    epsilon: list[str],
    total_epsilon: str,
    law: type[IntegerLaw],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    size = len(k)
    tops, rank = 8 if size < 3 else 5, np.random.default_rng(4).permutation(len(k))
    parts = [law(scale=1 / Fraction(each)) for each in epsilon]
    root = law(scale=1 / Fraction(total_epsilon))
    reach = int(30 / min(map(float, epsilon))) + 2
    joint = summed_likelihood(k, rank, parts, root, tops=tops, reach=reach)
    for few in (summed_root.FEW, 0):
        monkeypatch.setattr(summed_root, "FEW", few)
        post = cw.infer_counts(
            k,
            epsilon=epsilon,
            total_epsilon=total_epsilon,
            mechanism=law.name,
            ties=rank.tolist(),
            prior=Uniform(tops),
            from_total="summed",
        )
        for s, name in enumerate(post.hierarchy.labels[0]):
            expected = joint.sum(axis=tuple(i for i in range(size) if i != s)) / joint.sum()
            found = [post.node(name).pmf(x) for x in range(tops + 1)]
            np.testing.assert_allclose(found, expected, atol=1e-9)
