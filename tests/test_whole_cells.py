"""Whole cells of crossed tables: non-negative fits, rounding, exact counts, learning."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import nnls
from scipy.stats import nbinom

from countwise.arrays import FloatArray
from countwise.errors import InputError
from countwise.kernels.gamma_poisson import scattered
from countwise.margins import matching
from countwise.margins.certainties import certainties
from countwise.margins.expected_error import compared
from countwise.margins.incidence import node_of_each, stacked_nodes
from countwise.margins.matching import matched
from countwise.margins.measurement import Measurement
from countwise.margins.nonnegative import Target, held_to
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.rounding import rounded, rounded_along
from countwise.margins.whole import whole_cells
from countwise.noise.laws import Exact, IntegerLaw
from countwise.tables.workload import Margin, Workload
from crossed_tables import (
    every_margin,
    flat,
    gaussian,
    geometric,
    income_crossed,
    matrix,
    measured,
    north_carolina_crossed,
    tree,
)

EXACT = Exact()


@pytest.fixture
def small() -> Workload:
    """Two places of unequal size by three by two: 24 cells, 12 margins."""
    variables = (tree("place", (1, 3)), flat("age", 3), flat("sex", 2))
    return Workload(variables=variables, margins=every_margin(variables))


def test_nodes_are_those_of_the_labels(small: Workload) -> None:
    stacked, before = stacked_nodes(small, small.margins), 0
    for row, margin in zip(stacked, small.margins, strict=True):
        rows = matrix(small, margin)
        assert (rows[node_of_each(small, margin, of=small.finest), np.arange(24)] == 1).all()
        assert (rows[row - before, np.arange(24)] == 1).all()
        before += small.size(margin)


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_table_is_that_of_dense_least_squares(small: Workload, seed: int) -> None:
    rng = np.random.default_rng(seed)
    centre, targets = _problem(small, rng)
    found = held_to(small, centre, targets, sweeps=9000, near=1e-9)
    rows = [np.diag(centre.variances.reshape(-1) ** -0.5)]
    right = [(centre.counts / centre.variances**0.5).reshape(-1)]
    for each in targets:
        weight = each.variances.reshape(-1) ** -0.5
        rows.append(weight[:, None] * matrix(small, each.margin))
        right.append(weight * each.counts.reshape(-1))
    wanted, _ = nnls(np.vstack(rows), np.concatenate(right))
    assert (wanted == 0).any()
    np.testing.assert_allclose(found.reshape(-1), wanted, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_tilted_table_satisfies_its_equations(small: Workload, seed: int) -> None:
    """log(x/m)·m/v = Σ (target - sum)/slack over the margins of a cell."""
    rng = np.random.default_rng(seed)
    centre, targets = _problem(small, rng)
    centre = Target(
        margin=centre.margin, counts=np.abs(centre.counts) + 0.1, variances=centre.variances
    )
    found = held_to(small, centre, targets, tilted=True, sweeps=9000, near=1e-9).reshape(-1)
    pull = np.zeros(24)
    for each in targets:
        rows = matrix(small, each.margin)
        pull += rows.T @ ((each.counts.reshape(-1) - rows @ found) / each.variances.reshape(-1))
    means, variances = centre.counts.reshape(-1), centre.variances.reshape(-1)
    np.testing.assert_allclose(
        found, means * np.exp(pull * variances / means), rtol=1e-6, atol=1e-9
    )


def _problem(workload: Workload, rng: np.random.Generator) -> tuple[Target, list[Target]]:
    shape = workload.shape
    centre = Target(
        margin=workload.finest,
        counts=rng.normal(1.0, 2.0, shape),
        variances=rng.uniform(0.5, 4.0, shape),
    )
    targets = []
    for margin in workload.margins[1:-1:3]:
        counts = rng.normal(3.0, 3.0, workload.shape_of(margin))
        variances = rng.uniform(0.5, 2.0, counts.shape)
        targets.append(Target(margin=margin, counts=counts, variances=variances))
    return centre, targets


def test_runs_of_rounded_counts_are_within_one() -> None:
    rng = np.random.default_rng(1)
    values = rng.exponential(0.7, 200)
    whole = rounded_along(values, 0.3)
    gaps = np.concatenate([[0.0], np.cumsum(whole - values)])
    assert (whole >= 0).all()
    assert np.abs(gaps[:, None] - gaps[None, :]).max() < 1.0 + 1e-9


def test_rounding_finds_the_best_whole_table_of_a_small_one() -> None:
    variables = (flat("a", 3), flat("b", 3))
    workload = Workload(variables=variables, margins=every_margin(variables))
    values = np.random.default_rng(3).uniform(0.0, 2.0, (3, 3))
    weights = dict.fromkeys(workload.margins, 1.0)
    rows = np.vstack([matrix(workload, m) / workload.size(m) ** 0.5 for m in workload.margins])

    def loss(cells: FloatArray) -> float:
        return float(((rows @ (cells.reshape(-1) - values.reshape(-1))) ** 2).sum())

    floors = np.floor(values).reshape(-1)
    every = (np.maximum(floors + move, 0.0) for move in product((-1, 0, 1, 2), repeat=9))
    best = min(map(loss, every))
    found = [
        loss(rounded(workload, values, weights, certainties(workload, []), rng))
        for rng in map(np.random.default_rng, range(20))
    ]
    assert min(found) == pytest.approx(best)
    assert np.mean(found) < 1.5 * best


def test_matching_is_the_cheapest_of_all_tables_with_the_exact_sums() -> None:
    variables = (flat("a", 3), flat("b", 2))
    workload = Workload(variables=variables, margins=every_margin(variables))
    values = np.random.default_rng(8).uniform(0.0, 2.0, (3, 2))
    exact = {
        Margin((1, 0)): (np.full((3, 1), True), np.array([[2], [0], [3]])),
        Margin((0, 1)): (np.full((1, 2), True), np.array([[1, 4]])),
    }
    found = matched(workload, values, np.full((3, 2), True), exact)
    wanted = min(
        (
            np.abs(np.array(cells).reshape(3, 2) - values).sum()
            for cells in product(range(5), repeat=6)
            if all(
                (workload.sums(np.array(cells).reshape(3, 2), margin) == counts).all()
                for margin, (_, counts) in exact.items()
            )
        ),
    )
    assert np.abs(found.reshape(3, 2) - values).sum() == pytest.approx(wanted)


def test_where_time_is_up_any_cells_with_the_exact_sums_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every pair of three variables is exact, which no network of flows solves."""
    variables = tuple(flat(name, 4) for name in "abc")
    workload = Workload(variables=variables, margins=every_margin(variables))
    rng = np.random.default_rng(8)
    true = rng.poisson(2.0, workload.shape)
    pairs = [each for each in workload.margins if sum(each.levels) == 2]
    exact = {
        each: (np.full(workload.shape_of(each), True), workload.sums(true, each)) for each in pairs
    }
    monkeypatch.setattr(matching, "SECONDS", 0.0)
    values = rng.exponential(2.0, workload.shape)
    found = matched(workload, values, np.full(workload.shape, True), exact).reshape(workload.shape)
    assert (found >= 0).all()
    for each, (_, counts) in exact.items():
        np.testing.assert_array_equal(workload.sums(found, each), counts)


