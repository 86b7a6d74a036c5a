"""The competitors of the accuracy page are what they are called, by other routes to the same."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.optimize import lsq_linear
from scipy.stats import nbinom

pytest.importorskip("osqp")
sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from accuracy_page import as_page, ratio
from accuracy_tables import known_rows
from competitors import competitors, webster
from countwise.noise.laws import Geometric
from countwise.release.plan import Plan
from countwise.tables.hierarchy import Hierarchy, build
from countwise.tables.measurements import Measurements
from families import nearest, rounded, sums
from negative_binomial import Belief, posterior
from pooling import pooled
from range_coverage import groups, unusual
from shrinkage import Level, james_stein, normal_bayes
from untuned_tables import untuned_rows
from whole_tree import from_below, nonnegative


def uneven_tree() -> Hierarchy:
    """Two levels below the root, with single children among them."""
    sizes = [1, 4, 2, 1, 6]
    paths = [(str(i), str(j)) for i, size in enumerate(sizes) for j in range(size)]
    return build(pl.DataFrame(paths, schema=["a", "b"], orient="row"))[0]


def measured(rng: np.random.Generator, hierarchy: Hierarchy) -> Measurements:
    laws = tuple(Geometric(scale=scale) for scale in (1, 4, 3))
    true = hierarchy.sums(rng.poisson(3, hierarchy.cells))
    noisy = tuple(t + law.isf(rng.random(len(t))) for t, law in zip(true, laws, strict=True))
    return Measurements(hierarchy=hierarchy, laws=laws, noisy=noisy)


def design(seen: Measurements) -> tuple[np.ndarray, np.ndarray]:
    """The weighted equations of all nodes."""
    rows = np.eye(seen.hierarchy.cells)
    sums_of_cells = np.concatenate(
        [np.stack([seen.hierarchy.sums(row)[level] for row in rows], axis=1) for level in range(3)]
    )
    weights = np.concatenate(
        [
            np.full(len(each), law.variance**-0.5)
            for each, law in zip(seen.noisy, seen.laws, strict=True)
        ]
    )
    return sums_of_cells * weights[:, None], np.concatenate(seen.noisy) * weights


@pytest.mark.parametrize("seed", range(20))
def test_non_negative_least_squares_is_that_of_a_dense_solver(seed: int) -> None:
    seen = measured(np.random.default_rng(seed), uneven_tree())
    dense = lsq_linear(*design(seen), bounds=(0, np.inf), method="bvls", tol=1e-14).x
    for ours, theirs in zip(nonnegative(seen), seen.hierarchy.sums(dense), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_the_root_from_below_is_that_of_dense_least_squares() -> None:
    seen = measured(np.random.default_rng(1), uneven_tree())
    matrix, values = design(seen)
    cells = np.linalg.lstsq(matrix, values, rcond=None)[0]
    estimates, spreads = from_below(seen)
    assert estimates[0][0] == pytest.approx(cells.sum())
    ones = np.ones(len(cells))
    assert spreads[0][0] == pytest.approx(ones @ np.linalg.inv(matrix.T @ matrix) @ ones)


@pytest.mark.parametrize("seed", range(10))
def test_the_nearest_split_is_that_of_a_dense_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    offsets, totals = np.array([0, 5, 6, 14]), np.array([7, 3, 0])
    wanted, spread = rng.normal(2, 4, 14), rng.uniform(0.5, 3, 14)
    found = nearest(wanted, spread, totals, offsets)
    np.testing.assert_allclose(sums(found, offsets), totals, atol=1e-9)
    heavy = 1e5 * np.add.outer(np.arange(3), np.zeros(14))
    for parent in range(3):
        heavy[parent] = 1e5 * (
            (np.arange(14) >= offsets[parent]) & (np.arange(14) < offsets[parent + 1])
        )
    matrix = np.vstack([np.diag(spread**-0.5), heavy])
    values = np.concatenate([wanted * spread**-0.5, 1e5 * totals])
    dense = lsq_linear(matrix, values, bounds=(0, np.inf), method="bvls", tol=1e-15).x
    np.testing.assert_allclose(found, dense, atol=1e-5)


def test_rounding_moves_no_share_by_one_and_keeps_totals() -> None:
    rng = np.random.default_rng(3)
    offsets, totals = np.array([0, 40, 41, 100]), np.array([57, 9, 200])
    shares = nearest(rng.normal(2, 3, 100), np.ones(100), totals, offsets)
    counts = rounded(shares, totals, offsets, rng=rng)
    assert (np.abs(counts - shares) < 1).all()
    assert sums(counts, offsets).tolist() == totals.tolist()


def test_equal_remainders_go_by_lot() -> None:
    rng = np.random.default_rng(4)
    offsets = np.array([0, 4])
    won = sum(rounded(np.full(4, 0.5), np.array([2]), offsets, rng=rng) for _ in range(4000))
    assert (np.abs(won - 2000) < 6 * np.sqrt(1000)).all()


def test_webster_gives_one_seat_after_another() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        votes, seats = rng.integers(1, 400, 12).astype(float), int(rng.integers(0, 90))
        given = np.zeros(12, dtype=np.int64)
        for _ in range(seats):
            given[np.argmax(votes / (given + 0.5))] += 1
        found = webster(votes, np.array([seats]), np.array([0, 12]), rng=rng)
        quotients = votes / (given + 0.5)
        if len(np.unique(quotients)) == 12 and len(np.unique(votes)) == 12:
            assert found.tolist() == given.tolist()


def test_posteriors_of_cells_are_those_of_whole_enumeration() -> None:
    seen = measured(np.random.default_rng(6), uneven_tree())
    means, belief = np.full(14, 2.5), Belief(False, 1.0, 0.7, False)
    logs, mean, variance = posterior(seen, seen.noisy[-1], means, belief)
    x = np.arange(400)
    for at, y in enumerate(seen.noisy[-1]):
        chances = nbinom.pmf(x, 0.7, 0.7 / (0.7 + 2.5)) * seen.laws[-1].pmf(y - x)
        assert logs[at] == pytest.approx(np.log(chances.sum()), abs=1e-5)
        average = (chances * x).sum() / chances.sum()
        assert mean[at] == pytest.approx(average, abs=1e-4)
        squares = (chances * (x - average) ** 2).sum() / chances.sum()
        assert variance[at] == pytest.approx(squares, abs=1e-3)


@pytest.mark.parametrize("shrink", [james_stein, normal_bayes])
def test_shrinking_gains_what_theory_says_where_all_cells_are_alike(shrink) -> None:
    rng = np.random.default_rng(7)
    offsets, totals = np.array([0, 400]), np.array([400 * 50])
    true = 50 + rng.normal(0, 2, 400)
    noisy = true + rng.normal(0, 4, 400)
    level = Level(noisy, np.full(400, 16.0), totals, offsets, np.arange(400))
    estimates, spread = shrink(level)
    error = ((nearest(estimates, spread, totals, offsets) - true) ** 2).mean()
    assert error == pytest.approx(4 * 16 / (4 + 16), rel=0.2)


def test_every_competitor_adds_up_in_whole_numbers() -> None:
    rng = np.random.default_rng(8)
    for seed in range(5):
        seen = measured(np.random.default_rng(seed), uneven_tree())
        for name, method in competitors(rng).items():
            counts = method(seen)
            for each, below, offsets in zip(
                counts, counts[1:], seen.hierarchy.offsets, strict=False
            ):
                assert sums(below, offsets).tolist() == each.tolist(), name
            assert min(each.min() for each in counts) >= 0, name
            assert all(each.dtype == np.int64 for each in counts), name


def test_rows_have_names_of_their_own_and_come_out_the_same_twice() -> None:
    rows = [*known_rows(), *untuned_rows()]
    assert len({row.name for row in rows}) == len(rows)
    assert sum(not row.known for row in rows) >= 14
    for row in rows:
        if row.needs is None:
            once, again = row.make(), row.make()
            assert once.cells.tolist() == again.cells.tolist()
            losses = {once.unit: once.loss}
            mechanism = "gaussian" if once.unit == "rho" else "geometric"
            budget = Plan(**losses, mechanism=mechanism).budget(once.hierarchy)
            assert len(budget.laws) == len(once.hierarchy.sizes)


def test_a_ratio_of_errors_has_the_spread_of_its_bootstrap() -> None:
    rng = np.random.default_rng(9)
    common = rng.gamma(2, 1, 400)
    above, below = 1.1 * common + rng.gamma(1, 0.3, 400), common + rng.gamma(1, 0.2, 400)
    found = ratio(above, below)
    assert found.value == pytest.approx(np.sqrt(above.mean() / below.mean()))
    chosen = rng.integers(0, 400, (4000, 400))
    again = np.sqrt(above[chosen].mean(axis=1) / below[chosen].mean(axis=1))
    assert found.error == pytest.approx(again.std(), rel=0.1)
    assert ratio(2 * common, common).lost
    assert not ratio(1.05 * common, common).lost
    assert ratio(np.ones(30), np.zeros(30)).lost
    assert ratio(np.ones(3), np.zeros(3)).mark == "?"
    assert not ratio(np.zeros(3), np.zeros(3)).lost


def test_unusual_cells_stand_out_from_parent_and_label() -> None:
    counts = np.outer(np.arange(1, 11), np.arange(1, 11)) * 10
    counts[3, 6] += 500
    paths = [(f"{i:02}", f"{j:02}") for i in range(10) for j in range(10)]
    hierarchy = build(pl.DataFrame(paths, schema=["a", "b"], orient="row"))[0]
    assert np.flatnonzero(unusual(hierarchy, counts.ravel())).tolist() == [36]
    found = groups(hierarchy, counts.ravel())
    assert [level for level, _ in found["sums of 100+"]] == [0, 1]
    everyone = sum(these.sum() for name in found if "of" in name for _, these in found[name])
    assert everyone == hierarchy.nodes


def row(default: float, held: int) -> dict:
    """Figures of fifteen releases."""
    squared = {"default": [[1.0, default]] * 15, "least squares": [[1.0, 1.0]] * 15}
    tally = {"cells of 0": [2000, held, 9000.0], "unusual cells": [10, 1, 30.0]}
    return {
        "known": False,
        "lone": True,
        "errors": {
            "code": ["one"],
            "releases": 15,
            "seconds": 1.0,
            "levels": ["total", "part"],
            "sizes": [1, 30],
            "empty": 0.5,
            "chosen": {"bayes": 15},
            "squared": squared,
            "bias": {"default": [0.0, 0.0]},
            "empty_kept": {"default": 0.5},
        },
        "ranges": {
            "code": ["one"],
            "releases": {"default": 5, "published": 5},
            "seconds": {"default": 1.0, "published": 1.0},
            "refused": {"default": 0, "published": 0},
            "why": {},
            "tally": {"default": tally, "published": tally},
        },
    }


def test_the_page_marks_what_the_default_loses_and_what_ranges_miss() -> None:
    good = as_page({"one": row(1.05, 1900)})
    bad = as_page({"one": row(1.1, 1800)})
    assert "1 tables, 2 levels, 0 of them marked" in good
    assert "1 tables, 2 levels, 1 of them marked" in bad
    assert good.count("**✗**") == 0
    assert bad.count("90.0% **✗**") == 4
    assert "held in 0 of 2 rows by *default* and in 0 of 2 rows by *published*" in good
    assert "held in 2 of 2 rows by *default* and in 2 of 2 rows by *published*" in bad
    assert "10.0% | 10" in bad


def test_the_page_shows_what_no_method_can_have() -> None:
    one = row(1.05, 1900)
    page = as_page({"one": one | {"equal cells": {
        "errors": {"1": one["errors"], "2": row(2.0, 1900)["errors"]}, "bound": (1.2, 0.01)
    }}})  # fmt: skip
    assert "| one | 1 | 15 | least squares | 1.025 ± 0.000 | 1.200 ± 0.010 |" in page
    assert "| one | 2 | 15 | least squares | 1.414 ± 0.000 | 1.200 ± 0.010 |" in page
    assert "of any method" not in page
    lost = row(1.1, 1900) | {"equal cells": {"errors": {}, "bound": (1.2, 0.01)}}
    assert "part; of any method at least 1.200 ± 0.010 in one" in as_page({"one": lost})


def test_totals_are_compared_in_many_releases() -> None:
    near, far = {"default": [4.0, 4.0] * 6, "NNLS": [4.0] * 12}, {"NNLS": [1.0] * 12}
    found = {"squared": near, "code": ["one"]}
    page = as_page({"one": row(1.0, 1900) | {"totals": found}})
    assert "| one | 12 | 2 | 2 | 1.000 ± 0.000 |  |" in page
    worse = {"squared": near | far, "code": ["two"]}
    assert "2.000 ± 0.000 | **✗** |" in as_page({"one": row(1.0, 1900) | {"totals": worse}})
    both = pooled({"known": False, "totals": found}, {"known": False, "totals": worse})["totals"]
    assert both["code"] == ["one", "two"]
    assert both["squared"]["NNLS"] == [4.0] * 12 + [1.0] * 12


def test_runs_of_a_row_are_taken_together() -> None:
    both = pooled(row(1.0, 1900), row(4.0, 1700))
    assert both["errors"]["releases"] == 30
    assert both["errors"]["squared"]["default"] == [[1.0, 1.0]] * 15 + [[1.0, 4.0]] * 15
    assert both["errors"]["chosen"] == {"bayes": 30}
    assert both["ranges"]["tally"]["published"]["cells of 0"] == [4000, 3600, 18000.0]
    assert "90.0% **✗** | 4,000 | 4.5" in as_page({"one": both})
