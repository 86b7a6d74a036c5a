"""Sums and statements about tables that cross: dense algebra, coverage, names, refusals."""

import json
from itertools import pairwise
from math import erf, sqrt
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.arrays import FloatArray
from countwise.cli import app
from countwise.errors import InputError
from countwise.inference.box_names import box_of, find_box
from countwise.inference.box_statements import parse_statement
from countwise.inference.crossed_posterior import CrossedPosterior, crossed_posterior
from countwise.margins.boxes import Box, sum_estimate
from countwise.margins.measurement import Measurement
from countwise.margins.ranges import fitted, sum_range
from countwise.noise.laws import Exact
from countwise.tables.workload import Margin, Workload
from crossed_tables import every_margin, flat, gaussian, geometric, matrix, measured, tree


@pytest.fixture
def small() -> Workload:
    """Two places of unequal size by three by two: 24 cells, 12 margins."""
    variables = (tree("place", (1, 3)), flat("age", 3), flat("sex", 2))
    return Workload(variables=variables, margins=every_margin(variables))


def posterior_of(workload: Workload, seen: list[Measurement]) -> CrossedPosterior:
    nothing = tuple(np.zeros(workload.shape_of(each), np.int64) for each in workload.margins)
    return CrossedPosterior(workload=workload, measurements=tuple(seen), released=nothing)


def dense(workload: Workload, seen: list[Measurement]) -> tuple[FloatArray, FloatArray]:
    """Estimates of all cells and their covariance; exact counts as ones of next to no noise."""
    rows = np.vstack([matrix(workload, each.margin) for each in seen])
    values = np.concatenate([each.noisy.reshape(-1).astype(float) for each in seen])
    spread = [np.full(each.noisy.size, each.law.variance or 1e-7) for each in seen]
    weighted = rows / np.concatenate(spread)[:, None]
    inverse = np.linalg.inv(rows.T @ weighted)
    return inverse @ (weighted.T @ values), inverse


def cells_where(workload: Workload, **labels: str) -> FloatArray:
    """1 at the cells with these labels, from the labels of all cells."""
    frame = pl.DataFrame([column for _, column in workload.labels(workload.finest)])
    found = np.ones(workload.cells, dtype=bool)
    for level, chosen in labels.items():
        found &= frame[level].cast(pl.String).is_in(chosen.split("|")).to_numpy()
    return found.astype(float)


BOXES: list[dict[str, str]] = [
    {},
    {"sex": "sex0001"},
    {"place_low": "c000-000|c001-002", "age": "age0001"},
    {"place_high": "p001", "age": "age0000|age0002", "sex": "sex0000"},
    {"place_high": "p001", "place_low": "c001-000|c001-001|c001-002"},
    {"place_low": "c001-001", "age": "age0002", "sex": "sex0001"},
]


@pytest.mark.parametrize("exact", [False, True])
def test_sums_and_differences_are_those_of_dense_algebra(small: Workload, exact: bool) -> None:
    rng = np.random.default_rng(3)
    laws = {Margin((2, 1, 0)): gaussian(4.0), Margin((1, 0, 1)): geometric(0.5)}
    laws |= {small.finest: gaussian(9.0)}
    total = {Margin((0, 0, 1)): Exact()} if exact else {}
    seen = measured(small, rng.poisson(8.0, small.shape), laws | total, rng)
    cells, covariance = dense(small, seen)
    estimates = fitted(small, seen)
    for i, one in enumerate(BOXES):
        for other in BOXES[i:]:
            boxes = [
                box_of(small, "", {k: v.split("|") for k, v in x.items()}) for x in (one, other)
            ]
            terms = [(1.0, boxes[0].box), (-2.5, boxes[1].box)]
            weights = cells_where(small, **one) - 2.5 * cells_where(small, **other)
            mean, variance = sum_estimate(small, seen, estimates, terms)
            assert mean == pytest.approx(weights @ cells, abs=1e-4)
            assert variance == pytest.approx(weights @ covariance @ weights, rel=1e-5, abs=1e-4)


