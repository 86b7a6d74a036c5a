"""Posteriors of small tables with skewed priors against every combination of counts and noise.

Where counts are 0, 1 and 2, the case that all clipped noisy counts are zero and the other ones lie
far apart, and no single tilt serves both.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import lgamma

import numpy as np
import pytest

from countwise.arrays import FloatArray
from countwise.inference.paper_tables import infer_counts
from countwise.noise.laws import Geometric
from countwise.sumproduct.evidence import redrawn
from countwise.sumproduct.priors import NegativeBinomial, Pmf, Prior

TOP, MOST = 24, 60  # the largest true count, and the largest value that is dealt by


def joint(
    counts: Sequence[int], epsilon: Fraction, total_epsilon: Fraction, algorithm: int, prior: Prior
) -> FloatArray:
    """P(N1, N2 | released) by sums over all values that units could have been dealt by."""
    law, root = Geometric(scale=1 / epsilon), Geometric(scale=1 / total_epsilon)
    x, v = np.arange(TOP + 1), np.arange(MOST + 1)
    if algorithm == 1:
        told = redrawn(law, 0, TOP, 0, MOST)
    else:
        told = np.where(v == 0, law.cdf(-x[:, None]), law.pmf(v - x[:, None]))
    m, sums = sum(counts), v[:, None] + v
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(sums > 0, v[:, None] / np.maximum(sums, 1), 0.5)
    ways = np.exp(lgamma(m + 1) - sum(lgamma(k + 1) for k in counts))
    dealt = ways * shares ** counts[0] * (1 - shares) ** counts[1]
    likelihood = told @ dealt @ told.T
    totals = x[:, None] + x
    if algorithm == 1:
        of_total = redrawn(root, 0, 2 * TOP, m, m)[totals, 0]
    elif m == 0:
        of_total = root.cdf(-totals)
    else:
        of_total = root.pmf(m - totals)
    own = np.exp(prior.log_cells(np.zeros(TOP + 1, np.int64), x))
    found = own[:, None] * own * likelihood * of_total
    return np.asarray(found / found.sum())


PRIORS = (
    NegativeBinomial(2.1, 0.52),
    NegativeBinomial(1.0, 0.3),
    Pmf((0.8, 0.1, 0.05, 0.03, 0.02)),
)


@pytest.mark.parametrize("algorithm", [1, 2])
def test_sparse_draws_agree_with_enumeration(algorithm: int) -> None:
    rng = np.random.default_rng(algorithm)
    for case in range(24):
        prior = PRIORS[case % 3]
        counts = [1, 1] if case == 0 else rng.integers(0, 3, 2).tolist()
        epsilon = Fraction(45, 13) if case == 0 else Fraction(int(rng.integers(8, 40)), 10)
        total_epsilon = Fraction(1) if case == 0 else Fraction(int(rng.integers(8, 40)), 10)
        truth = joint(counts, epsilon, total_epsilon, algorithm, prior)
        found = infer_counts(
            counts,
            epsilon=epsilon,
            total_epsilon=total_epsilon,
            adjust=f"draw-{algorithm}",
            prior=prior,
        )
        for axis, name in enumerate(("N1", "N2")):
            law = [found.node(name).pmf(x) for x in range(TOP + 1)]
            assert np.abs(law - truth.sum(axis=1 - axis)).max() < 2e-6, (case, counts, epsilon)
        listed = found.top(8)
        for each in listed:
            assert each.probability == pytest.approx(truth[each.counts], abs=2e-6)
        x = np.arange(TOP + 1)
        larger = truth[x[:, None] > x].sum()
        assert found.probability("N1 > N2") == pytest.approx(larger, abs=2e-6)


def test_draws_of_a_sparse_table_follow_its_posterior() -> None:
    prior = PRIORS[0]
    truth = joint([1, 1], Fraction(45, 13), Fraction(1), 2, prior)
    found = infer_counts(
        [1, 1], epsilon=Fraction(45, 13), total_epsilon=1, adjust="draw-2", prior=prior
    )
    count = 40_000
    rows = found.draws(count, rng=np.random.default_rng(3)).cells
    seen = np.zeros_like(truth)
    np.add.at(seen, (rows[:, 0], rows[:, 1]), 1 / count)
    error = np.sqrt(truth * (1 - truth) / count)
    likely = truth > 1e-3
    assert (np.abs(seen - truth)[likely] < 5 * error[likely]).all()
