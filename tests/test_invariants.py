"""Counts released as they are: what follows from them, who keeps them, what is promised."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.stats import chisquare

import countwise as cw
from cases import flat, tree
from countwise.errors import PlanError, TableError
from countwise.inference.sampled_posterior import SampledPosterior
from countwise.noise.joint import joint_noise
from countwise.noise.laws import Exact, Geometric
from countwise.noise.sampling import sample, sample_magnitude
from countwise.release.document import check_counts, read_release
from countwise.release.plan import ADJUSTMENTS, Plan, read_plan
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.invariants import find_invariants, floors
from countwise.tables.pattern import Pattern, read_pattern
from test_cli import run

CELLS = np.array([900, 3, 0, 0, 40, 0, 2, 700, 0, 1, 0, 5] * 4)
SHAPE = tree(4, 3, 4)
EXACT = ("l0=00001", "l0=00000,l1=00002", "l2=00003,l0=00002", "l0=00003,l1,l2=00000")
ZEROS = ("l0=00000,l1=00000,l2=00002", "l1=00002,l0=00003,l2=00002")


def rows(hierarchy: Hierarchy) -> np.ndarray:
    """The cells each node sums, a row a node of any level."""
    unit = np.eye(hierarchy.cells, dtype=np.int64)
    return np.concatenate([np.column_stack([hierarchy.sums(each)[level] for each in unit])
                           for level in range(len(hierarchy.sizes))])  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_what_follows_is_what_linear_algebra_says(seed: int) -> None:
    """A node is exact if and only if its count is a combination of those declared."""
    rng = np.random.default_rng(seed)
    hierarchy = tree(*rng.integers(1, 4, 3))
    design = rows(hierarchy)
    patterns = []
    for level, size in enumerate(hierarchy.sizes):
        for node in np.flatnonzero(rng.random(size) < 0.35):
            path = hierarchy.path(level, int(node))
            labels = tuple(zip(hierarchy.by, path, strict=False)) or (("total", None),)
            patterns.append(Pattern(labels))
    known = find_invariants(hierarchy, patterns, [])
    if known is None:
        assert not patterns
        return
    declared = find_rows(hierarchy, patterns, design)
    rank = np.linalg.matrix_rank(declared)
    truth = hierarchy.sums(rng.integers(0, 9, hierarchy.cells))
    told = [np.where(mine, t, -1) for mine, t in zip(known.declared, truth, strict=True)]
    for mine, t, c in zip(known.exact, truth, known.completed(hierarchy, told), strict=True):
        np.testing.assert_array_equal(c[mine], t[mine])
    for row, exact in zip(design, np.concatenate(known.exact), strict=True):
        assert exact == (np.linalg.matrix_rank(np.vstack([declared, row])) == rank)


def find_rows(hierarchy: Hierarchy, patterns: list[Pattern], design: np.ndarray) -> np.ndarray:
    first = np.concatenate([[0], np.cumsum(hierarchy.sizes)])
    found = [design[first[level] + np.flatnonzero(nodes)]
             for level, nodes in (each.nodes(hierarchy) for each in patterns)]  # fmt: skip
    return np.concatenate(found)


def test_zeros_reach_all_that_is_below_and_above() -> None:
    known = find_invariants(tree(2, 2), [], [read_pattern("l0=00000")])
    assert known is not None
    assert [each.tolist() for each in known.zeros] == [
        [False], [True, False], [True, True, False, False]
    ]  # fmt: skip
    known = find_invariants(tree(2, 2), [], [read_pattern("l0=00001,l1")])
    assert known is not None
    assert known.zeros[1].tolist() == [False, True]


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["geometric", "joint", "laplace", "gaussian"])
@pytest.mark.parametrize("adjust", ADJUSTMENTS)
def test_every_adjustment_keeps_them(adjust: str, mechanism: str, neighbours: str) -> None:
    """At heavy noise, where floors and exact parents bind."""
    loss = {"rho": "0.01"} if mechanism == "gaussian" else {"epsilon": "0.2"}
    plan = Plan(**loss, mechanism=mechanism, adjust=adjust, neighbours=neighbours,
                exact=EXACT, zeros=ZEROS)  # fmt: skip
    cells = np.where(plan.invariants(SHAPE).zeros[-1], 0, CELLS)
    release = cw.release(Confidential(SHAPE, cells), plan)
    check_counts(SHAPE, release.counts)
    true = SHAPE.sums(cells)
    assert release.budget.exact is not None
    for level, exact in enumerate(release.budget.exact):
        np.testing.assert_array_equal(release.counts[level][exact], true[level][exact])
        np.testing.assert_array_equal(release.measurements.noisy[level][exact], true[level][exact])
        least = floors(SHAPE, release.budget.exact, true)[level]
        assert (release.counts[level] >= least).all()
    noisy = release.measurements.noisy[-1] - true[-1]
    assert (noisy[~release.budget.exact[-1]] != 0).any()


@pytest.mark.parametrize("total", ["independent", "summed"])
@pytest.mark.parametrize("adjust", ["mode", "draw-1", "least-squares", "bayes"])
def test_an_exact_total_stays(adjust: str, total: str) -> None:
    plan = Plan(epsilon="0.1", adjust=adjust, total=total, exact=["total"])
    release = cw.release(Confidential(flat(40), np.arange(40)), plan)
    assert release.counts[0][0] == 780
    assert release.budget.levels[0].loss == 0
    assert isinstance(release.budget.levels[0].law, Exact)
    assert release.budget.levels[1].loss == Fraction(1, 10)


def test_the_posterior_is_that_of_brute_force() -> None:
    """Four cells: one exact, one middle node exact, one cell that can only be zero."""
    hierarchy = tree(2, 3)
    plan = Plan(epsilon=3, exact=["l0=00000", "l0=00001,l1=00002"],
                zeros=["l0=00000,l1=00001"])  # fmt: skip
    cells = np.array([2, 0, 1, 1, 3, 4])
    release = cw.release(Confidential(hierarchy, cells), plan)
    post = cw.infer(release, prior="uniform")
    noisy, laws = release.measurements.noisy, release.measurements.laws
    weights: dict[tuple[int, ...], float] = {}
    for a, c, d in product(range(4), range(30), range(30)):
        x = np.array([a, 0, 3 - a, c, d, 4])
        sums = hierarchy.sums(x)
        free = [~each for each in release.budget.exact or ()]
        weights[tuple(x)] = float(np.exp(sum(
            laws[i].logpmf(noisy[i] - sums[i])[free[i]].sum() for i in range(3)
        )))  # fmt: skip
    whole = sum(weights.values())
    for cell in range(6):
        mean = sum(x[cell] * w for x, w in weights.items()) / whole
        assert post.node_at(2, cell).mean == pytest.approx(mean, abs=1e-6)
    for level, exact in enumerate(release.budget.exact or ()):
        for node in np.flatnonzero(exact):
            law = post.node_at(level, int(node))
            assert law.mean == pytest.approx(noisy[level][node], abs=1e-9)
            assert law.sd == pytest.approx(0, abs=1e-6)
    for prior in ("poisson:2", "uniform:3", "compositions"):
        assert cw.infer(release, prior=prior).node_at(2, 5).mean == pytest.approx(4)


@pytest.mark.parametrize("mechanism", ["geometric", "joint"])
def test_the_sampler_keeps_exact_counts_and_agrees(mechanism: str) -> None:
    """Total and a middle node exact, so that cells of two others move together; a zero as well."""
    hierarchy = tree(3, 3)
    plan = Plan(epsilon=2, mechanism=mechanism, exact=["total", "l0=00001"],
                zeros=["l0=00001,l1=00000"])  # fmt: skip
    cells = np.array([2, 0, 1, 0, 3, 4, 9, 1, 0])
    release = cw.release(Confidential(hierarchy, cells), plan)
    exact = cw.infer(release, prior="uniform").summaries(2)
    rng = np.random.default_rng(3)
    post = cw.infer(release, prior="uniform", method="gibbs", rng=rng)
    assert isinstance(post, SampledPosterior)
    assert post.rhat < 1.03
    found = post.summaries(2)
    error = exact.sd / np.sqrt(post.effective)
    np.testing.assert_array_less(np.abs(found.mean - exact.mean), 5 * error + 1e-9)
    np.testing.assert_allclose(found.sd, exact.sd, rtol=0.08, atol=1e-9)
    levels = post.all_draws.levels
    assert (levels[0] == 20).all()
    assert (levels[1][:, 1] == 7).all()
    assert (levels[2][:, 3] == 0).all()


def test_joint_noise_around_exact_counts_has_its_law() -> None:
    """Total and one of three cells exact: z = (a, -a, 0) with weight exp(-2|a|/scale)."""
    law = Geometric(scale=Fraction(3, 2))
    exact = (np.array([True]), np.array([False, False, True]))
    size, found = 5000, np.zeros(41)
    for _ in range(size):
        cells = joint_noise(
            flat(3).offsets, (law, law), sample=sample, magnitude=sample_magnitude, exact=exact
        )
        assert cells[2] == cells[0] + cells[1] == 0
        found[20 + cells[0]] += 1
    weights = np.exp(-2 * np.abs(np.arange(-20, 21)) / 1.5)
    expected = size * weights / weights.sum()
    likely = expected > 8
    rest = size - found[likely].sum(), size - expected[likely].sum()
    result = chisquare(np.append(found[likely], rest[0]), np.append(expected[likely], rest[1]))
    assert result.pvalue > 1e-9


def test_neighbours_that_agree_on_exact_counts_stay_within_the_loss() -> None:
    """Someone outside exact counts comes or goes: ε. Someone moves below one: at most 2ε."""
    hierarchy = tree(2, 2)
    budget = Plan(epsilon="0.9", exact=["l0=00000"]).budget(hierarchy)
    assert budget.loss == Fraction(9, 10)
    assert budget.exact is not None

    def furthest(move: list[int]) -> float:
        change = hierarchy.sums(np.array(move))
        assert not any((c[e] != 0).any() for c, e in zip(change, budget.exact, strict=True))
        pairs = zip(change, budget.levels, strict=True)
        return sum(float(np.abs(c).sum() / e.law.scale) for c, e in pairs if e.law.scale)

    assert furthest([0, 0, 1, 0]) == pytest.approx(0.9)
    assert furthest([1, -1, 0, 0]) <= 1.8


def test_plans_with_patterns_come_back_and_files_of_nodes_are_read(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text('a,b\nx,\nx,"y, z"\n,\n')
    plan = Plan(epsilon=1, by=("a", "b"), exact=["a=q,b", str(tmp_path / "nodes.csv")],
                zeros=[{"b": "k=1"}])  # fmt: skip
    assert [str(each) for each in plan.exact] == ["a=q,b", "a=x", "a=x,b=y, z", "total"]
    (tmp_path / "plan.toml").write_text(plan.to_toml())
    assert read_plan(tmp_path / "plan.toml") == plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"exact": ["county"]}, "no level 'county'"),
        ({"exact": ["l0=00009"]}, "has no '00009'. Did you mean"),
        ({"exact": [""]}, "names no nodes"),
        ({"exact": ["l0=00000,l0=00001"]}, "names a level twice"),
        ({"exact": ["l1"]}, "nothing to protect"),
        ({"zeros": ["l0"]}, "nothing to protect"),
        ({"exact": ["l0"], "epsilon": {"total": 1, "l0": 1, "l1": 1}}, "'total' takes no epsilon"),
    ],
)
def test_plans_that_make_no_sense_are_refused(changes: dict, words: str) -> None:
    with pytest.raises(PlanError, match=words):
        Plan(**({"epsilon": 1} | changes)).budget(tree(2, 2))


def test_people_in_cells_that_can_only_be_zero_are_named_without_their_number() -> None:
    plan = Plan(epsilon=1, zeros=["l0=00001,l1=00001"])
    with pytest.raises(TableError, match="00001/00001 is declared") as refusal:
        cw.release(Confidential(tree(2, 2), np.array([1, 2, 3, 7777])), plan)
    assert "7777" not in str(refusal.value)


def test_counts_alone_refuse() -> None:
    release = cw.release(
        Confidential(tree(2, 2), np.arange(4)), Plan(epsilon=1, exact=["l0"], adjust="mode")
    )
    with pytest.raises(cw.CountwiseError, match="exact"):
        cw.infer(release, source="counts")


TABLE = "sex,pregnant,n\nfemale,yes,40\nfemale,no,500\nmale,yes,0\nmale,no,480\n"


def test_from_flags_to_certificate(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text(TABLE)
    (tmp_path / "domain.toml").write_text(
        'zeros = ["sex=male,pregnant=yes"]\n[columns.sex]\nlevels = ["female", "male"]\n'
        '[columns.pregnant]\nlevels = ["yes", "no"]\n'
    )
    flags = ("--by", "sex,pregnant", "--epsilon", 1, "--exact", "sex=female")
    planned = run("plan", "domain.toml", *flags, "--out", "plan.toml", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "Exact at level 'sex': 1 of 2 counts." in planned.stdout
    made = run("release", "cells.csv", "--plan", "plan.toml", "--count", "n", "--domain",
               "domain.toml", "--out", "r", "--json", cwd=tmp_path)  # fmt: skip
    assert made.returncode == 0, made.stderr
    data = json.loads(made.stdout)
    assert data["plan"]["exact"] == [{"sex": "female"}]
    assert [each["exact"] for each in data["measured"]] == [0, 1, 1]
    assert "at a loss of at most ε = 2" in data["privacy"]["given"]
    noisy = pl.read_parquet(tmp_path / "r" / "measurements.parquet")
    told = noisy.filter(pl.col("exact")).select("noisy").to_series().to_list()
    assert told == [540, 0]
    page = (tmp_path / "r" / "certificate.html").read_text()
    assert "What is not protected" in page
    assert "female" in page
    again = read_release(tmp_path / "r")
    assert again.budget.exact is not None
    assert again.budget.exact[1].tolist() == [True, False]
    found = run("infer", "r", "--json", cwd=tmp_path)
    nodes = {each["path"]: each for each in json.loads(found.stdout)["nodes"]}
    assert nodes["female"]["lower"] == nodes["female"]["upper"] == 540
    assert nodes["male/yes"]["upper"] == 0


def test_contradictory_exact_counts_are_named(tmp_path: Path) -> None:
    (tmp_path / "noisy.csv").write_text("a,b,noisy\n,,50\nx,,5\nx,p,9\nx,q,-1\ny,,30\ny,p,7\n")
    flags = ("--by", "a,b", "--epsilon", 1, "--out", "c.csv", "--exact", "a=x")
    wrong = run("adjust", "noisy.csv", *flags, "--exact", "a=x,b=p", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "those below x exceed its own (x/p" in wrong.stderr.replace("\n", " ")
    assert not (tmp_path / "c.csv").exists()
    exact = ("--exact", "total", "--exact", "a=y")
    apart = run("adjust", "noisy.csv", *flags, *exact, cwd=tmp_path)
    assert apart.returncode == 2
    assert "those below total do not add up to its own (x, y)" in apart.stderr.replace("\n", " ")
    done = run("adjust", "noisy.csv", *flags, "--zeros", "a=x,b=q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    counts = pl.read_csv(tmp_path / "c.csv").filter(pl.col("a") == "x")
    assert counts["count"].to_list() == [5, 5, 0], "the last child of an exact parent follows"