def test_the_names_of_sums_are_the_cells_with_their_labels(small: Workload) -> None:
    names = {
        "total": {},
        "place=c000-000|c001-002, age=age0001": BOXES[2],
        "place_low=*-000|*-002, place_high=p001": {"place_low": "c001-000|c001-002"},
        'place_low=c001*,age="age0001"': {"place_high": "p001", "age": "age0001"},
        "age=*0001|*0002*": {"age": "age0001|age0002"},
        "sex=*": {},
    }
    for name, labels in names.items():
        box = find_box(small, name).box
        inside = box.inside(small, small.finest).reshape(-1)
        np.testing.assert_array_equal(inside, cells_where(small, **labels))


def test_a_sum_is_asked_of_the_coarsest_counts_that_make_it(small: Workload) -> None:
    name = "place_low=c001-000|c001-001|c001-002, sex=sex0000|sex0001"
    assert find_box(small, name).box.levels() == Margin((1, 0, 0))
    assert find_box(small, "place_low=c000-000").box.levels() == Margin((1, 0, 0))


def test_labels_named_twice_are_counted_once_and_said(small: Workload) -> None:
    rng = np.random.default_rng(5)
    seen = measured(small, rng.poisson(5.0, small.shape), {small.finest: gaussian(2.0)}, rng)
    post = posterior_of(small, seen)
    once, twice = post.sum("age=age0001"), post.sum("age=age0001|*1")
    assert (once.mean, once.sd, once.interval()) == (twice.mean, twice.sd, twice.interval())
    assert not once.twice
    assert twice.twice == ("age0001",)
    assert post.sum(age=["age0001", "*1"]).name == "age=age0001|*1"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sex=sex0002", "'sex' has no 'sex0002'. Did you mean 'sex0001', 'sex0000'"),
        ("sex=*7", "'sex' has no"),
        ("sexes=sex0001", "no level 'sexes'. Did you mean 'sex'"),
        ("sex", "names no counts"),
        ("sex=", "names no counts"),
        ("sex=sex0000|", "names no counts"),
        ("sex=sex0000, sex=sex0001", "sex=sex0000|sex0001"),
        ("place_high=p000, place_low=c001-000", "no category of place has all"),
        ('sex="*"', "'sex' has no"),
    ],
)
def test_names_of_nothing_are_refused(small: Workload, name: str, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        find_box(small, name)
    assert said in str(refusal.value)


def test_statements_have_the_probability_of_the_normal_difference(small: Workload) -> None:
    rng = np.random.default_rng(4)
    laws = {small.finest: gaussian(9.0), Margin((0, 1, 1)): gaussian(3.0)}
    seen = measured(small, rng.poisson(8.0, small.shape), laws, rng)
    cells, covariance = dense(small, seen)
    post = posterior_of(small, seen)

    def chance(weights: FloatArray, cut: float) -> float:
        return (1 - erf((cut - weights @ cells) / sqrt(2 * weights @ covariance @ weights))) / 2

    men, women = cells_where(small, sex="sex0000"), cells_where(small, sex="sex0001")
    young = cells_where(small, age="age0000")
    cases = {
        "sex=sex0000 > sex=sex0001": chance(men - women, 0.5),
        "sex=sex0000 >= sex=sex0001": chance(men - women, -0.5),
        "sex=sex0000 < sex=sex0001": 1 - chance(men - women, -0.5),
        "sex=sex0000 <= sex=sex0001": 1 - chance(men - women, 0.5),
        "2 * age=age0000 > 120": chance(2 * young, 121),
        "0.5 * age=age0000 >= 30": chance(young, 59.5),
        "age=age0000 / total < 0.25": 1 - chance(4 * young - men - women, -0.5),
        "age=age0000 + 3 > 0.5*sex=sex0000 - 1": chance(2 * young - men, -7.5),
        "-sex=sex0000 + 100 > 0": chance(-men, -99.5),
        "age=age0000, sex=sex0001|*0000 > 60": chance(young, 60.5),
    }
    for said, wanted in cases.items():
        found = post.probability(said)
        assert float(found) == pytest.approx(wanted, abs=1e-6), said
        assert found.prior.startswith("none")
    assert post.probability("sex=* > total") == 0.0
    assert post.probability("sex=* >= total") == 1.0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("sex=sex0000>sex=sex0001", "one relation"),
        ("sex=sex0000 > 1 > 0", "one relation"),
        ("sex=sex0000 == 3", "no probability"),
        ("3 > 2", "names no counts"),
        ("sex=sex0000 / 0 > 1", "divided by a sum"),
        ("sex=sex0000 / total > age=age0000", "compared with a number"),
        ("sex=sex0000 + > 3", "is missing"),
        (" > 3", "is missing"),
        ("sex=sex0000 > 1e99", "too large"),
        ("sex=sexes > 1", "has no 'sexes'"),
    ],
)
def test_statements_that_say_nothing_are_refused(small: Workload, said: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parse_statement(said, small)


def test_ranges_of_sums_and_differences_hold_the_truth() -> None:
    """Made-up sparse tables under geometric and Gaussian noise: 95% hold, errors are normal."""
    variables = (tree("place", (2, 5, 1)), flat("age", 4), flat("sex", 2))
    workload = Workload(variables=variables, margins=every_margin(variables))
    rng = np.random.default_rng(11)
    true = rng.poisson(rng.gamma(0.4, 12.0, workload.shape))
    laws = {Margin((2, 1, 1)): geometric(0.3), Margin((1, 1, 0)): gaussian(9.0)}
    laws |= {Margin((2, 0, 1)): gaussian(16.0)}
    choices = [
        (rng.choice(8, 3, replace=False), rng.choice(4, 2, replace=False), np.array([i % 2]))
        for i in range(12)
    ]
    boxes = [Box(margin=workload.finest, categories=each) for each in choices]
    truths = {b: int((true * b.inside(workload, workload.finest)).sum()) for b in boxes}
    held, shifts = [], []
    for _ in range(60):
        seen = measured(workload, true, laws, rng)
        post = posterior_of(workload, seen)
        for one, other in pairwise(boxes):
            mean, variance = sum_estimate(workload, seen, post.estimates, [(1, one), (-1, other)])
            shifts.append((mean - truths[one] + truths[other]) / variance**0.5)
        for box, truth in truths.items():
            low, high = sum_range(workload, seen, box, estimates=post.estimates)
            held.append(low <= truth <= high)
        named = post.sum(place=["c000-*", "c001-001"], age=["age0000", "age0003"], sex="sex0001")
        inside = cells_where(
            workload, place_low="c000-000|c000-001|c001-001", age="age0000|age0003", sex="sex0001"
        )
        low, high = named.interval()
        held.append(low <= inside @ true.reshape(-1) <= high)
    assert len(held) == 13 * 60
    assert np.mean(held) >= 0.93
    assert np.std(shifts) == pytest.approx(1.0, abs=0.08)
    assert np.mean(np.abs(shifts) < 1.96) == pytest.approx(0.95, abs=0.03)


def test_one_measured_count_has_the_range_of_its_table(small: Workload) -> None:
    rng = np.random.default_rng(9)
    seen = measured(small, rng.poisson(3.0, small.shape), {small.finest: geometric(0.3)}, rng)
    post = posterior_of(small, seen)
    low, high = post.ranges(small.finest, 0.9)
    name = "place_low=c001-001, age=age0002, sex=sex0001"
    assert post.interval(name, 0.9) == (low[2, 2, 1], high[2, 2, 1])
    row = post.table(probability=0.9).filter(
        pl.col("level") == "place_low*age*sex",
        pl.col("place_low") == "c001-001",
        pl.col("age") == "age0002",
        pl.col("sex") == "sex0001",
    )
    assert row.select("lower", "upper").row(0) == (low[2, 2, 1], high[2, 2, 1])
    assert row["sd"].item() == pytest.approx(post.sum(name).sd)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.fixture
def crossed(tmp_path: Path) -> Path:
    """A release of two places with five counties by sex and age."""
    places = ["N,a", "N,b", "S,c", "S,d", "S,e"]
    rows = [(*p.split(","), a, s) for p in places for a in ("0-64", "65+") for s in "fm"]
    frame = pl.DataFrame(rows, schema=["state", "county", "age", "sex"], orient="row")
    frame.with_columns(n=pl.int_range(pl.len()) * 7).write_csv(tmp_path / "cells.csv")
    run("release", tmp_path / "cells.csv", "--by", "state,county", "--across", "age, sex",
        "--tables", "county*age*sex, state*age", "--count", "n", "--cells-are-public",
        "--rho", 2, "--out", tmp_path / "r")  # fmt: skip
    return tmp_path / "r"


def test_a_folder_of_crossed_tables_is_inferred(crossed: Path) -> None:
    file = crossed.parent / "p.parquet"
    asked = ("--sum", "county=a|c, age=65+", "--sum", "county=e, age=65+", "--statement",
             "age=65+ > age=0-64")  # fmt: skip
    data = json.loads(run("infer", crossed, *asked, "--level", 0.9, "--out", file, "--json"))
    release = cw.read_release(crossed)
    table = pl.read_parquet(file)
    assert len(table) == release.size == len(data["nodes"])
    assert table["released"].to_list() == release.table()["count"].to_list()
    assert (table["lower"] <= table["upper"]).all()
    post = cw.infer(crossed)
    first, second = data["sums"]
    wanted = post.sum(county=["a", "c"], age="65+")
    assert (first["mean"], first["sd"]) == pytest.approx((wanted.mean, wanted.sd))
    assert [first["lower"], first["upper"]] == list(wanted.interval(0.9))
    row = table.filter(pl.col("level") == "county*age", county="e", age="65+").row(0, named=True)
    assert (second["lower"], second["upper"]) == (row["lower"], row["upper"])
    assert data["statements"][0]["probability"] == pytest.approx(
        float(post.probability("age=65+ > age=0-64"))
    )
    said = run("infer", crossed, "--sum", "county=a|a", "--statement", "age=65+ > age=0-64")
    assert "a named more than once, counted once" in said
    assert "no prior" in said


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--page", "p.html"], "--page"),
        (["--prior", "nested"], "the prior nested divides counts along one tree"),
        (["--from", "counts"], "--from counts"),
        (["--sum", "county=z"], "no 'z'"),
        (["--statement", "sex=f > sex=x"], "no 'x'"),
        (["--level", "2"], "between 0 and 1"),
        (["--out", "p.txt"], "must end in .csv or .parquet"),
    ],
)
def test_what_crossed_tables_do_not_have_is_refused(
    crossed: Path, more: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(crossed.parent)
    before = sorted(crossed.parent.iterdir())
    with pytest.raises(InputError, match=said) as refusal:
        run("infer", crossed, *more)
    assert refusal.value.exit_code == 2
    assert sorted(crossed.parent.iterdir()) == before


@pytest.mark.parametrize("mechanism", ["geometric", "joint"])
def test_sums_of_trees(tmp_path: Path, mechanism: str) -> None:
    (tmp_path / "t.csv").write_text("state,county,n\nN,a,40\nN,b,50\nS,c,60\nS,d,70\nS,e,80\n")
    run("release", tmp_path / "t.csv", "--by", "state,county", "--count", "n",
        "--cells-are-public", "--epsilon", 2, "--mechanism", mechanism,
        "--out", tmp_path / "r")  # fmt: skip
    asked = ("--sum", "state=S", "--sum", "county=c|d|e", "--sum", "county=a|c|e")
    data = json.loads(run("infer", tmp_path / "r", *asked, "--json"))
    one, same, two = data["sums"]
    assert {**one, "sum": ""} == {**same, "sum": ""}
    node = next(each for each in data["nodes"] if each["path"] == "S")
    assert [one["lower"], one["upper"]] == pytest.approx([node["lower"], node["upper"]], abs=1)
    assert two["lower"] < two["mean"] < two["upper"]
    release = cw.read_release(tmp_path / "r")
    if mechanism == "joint":
        assert not two["prior"].startswith("none")
        with pytest.raises(InputError, match="joint"):
            crossed_posterior(release)
    else:
        assert two["prior"] == one["prior"]
        assert two["prior"].startswith("none")
        assert two["sd"] == pytest.approx(crossed_posterior(release).sum("county=a|c|e").sd)


def test_paper_counts_have_no_labels_to_sum() -> None:
    with pytest.raises(InputError, match="--counts have none"):
        run("infer", "--counts", "3,4", "--epsilon", 1, "--sum", "total")
