"""What to measure and at what share of the loss, against general optimisers and closed forms."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize

from countwise.errors import PlanError
from countwise.margins.condensed import coarsened
from countwise.margins.crossing import crossing
from countwise.margins.meanvariances import MeanVariances
from countwise.margins.selection import best_selection
from countwise.margins.shares import NORMAL, candidates, design, noise_variance, targets
from countwise.margins.spending import Spending, gap, geometric_mean
from countwise.margins.variances import variances
from countwise.tables.workload import Margin, Workload
from crossings import all_margins, flat, random_tree, variable


def small(seed):
    """A random workload, with weights and reaches, some of its margins published."""
    rng = np.random.default_rng(seed)
    variables = (random_tree(rng, "a", 2), flat("b", int(rng.integers(2, 5))), flat("c", 3))
    margins = all_margins(variables)
    chosen = [margins[i] for i in rng.choice(len(margins), 5, replace=False)]
    workload = Workload(variables=variables, margins=tuple(chosen))
    weights = {margin: float(rng.choice([1.0, 2.0, 5.0])) for margin in chosen}
    reach = {margin: float(rng.choice([1, 2])) for margin in candidates(workload)}
    return workload, weights, reach


def value(workload, weights, unit, loss, reach, shares):
    """The logarithm of the geometric mean, from the variances themselves."""
    noise = {q: noise_variance(unit, loss * s, reach[q]) for q, s in shares.items() if s > 1e-9}
    found = variances(workload, noise)
    logs = [w * np.log(found.mean_variance(q)) for q, w in weights.items()]
    return sum(logs) / sum(weights.values())


@pytest.mark.parametrize("seed", range(4))
def test_slopes_are_those_of_differences(seed):
    workload, weights, reach = small(seed)
    wanted = tuple(weights)
    mean = MeanVariances(crossing=crossing(workload), measured=tuple(reach), wanted=wanted)
    precisions = np.exp(np.random.default_rng(seed).normal(size=len(reach)))
    values, slopes = mean.slopes(precisions)
    noise = {q: 1 / p for q, p in zip(reach, precisions, strict=True)}
    expected = [variances(workload, noise).mean_variance(q) for q in wanted]
    np.testing.assert_allclose(values, expected, rtol=1e-10)
    np.testing.assert_allclose(mean(precisions[None])[0], expected, rtol=1e-10)
    for i, step in enumerate(1e-6 * precisions):
        up, down = (precisions + sign * step * np.eye(len(reach))[i] for sign in (1, -1))
        moved = (mean(up[None]) - mean(down[None]))[0] / (2 * step)
        np.testing.assert_allclose(slopes[:, i], moved, rtol=1e-5, atol=1e-7)


def test_a_coarser_tree_has_nearly_the_same_mean_variances():
    rng = np.random.default_rng(0)
    counties = (1 + rng.negative_binomial(1, 0.05, 10)).tolist()
    tracts = (1 + rng.negative_binomial(1, 0.05, sum(counties))).tolist()
    variables = (variable("geo", [10], counties, tracts), flat("race", 7))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    whole = crossing(workload)
    few = replace(whole, tree=coarsened(whole.tree, 4))
    assert max(map(len, few.tree.nodes)) <= 64 < max(map(len, whole.tree.nodes))
    for level, sizes in enumerate(variables[0].sizes):
        assert few.tree.nodes[level].sum() == pytest.approx(sizes)
        assert few.tree.nodes[level] @ few.tree.leaves[level] == pytest.approx(variables[0].leaves)
        assert set(few.tree.classes[level]) == set(range(len(few.tree.nodes[level])))
    precisions = np.exp(rng.normal(size=(5, len(workload.margins))))
    exact, near = (
        MeanVariances(crossing=each, measured=workload.margins, wanted=workload.margins)(precisions)
        for each in (whole, few)
    )
    np.testing.assert_allclose(near, exact, rtol=0.03)


@pytest.mark.parametrize("seed", range(6))
def test_under_rho_no_shares_are_better(seed):
    """Beside SLSQP from several starts; and the bound that convexity gives."""
    workload, weights, reach = small(seed)
    found = design(workload, weights, unit="rho", loss=Fraction(1, 2), reach=reach)
    margins = list(reach)

    def objective(shares):
        chosen = dict(zip(margins, np.maximum(shares, 1e-7), strict=True))
        return value(workload, weights, "rho", 0.5, reach, chosen)

    rng = np.random.default_rng(seed)
    best = min(
        minimize(
            objective,
            rng.dirichlet(np.ones(len(margins))),
            method="SLSQP",
            bounds=[(0, 1)] * len(margins),
            constraints={"type": "eq", "fun": lambda shares: shares.sum() - 1},
        ).fun
        for _ in range(2)
    )
    ours = value(
        workload, weights, "rho", 0.5, reach, {q: float(s) for q, s in found.shares.items()}
    )
    assert ours < best + 1e-3
    logs = [weights[q] * np.log(v) for q, v in found.mean_variances.items()]
    assert sum(logs) / sum(weights.values()) == pytest.approx(ours)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("loss", [0.3, 2.0])
def test_under_epsilon_no_shares_on_a_grid_are_better(seed, loss):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 12, 2)
    variables = (flat("a", int(sizes[0])), flat("b", int(sizes[1])))
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins[seed % 2 :]))
    weights = {margin: float(rng.choice([1.0, 3.0])) for margin in workload.margins}
    reach = dict.fromkeys(margins, 1.0)
    found = design(workload, weights, unit="epsilon", loss=Fraction(str(loss)), reach=reach)
    grain = 40
    grid = [s for s in product(range(grain + 1), repeat=4) if sum(s) == grain]
    mean = MeanVariances(
        crossing=crossing(workload), measured=tuple(margins), wanted=tuple(weights)
    )
    score = geometric_mean(np.array(list(weights.values())))
    spending = Spending(mean=mean, unit="epsilon", loss=loss, reach=np.ones(4), score=score)
    best = spending.worth(np.array(grid) / grain).min()
    ours = value(
        workload, weights, "epsilon", loss, reach, {q: float(s) for q, s in found.shares.items()}
    )
    assert ours < best + 1e-3


def test_shares_are_thousandths_that_add_up_to_one():
    for unit, seed in product(("rho", "epsilon"), range(3)):
        workload, weights, reach = small(seed)
        found = design(workload, weights, unit=unit, loss=Fraction(1), reach=reach)
        assert sum(found.shares.values()) == 1
        assert all(share > 0 and (1000 * share).denominator == 1 for share in found.shares.values())
        assert set(found.mean_variances) == set(found.even) == set(weights)
        assert np.isfinite(list(found.mean_variances.values())).all()


def test_under_epsilon_the_small_variables_come_before_the_large_tree():
    """The order of a chain is a choice of margins, and the best is not that of the levels."""
    rng = np.random.default_rng(0)
    counties = 100
    tracts = (1 + rng.poisson(25, counties)).tolist()
    variables = (variable("geo", [counties], tracts), flat("race", 7), flat("hispanic", 2))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    weights = dict.fromkeys(workload.margins, 1.0)
    reach = dict.fromkeys(candidates(workload), 1.0)
    found = design(workload, weights, unit="epsilon", loss=Fraction(1), reach=reach)
    assert set(found.shares) == {Margin((0, 1, 1)), Margin((1, 1, 1)), Margin((2, 1, 1))}
    assert all(0.28 < share < 0.4 for share in found.shares.values())
    geometric, even = (
        np.exp(np.mean(np.log(list(each.values()))) / 2)
        for each in (found.mean_variances, found.even)
    )
    assert geometric < 0.65 * even


def arithmetic_mean(sizes):
    """The mean over all counts of all margins: what ResidualPlanner minimises."""
    parts = sizes / sizes.sum()

    def score(each):
        total = each @ parts
        return np.log(total), parts / np.expand_dims(total, -1)

    return score


def residual_planner(sizes, ways):
    """Root mean squared error of its closed form at ρ = ½ (Xiao et al. 2023).

    Each part T of the margins (contrasts of the variables in T) is measured alone, with precision
    p_T at a loss of p_T·Π_{T}(1 - 1/n); Σ v_T/p_T under that loss is least at (Σ√(v_T c_T))².
    """
    every = list(product((0, 1), repeat=len(sizes)))
    wanted = [margin for margin in every if sum(margin) in ways]
    root = 0.0
    for part in every:
        variance = 0.0
        for margin in wanted:
            if all(a <= b for a, b in zip(part, margin, strict=True)):
                triples = zip(part, margin, sizes, strict=True)
                variance += np.prod([n - 1 if t else (1 / n if q else 1) for t, q, n in triples])
        cost = np.prod([1 - 1 / n if t else 1 for t, n in zip(part, sizes, strict=True)])
        root += np.sqrt(variance * cost)
    counts = sum(np.prod([n**q for q, n in zip(m, sizes, strict=True)]) for m in wanted)
    return root / np.sqrt(counts)


@pytest.mark.parametrize(
    ("ways", "theirs", "above"),
    [
        ((1,), 1.744, 0.008),
        ((2,), 2.035, 0.016),
        ((3,), 2.048, 0.021),
        ((0, 1, 2, 3), 2.276, 0.002),
    ],
)
def test_whole_margins_come_near_to_residual_planner(ways, theirs, above):
    """Its parts take no loss for what they do not say; noise of whole margins is 0.1 to 2% behind.

    That is the best that whole margins can do: no slope is left.
    """
    sizes = [50, 100, 7, 4, 2]
    variables = tuple(flat(name, size) for name, size in zip("abcde", sizes, strict=True))
    margins = tuple(all_margins(variables))
    wanted = tuple(each for each in margins if sum(each.levels) in ways)
    workload = Workload(variables=variables, margins=wanted)
    mean = MeanVariances(crossing=crossing(workload), measured=margins, wanted=wanted)
    score = arithmetic_mean(np.array([workload.size(each) for each in wanted], dtype=float))
    even = np.full(len(margins), 1 / len(margins))
    spending = Spending(mean=mean, unit="rho", loss=0.5, reach=np.ones(len(margins)), score=score)
    shares, _ = spending.settle(even)
    closed = residual_planner(sizes, ways)
    assert closed == pytest.approx(theirs, abs=5e-4)
    assert closed <= np.exp(spending.worth(shares[None])[0] / 2) < closed * (1 + above)
    assert gap(spending, shares) < 0.02


def test_free_margins_are_exact_and_take_no_share():
    variables = (flat("a", 4), flat("b", 3))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    weights = dict.fromkeys(workload.margins, 1.0)
    total = Margin((0, 0))
    reach = dict.fromkeys(workload.margins, 2.0) | {total: 0.0}
    for unit in ("rho", "epsilon"):
        found = design(workload, weights, unit=unit, loss=Fraction(1), reach=reach)
        assert total not in found.shares
        assert found.mean_variances[total] == 0
    alone = Workload(variables=variables, margins=(total,))
    found = design(alone, {total: 1.0}, unit="rho", loss=Fraction(1), reach={total: 0.0})
    assert found.shares == {}
    assert found.mean_variances == {total: 0}


def test_margins_that_nothing_measurable_covers_are_refused():
    variables = (flat("a", 4), flat("b", 3))
    workload = Workload(variables=variables, margins=tuple(all_margins(variables)))
    with pytest.raises(PlanError, match=r"table a1\*b1 is a sum of no table"):
        design(
            workload,
            dict.fromkeys(workload.margins, 1.0),
            unit="rho",
            loss=Fraction(1),
            reach={Margin((1, 0)): 1.0, Margin((0, 1)): 1.0},
        )


@pytest.mark.parametrize("seed", range(4))
def test_under_rho_the_least_loss_meets_the_targets(seed):
    """Beside SLSQP: least total precision under the same limits, convex."""
    workload, weights, reach = small(seed)
    within = dict(zip(weights, (9.0, 4.0, 6.0), strict=False))
    found = targets(workload, within, weights, unit="rho", reach=reach)
    for margin, width in within.items():
        assert found.half_width(margin) <= width
    mean = MeanVariances(crossing=crossing(workload), measured=tuple(reach), wanted=tuple(within))
    limits = np.array([(width / NORMAL) ** 2 for width in within.values()])
    costs = np.array(list(reach.values())) / 2
    start = np.array([float(found.shares.get(q, 0)) * float(found.loss) for q in reach]) / costs

    def slack(precisions):
        return 1 - mean(np.maximum(precisions, 1e-9)[None])[0] / limits

    least = minimize(
        lambda precisions: precisions @ costs,
        start * 1.5 + 0.01,
        method="SLSQP",
        bounds=[(0, None)] * len(costs),
        constraints={"type": "ineq", "fun": slack},
        options={"maxiter": 500},
    )
    assert slack(least.x).min() > -1e-6
    assert float(found.loss) < least.fun * 1.01


@pytest.mark.parametrize("seed", range(3))
def test_under_epsilon_the_least_loss_meets_the_targets(seed):
    """And no shares on a grid meet them with 1% less."""
    rng = np.random.default_rng(seed)
    variables = (flat("a", int(rng.integers(2, 9))), flat("b", int(rng.integers(2, 9))))
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    weights, reach = dict.fromkeys(margins, 1.0), dict.fromkeys(margins, 1.0)
    within = {margins[0]: 3.0, margins[1]: 6.0, margins[3]: 5.0}
    found = targets(workload, within, weights, unit="epsilon", reach=reach)
    for margin, width in within.items():
        assert found.half_width(margin) <= width
    grain = 25
    grid = np.array([s for s in product(range(grain + 1), repeat=4) if sum(s) == grain]) / grain
    mean = MeanVariances(crossing=crossing(workload), measured=tuple(margins), wanted=tuple(within))
    limits = np.array([(width / NORMAL) ** 2 for width in within.values()])
    spending = Spending(
        mean=mean,
        unit="epsilon",
        loss=0.99 * float(found.loss),
        reach=np.ones(4),
        score=geometric_mean(np.ones(3)),
    )
    assert (mean(spending.precisions(grid)) / limits).max(axis=1).min() > 1


def test_a_target_for_no_noisy_table_is_refused():
    variables = (flat("a", 4),)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    reach = {margins[0]: 0.0, margins[1]: 2.0}
    weights = dict.fromkeys(margins, 1.0)
    with pytest.raises(PlanError, match="no table with noise has a target"):
        targets(workload, {margins[0]: 3.0}, weights, unit="rho", reach=reach)
    with pytest.raises(PlanError, match="target of table a1 must be positive, got -1"):
        targets(workload, {margins[1]: -1.0}, weights, unit="rho", reach=reach)
    with pytest.raises(PlanError, match="table a1 has a target and is not published"):
        targets(workload, {margins[1]: 3.0}, {margins[0]: 1.0}, unit="rho", reach=reach)


def test_weights_that_say_nothing_are_refused():
    variables = (flat("a", 4),)
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    reach = dict.fromkeys(margins, 1.0)
    for weight in (0.0, -1.0):
        with pytest.raises(PlanError, match="weights of tables must be 0 or more"):
            design(
                workload,
                dict.fromkeys(margins, weight),
                unit="rho",
                loss=Fraction(1),
                reach=reach,
            )


@pytest.mark.parametrize("seed", range(6))
def test_under_epsilon_no_choice_of_margins_is_better(seed):
    """Of all sets of margins, each with the best shares near even ones."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 30, 3)
    variables = tuple(flat(name, int(size)) for name, size in zip("abc", sizes, strict=True))
    margins = all_margins(variables)
    published = [each for each in margins if sum(each.levels) in ((1, 2), (2, 3))[seed % 2]]
    workload = Workload(variables=variables, margins=tuple(published))
    weights = {margin: float(rng.choice([1.0, 10.0])) for margin in published}
    reach = dict.fromkeys(candidates(workload), 1.0)
    found = design(workload, weights, unit="epsilon", loss=Fraction(1), reach=reach)
    logs = [weights[q] * np.log(found.mean_variances[q]) for q in published]
    mean = MeanVariances(
        crossing=crossing(workload), measured=tuple(reach), wanted=tuple(published)
    )
    score = geometric_mean(np.array(list(weights.values())))
    spending = Spending(mean=mean, unit="epsilon", loss=1.0, reach=np.ones(8), score=score)
    sets = [np.array(chosen, dtype=float) for chosen in product((0, 1), repeat=8) if any(chosen)]
    covered = [
        chosen / chosen.sum()
        for chosen in sets
        if all(any(q.covers(p) for q, c in zip(reach, chosen, strict=True) if c) for p in published)
    ]
    best = min(spending.settle(chosen)[1] for chosen in covered)
    assert sum(logs) / sum(weights.values()) < best + 1e-3
    cells = np.array([float(each == margins[-1]) for each in reach])
    if cells.any():
        shares = best_selection(spending, [cells])
        assert spending.worth(shares[None])[0] < best + 0.02


def test_a_published_margin_that_hardly_counts_is_determined_all_the_same():
    variables = (flat("a", 4), flat("b", 3))
    margins = all_margins(variables)
    workload = Workload(variables=variables, margins=tuple(margins))
    weights = dict.fromkeys(margins, 1e-6) | {margins[0]: 1.0}
    for unit in ("rho", "epsilon"):
        found = design(
            workload, weights, unit=unit, loss=Fraction(1), reach=dict.fromkeys(margins, 1.0)
        )
        assert sum(found.shares.values()) == 1
        assert found.shares[margins[0]] > Fraction(9, 10)
        assert np.isfinite(list(found.mean_variances.values())).all()
