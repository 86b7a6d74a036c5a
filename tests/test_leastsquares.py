"""Whole-tree least squares against dense linear algebra, and what it gains."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from cases import HARD_CASES, Case, flat, tree
from countwise.adjust.mode import Mode
from countwise.adjust.tree_least_squares import LeastSquares, upward
from countwise.kernels.apportion import last_ranks
from countwise.kernels.projection import project, round_to_total
from countwise.noise.laws import Geometric
from countwise.noise.sampling import sample
from countwise.release.document import check_counts
from countwise.reproduce.scenarios import scenario_1, scenario_4_counts
from countwise.tables.measurements import Measurements
from test_adjust import measured


@pytest.mark.parametrize("copies", [1, 3])
@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
def test_the_contract_of_adjustments(case: Case, copies: int) -> None:
    measurements = measured(case, copies)
    counts = LeastSquares(tie_key=5)(measurements)
    check_counts(case.hierarchy, counts)
    for one, again in zip(counts, LeastSquares(tie_key=5)(measurements), strict=True):
        np.testing.assert_array_equal(one, again)


def test_the_root_is_the_best_linear_unbiased_estimate() -> None:
    """Weighted least squares with the whole design matrix, unequal variances by level."""
    hierarchy = tree(3, 2, 4)
    laws = tuple(Geometric(scale=Fraction(s)) for s in ("1", "5", "2", "1/2"))
    rng = np.random.default_rng(1)
    noisy = tuple(rng.integers(-5, 50, size) for size in hierarchy.sizes)
    estimates, variances = upward([Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy)])
    cells = np.eye(hierarchy.cells, dtype=np.int64)
    design = np.vstack([np.column_stack([hierarchy.sums(row)[level] for row in cells])
                        for level in range(4)])  # fmt: skip
    precisions = [1 / law.variance for law in laws]
    weights = np.repeat(precisions, hierarchy.sizes)
    precision = design.T @ (weights[:, None] * design)
    best = np.linalg.solve(precision, design.T @ (weights * np.concatenate(noisy)))
    assert estimates[0][0] == pytest.approx(best.sum(), rel=1e-12)
    assert variances[0][0] == pytest.approx(np.linalg.inv(precision).sum(), rel=1e-10)


def test_projection_is_the_nearest_point() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        size = int(rng.integers(1, 7))
        values, variances = rng.normal(3, 6, size), rng.uniform(0.2, 4, size)
        m = float(rng.integers(0, 25))
        out = np.empty(size)
        project(values, variances, m, out)
        assert out.sum() == pytest.approx(m, abs=1e-9)
        assert (out >= 0).all()
        found = minimize(
            lambda y, values=values, variances=variances: ((y - values) ** 2 / variances).sum(),
            np.full(size, m / size), bounds=[(0, None)] * size, method="SLSQP",
            constraints={"type": "eq", "fun": lambda y, m=m: y.sum() - m}, options={"ftol": 1e-14},
        )  # fmt: skip
        ours = ((out - values) ** 2 / variances).sum()
        assert ours <= found.fun + 1e-6


def test_rounding_goes_to_the_largest_remainders() -> None:
    out = np.empty(4, dtype=np.int64)
    round_to_total(np.array([1.2, 2.7, 0.4, 0.7]), 5, last_ranks(4), out)
    assert out.tolist() == [1, 3, 0, 1]
    round_to_total(np.array([0.5, 0.5, 1.0, 2.0]), 4, last_ranks(4), out)
    assert out.tolist() == [0, 1, 1, 2]


def squared_error(method: object, cells: np.ndarray, epsilon: str, runs: int) -> float:
    law = Geometric(scale=1 / Fraction(epsilon))
    hierarchy = flat(len(cells))
    errors = []
    for _ in range(runs):
        noisy = (cells.sum() + sample(law, 1), cells + sample(law, len(cells)))
        counts = method([Measurements(hierarchy=hierarchy, laws=(law, law), noisy=noisy)])
        errors.append(((counts[1] - cells) ** 2).sum())
    return float(np.mean(errors))


def test_empty_cells_no_longer_cost_the_large_ones() -> None:
    """200 empty cells and 500, 2000, 9000 at ε = 1: the mode loses about 705, the fit about 39."""
    cells = np.array([0] * 200 + [500, 2000, 9000])
    assert squared_error(Mode(tie_key=1), cells, "1", 300) == pytest.approx(705, rel=0.25)
    assert squared_error(LeastSquares(tie_key=1), cells, "1", 300) == pytest.approx(39, rel=0.25)


def test_ordinary_tables_are_fitted_as_well_as_by_the_mode() -> None:
    seats = scenario_4_counts()
    assert squared_error(Mode(tie_key=1), seats, "1", 600) == pytest.approx(108, rel=0.16)
    assert squared_error(LeastSquares(tie_key=1), seats, "1", 600) == pytest.approx(89, rel=0.12)
    assert squared_error(LeastSquares(tie_key=1), scenario_1(), "1", 600) == pytest.approx(
        91, rel=0.12
    )
