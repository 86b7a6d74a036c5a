"""Answers of a posterior: intervals, statements, draws, combinations and names."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from polars.testing import assert_frame_equal

import countwise as cw
from cases import flat, tree
from countwise.arrays import FloatArray
from countwise.errors import InputError
from countwise.inference.combinations import all_rows
from countwise.inference.exact_posterior import ExactPosterior
from countwise.inference.posterior import Posterior
from countwise.inference.routes import infer_measurements
from countwise.noise.laws import Geometric
from countwise.sumproduct.count_laws import Laws, from_logs
from countwise.sumproduct.summaries import Law, summarise
from countwise.tables.measurements import Measurements

LAW = Geometric(scale=Fraction(1))


def small() -> Posterior:
    """Three components with counts up to 9: small enough to list all combinations."""
    return cw.infer_counts(
        [3, 1, 4], epsilon=1, total_epsilon=1, prior="uniform:9", labels=["A", "B", "C"]
    )


def grid(post: Posterior) -> tuple[np.ndarray, FloatArray]:
    """All combinations and their probabilities, by the most probable ones."""
    rows = post.top(1000)
    return np.array([r.counts for r in rows]), np.array([r.probability for r in rows])


def test_combinations_are_a_law_and_the_best_come_first() -> None:
    rows, chances = grid(small())
    assert len(rows) == len(set(map(tuple, rows)))
    assert chances.sum() == pytest.approx(1, abs=1e-6)
    assert (np.diff(chances) <= 1e-15).all()


@pytest.mark.parametrize("statement", [
    "A > B", "A + B >= 5", "C - A == 1", "A / total > 0.25", "2*A < 7", "A != B",
    "A + B + C <= 8", "C / A >= 1.5", "A + C > 3*B - 1", "total == 8", "-A + 3 > 0", "'A' < \"C\"",
])  # fmt: skip
def test_statements_are_exact(statement: str) -> None:
    post = small()
    rows, chances = grid(post)
    a, b, c = rows.T
    total = rows.sum(axis=1)
    true = {
        "A > B": a > b,
        "A + B >= 5": a + b >= 5,
        "C - A == 1": c - a == 1,
        "A / total > 0.25": 4 * a > total,
        "2*A < 7": 2 * a < 7,
        "A != B": a != b,
        "A + B + C <= 8": total <= 8,
        "C / A >= 1.5": 2 * c >= 3 * a,
        "A + C > 3*B - 1": a + c > 3 * b - 1,
        "total == 8": total == 8,
        "-A + 3 > 0": a < 3,
        "'A' < \"C\"": a < c,
    }[statement]
    found = post.probability(statement)
    assert found.exact
    assert found == pytest.approx(chances[true].sum(), abs=1e-6)


def test_what_is_not_exact_is_estimated_with_an_error() -> None:
    post = small()
    rows, chances = grid(post)
    expected = chances[(rows[:, [0]] >= rows).all(axis=1)].sum()
    found = post.probability("rank(A) == 1", rng=np.random.default_rng(1))
    assert 0 < found.error < 0.01
    assert abs(found - expected) < 5 * found.error
    three = post.probability("A + 2*B > C", rng=np.random.default_rng(1))
    assert abs(three - chances[rows @ [1, 2, -1] > 0].sum()) < 5 * three.error
    with pytest.raises(InputError, match="rng"):
        post.probability("rank(A) == 1")


@pytest.mark.parametrize(
    "text",
    ["A", "A >", "A > B > C", "A ? B", "D > 1", "rank(A, B) == 1", "A / B > C", "> 3", "A B"],
)
def test_statements_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        small().probability(text, rng=np.random.default_rng(1))


def test_laws_of_sums_over_sets() -> None:
    post = small()
    rows, chances = grid(post)
    law = post.sum(["A", "C"])
    expected = np.bincount(rows[:, 0] + rows[:, 2], chances)
    found = [law.pmf(x) for x in range(len(expected))]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert law.error == 0
    difference = post.law("A - C")
    assert difference.mean == pytest.approx(post.node("A").mean - post.node("C").mean, abs=1e-9)


def tree_posterior() -> Posterior:
    hierarchy = tree(2, 3)
    noisy = (np.array([33]), np.array([10, 20]), np.array([1, 3, 8, 5, 6, 9]))
    measured = Measurements(hierarchy=hierarchy, laws=(LAW,) * 3, noisy=noisy)
    return cw.infer_measurements([measured], prior="uniform")


def test_draws_of_a_tree_add_up_and_have_the_marginals() -> None:
    post = tree_posterior()
    draws = post.draws(20_000, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(draws.levels[1].sum(axis=1), draws.levels[0][:, 0])
    np.testing.assert_array_equal(draws.cells[:, :3].sum(axis=1), draws.levels[1][:, 0])
    for level in range(3):
        found = post.summaries(level)
        error = 5 * found.sd / np.sqrt(20_000)
        np.testing.assert_array_less(np.abs(draws.levels[level].mean(axis=0) - found.mean), error)
        np.testing.assert_allclose(draws.levels[level].std(axis=0), found.sd, rtol=0.04)
    assert (draws["00000/00001"] == draws.cells[:, 1]).all()
    exported = draws.to_arviz()
    assert exported["posterior"]["l1"].shape == (1, 20_000, 6)
    assert exported["coords"]["l1_node"][0] == "00000/00000"


def test_statements_about_three_nodes_across_families_use_draws() -> None:
    post = tree_posterior()
    rng = np.random.default_rng(3)
    found = post.probability('"00000/00002" > "00001/00000" + "00001/00001"', rng=rng)
    assert found.error > 0
    draws = post.draws(20_000, rng=rng)
    right = draws["00001/00000"] + draws["00001/00001"]
    assert float(found) == pytest.approx(np.mean(draws["00000/00002"] > right), abs=0.02)
    exact = post.probability('"00000/00002" / "00000" > 0.6')
    assert exact.exact
    assert float(exact) == pytest.approx(
        np.mean(draws["00000/00002"] > 0.6 * draws.levels[1][:, 0]), abs=0.02
    )


def test_draws_from_counts_have_the_marginals() -> None:
    post = cw.infer_counts([4, 0, 7], epsilon=1, total_epsilon="0.7")
    draws = post.draws(20_000, rng=np.random.default_rng(6))
    found = post.summaries(1)
    error = 5 * found.sd / np.sqrt(20_000)
    np.testing.assert_array_less(np.abs(draws.cells.mean(axis=0) - found.mean), error)
    for name in ("N1", "N2", "N3"):
        node = post.node(name)
        seen = np.bincount(draws[name], minlength=20)[:20] / 20_000
        expected = np.array([node.pmf(x) for x in range(20)])
        assert (np.abs(seen - expected) < 6 * np.sqrt(expected / 20_000) + 5e-4).all()


def shortest(law: FloatArray, level: float) -> int:
    """Length of the shortest run of values that holds the level."""
    return min(
        j - i for i, j in product(range(len(law)), range(len(law) + 1)) if law[i:j].sum() >= level
    )


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95, 0.999])
def test_intervals_hold_their_probability_and_are_shortest(level: float) -> None:
    rng = np.random.default_rng(8)
    logs = [-rng.uniform(0.2, 2) * np.abs(np.arange(30) - rng.uniform(0, 29)) for _ in range(20)]
    laws = from_logs(np.arange(20), np.arange(20) + 29, np.concatenate(logs))
    for interval in ("highest", "central"):
        found = summarise(laws, level=level, interval=interval)
        for i in range(20):
            low, law = laws.one(i)
            law = law / law.sum()
            inside = law[found.lower[i] - low : found.upper[i] - low + 1]
            assert inside.sum() == pytest.approx(found.chance[i], abs=1e-12)
            assert inside.sum() >= level - 1e-9
            if interval == "highest":
                assert len(inside) == shortest(law, level - 1e-12)
            else:
                assert law[: found.lower[i] - low].sum() < (1 - level) / 2 + 1e-9
                assert law[found.upper[i] - low + 1 :].sum() < (1 - level) / 2 + 1e-9


def test_moments_against_their_definition() -> None:
    law = Law(low=5, chances=np.array([0.1, 0.2, 0.3, 0.4]))
    assert law.mean == pytest.approx(7.0)
    assert law.sd == pytest.approx(1.0)
    assert law.mode == 8
    assert law.interval(0.6) == (7, 8)
    assert (law.pmf(4), law.pmf(8)) == (0.0, 0.4)
    with pytest.raises(InputError, match="between 0 and 1"):
        law.interval(1.5)
    with pytest.raises(InputError, match="interval must be"):
        law.interval(0.5, kind="widest")


def test_nodes_are_found_by_path_or_by_a_label_that_occurs_once() -> None:
    post = tree_posterior()
    assert post.node("00001/00002").path == "00001/00002"
    assert post.node("total").level == "total"
    with pytest.raises(InputError, match="give a path"):
        post.node("00002")
    with pytest.raises(InputError, match="no node"):
        post.node("00007")
    assert cw.infer_counts([5], epsilon=1, total_epsilon=1).node("N1").released == 5


def test_tables_hold_every_node() -> None:
    post = tree_posterior()
    table = post.table(probability=0.9, interval="central")
    assert table.height == 9
    assert table["probability"].min() >= 0.9
    records = list(post.records())
    fields = ["path", "level", "released", "mean", "mode", "sd", "lower", "upper", "probability"]
    assert [list(each) for each in records] == [fields] * 9


def test_large_levels_are_solved_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """With tiny chunks and nothing kept, the answers are the same."""
    expected = tree_posterior().table()
    monkeypatch.setattr("countwise.sumproduct.tree.CHUNK", 2)
    monkeypatch.setattr("countwise.sumproduct.tree.KEPT", 0)
    post = tree_posterior()
    assert isinstance(post, ExactPosterior)
    assert list(post.solved.kept) == [0]
    assert_frame_equal(post.table(), expected)


def test_combinations_of_many_certain_counts_are_listed() -> None:
    """Forty counts that are all but known: more than an array has dimensions."""
    law = Geometric(scale=Fraction(1, 40))
    noisy = (np.array([60]), np.array([1, 2] * 20))
    measured = Measurements(hierarchy=flat(40), laws=(law, law), noisy=noisy)
    best = infer_measurements([measured], prior="uniform").top(1)
    assert best[0].counts == (1, 2) * 20
    assert best[0].probability > 0.999


@pytest.mark.parametrize("known", [0, 14, 3000])
def test_statements_are_not_read_off_tails_that_were_cut(known: int) -> None:
    """Forty small counts under wide noise whose sum is known, far below what they say together."""
    law = Geometric(scale=Fraction(100))
    noisy = (np.array([known]), law.isf(np.linspace(0.01, 0.99, 40)))
    hierarchy, exact = flat(40), (np.array([True]), np.zeros(40, np.bool_))
    measured = Measurements(hierarchy=hierarchy, laws=(law, law), noisy=noisy, exact=exact)
    found = infer_measurements([measured], prior="nested")
    names = [f"'{found.node_at(1, i).path}'" for i in (3, 20, 36)]
    statement = f"{names[0]} + {names[1]} > {names[2]}"
    chance = found.probability(statement, rng=np.random.default_rng(2))
    cells = found.draws(20_000, rng=np.random.default_rng(3)).cells
    truth = np.mean(cells[:, 3] + cells[:, 20] > cells[:, 36])
    assert abs(chance - truth) < 5 * np.sqrt(truth * (1 - truth) / 10_000) + 1e-9


def test_all_rows_are_every_combination_in_order() -> None:
    within = [np.array([3, 4]), np.array([7]), np.array([0, 1, 2])]
    assert all_rows(within).tolist() == [list(each) for each in product([3, 4], [7], [0, 1, 2])]


def test_many_components_are_searched_not_listed() -> None:
    k = np.random.default_rng(1).integers(20, 90, 12)
    post = cw.infer_counts(k.tolist(), epsilon=2, total_epsilon=2)
    best = post.top(5)
    assert best[0].probability >= best[1].probability > 0
    rows = post.draws(4000, rng=np.random.default_rng(1)).cells
    seen = (rows == best[0].counts).all(axis=1).mean()
    assert seen == pytest.approx(best[0].probability, abs=5 * np.sqrt(best[0].probability / 4000))


def test_functions_are_joined_and_parted() -> None:
    laws = Laws(lows=np.array([3, 0]), offsets=np.array([0, 2, 5]), values=np.arange(1.0, 6.0))
    assert laws.grid.tolist() == [3, 4, 0, 1, 2]
    assert laws.part(1, 2).one(0)[1].tolist() == [3.0, 4.0, 5.0]
    assert laws.scaled().values.max() == 1.0