@pytest.mark.parametrize("method", ["least-squares", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_exact_counts_and_empty_nodes_hold(small: Workload, method: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    true = rng.poisson(3.0, small.shape)
    true[:, 2, 1] = 0
    laws = {each: gaussian(20.0) for each in small.margins}
    laws |= {Margin((1, 0, 0)): EXACT, Margin((0, 1, 0)): EXACT}
    seen = measured(small, true, laws, rng)
    pattern = np.zeros((1, 3, 2), np.bool_)
    pattern[0, 2, 1] = True
    k = [each.margin for each in seen].index(Margin((0, 1, 1)))
    noisy = np.where(pattern, 0, seen[k].noisy)
    seen[k] = Measurement(margin=seen[k].margin, law=seen[k].law, noisy=noisy, exact=pattern)
    made = whole_cells(small, seen, method=method, rng=rng)
    assert made.cells.dtype == np.int64
    assert (made.cells >= 0).all()
    assert (made.cells[:, 2, 1] == 0).all()
    for margin in (Margin((1, 0, 0)), Margin((0, 1, 0))):
        np.testing.assert_array_equal(small.sums(made.cells, margin), small.sums(true, margin))
    assert (made.reason != "") == (method == "auto")


def test_exact_counts_that_can_not_be_are_refused(small: Workload) -> None:
    total, places = Margin((0, 0, 0)), Margin((1, 0, 0))
    shape = small.shape_of(places)
    one = Measurement(
        margin=total, law=EXACT, noisy=np.full((1, 1, 1), 5), exact=np.full((1, 1, 1), True)
    )
    none = Measurement(
        margin=places, law=EXACT, noisy=np.zeros(shape, np.int64), exact=shape_true(shape)
    )
    with pytest.raises(InputError, match="leave room for nobody"):
        certainties(small, [one, none])
    less = Measurement(margin=total, law=EXACT, noisy=-one.noisy, exact=one.exact)
    with pytest.raises(InputError, match="is negative"):
        certainties(small, [less])
    other = Measurement(margin=total, law=EXACT, noisy=one.noisy + 1, exact=one.exact)
    with pytest.raises(InputError, match="differ"):
        certainties(small, [one, other])
    many = Measurement(margin=places, law=EXACT, noisy=np.full(shape, 4), exact=shape_true(shape))
    known = certainties(small, [one, many])
    with pytest.raises(InputError, match="no whole cells"):
        rounded(small, np.ones(small.shape), {total: 1.0}, known, np.random.default_rng(0))


def shape_true(shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape that is true everywhere."""
    return np.full(shape, True)


def test_scattered_counts_are_those_of_the_mixture() -> None:
    law = geometric(0.7)
    noise = law.pmf(np.arange(61))
    noisy, means = np.array([-3, 0, 4, 15]), np.array([0.2, 0.2, 3.0, 0.01])
    found, spread, logs = scattered(noisy, means, 0.4, 0.01, noise)
    x = np.arange(90)
    for i, (y, mean) in enumerate(zip(noisy, means, strict=True)):
        prior = 0.99 * nbinom.pmf(x, 0.4, 0.4 / (0.4 + mean)) + 0.01 / ((x + 1.0) * (x + 2.0))
        joint = prior * law.pmf(y - x)
        mass = joint.sum()
        average = (x * joint).sum() / mass
        assert found[i] == pytest.approx(average, rel=1e-6)
        assert spread[i] == pytest.approx(((x - average) ** 2 * joint).sum() / mass, rel=1e-5)
        assert logs[i] == pytest.approx(np.log(mass), rel=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "geometric"])
def test_expected_errors_are_those_of_many_releases(kind: str) -> None:
    """Clipping against a quarter of the least-squares counts: not both linear, nor alike."""
    variables = (flat("a", 12), flat("b", 15))
    workload = Workload(variables=variables, margins=every_margin(variables))
    rng = np.random.default_rng(5)
    true = rng.poisson(rng.choice([0.1, 6.0], (12, 15)))
    law = gaussian(9.0) if kind == "gaussian" else geometric(0.5)
    expected, actual = [], []
    for _ in range(150):
        seen = Reconstruction(
            workload=workload,
            measurements=measured(workload, true, {workload.finest: law}, rng),
        )
        found = compared(seen, lambda s: s.estimates.cells / 4, _clipped, rng)[workload.finest]
        expected.append(found.excess)
        quarters, clipped = seen.estimates.cells / 4, _clipped(seen)
        gap = np.mean((clipped - true) ** 2) - np.mean((quarters - true) ** 2)
        actual.append(gap / law.variance)
    gaps = np.array(expected) - np.array(actual)
    assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(len(gaps)) + 0.02
    assert abs(np.mean(actual)) > 0.1


def _clipped(seen: Reconstruction) -> FloatArray:
    return np.maximum(seen.estimates.cells, 0.0)


def test_one_large_cell_among_empty_ones_stays() -> None:
    variables = (flat("a", 20), flat("b", 10))
    workload = Workload(variables=variables, margins=every_margin(variables))
    true = np.zeros((20, 10), np.int64)
    true[7, 3] = 40
    rng = np.random.default_rng(2)
    for _ in range(5):
        seen = measured(workload, true, dict.fromkeys(workload.margins, geometric(0.25)), rng)
        made = whole_cells(workload, seen, method="auto", rng=rng)
        assert made.cells[7, 3] > 15


def test_cells_that_nothing_measured_follow_their_margins(small: Workload) -> None:
    rng = np.random.default_rng(4)
    true = rng.poisson(30.0, small.shape)
    laws = {Margin((2, 0, 0)): gaussian(2.0), Margin((0, 1, 1)): gaussian(2.0)}
    seen = measured(small, true, laws, rng)
    for method in ("least-squares", "auto"):
        cells = whole_cells(small, seen, method=method, rng=rng).cells
        for margin in laws:
            gaps = small.sums(cells, margin) - small.sums(true, margin)
            assert np.abs(gaps).max() < 12


@pytest.mark.parametrize("method", ["least-squares", "auto"])
@pytest.mark.parametrize("law", [gaussian(0.05), gaussian(1e7), geometric(0.001), geometric(8)])
@pytest.mark.parametrize("case", ["one", "zero", "giant", "line", "ties"])
def test_hard_tables_are_made_whole(case: str, law: IntegerLaw, method: str) -> None:
    sizes = {"one": (1, 1), "line": (1, 30)}.get(case, (4, 5))
    variables = (flat("a", sizes[0]), tree("b", (1, sizes[1] - 1) if sizes[1] > 1 else (1,)))
    workload = Workload(variables=variables, margins=every_margin(variables))
    true = np.full(workload.shape, {"zero": 0, "ties": 3}.get(case, 1))
    true.flat[-1] = 10**9 if case == "giant" else true.flat[-1]
    rng = np.random.default_rng(7)
    seen = measured(workload, true, dict.fromkeys(workload.margins, law), rng)
    made = whole_cells(workload, seen, method=method, rng=rng)
    assert made.cells.shape == workload.shape
    assert made.cells.dtype == np.int64
    assert (made.cells >= 0).all()
    gap = abs(int(made.cells.sum()) - int(true.sum()))
    assert gap <= 8 * law.variance**0.5 + 5


def test_totals_of_tracts_are_as_good_as_those_of_least_squares() -> None:
    workload, true = north_carolina_crossed()
    rng = np.random.default_rng(11)
    seen = measured(workload, true, dict.fromkeys(workload.margins, gaussian(12.0)), rng)
    cells = whole_cells(workload, seen, method="least-squares", rng=rng).cells
    signed = Reconstruction(workload=workload, measurements=seen).estimates
    ratios = {}
    for margin in workload.margins:
        truth = workload.sums(true, margin)
        made = np.mean((workload.sums(cells, margin) - truth) ** 2)
        ratios[workload.name(margin)] = (
            made / np.mean((signed.margin(margin) - truth) ** 2)
        ) ** 0.5
    assert ratios["tract"] < 1.02
    assert ratios["tract*hispanic"] < 1.02
    assert ratios["tract*race"] < 0.98
    assert ratios["tract*race*hispanic"] < 0.92


def test_sparse_cells_learn_from_each_other() -> None:
    workload, true = income_crossed()
    rng = np.random.default_rng(12)
    laws = dict.fromkeys(workload.margins, gaussian(16.0))
    seen = measured(workload, true, laws, rng)
    made = whole_cells(workload, seen, method="auto", rng=rng)
    assert made.method == "auto"
    assert np.mean((made.cells - true) ** 2) < 1.1
    for margin in workload.margins[:-1]:
        gaps = workload.sums(made.cells, margin) - workload.sums(true, margin)
        assert np.mean(gaps**2) < 40.0
