"""Joint draws of tables that cross: they add up, go on after a stop, and answer questions."""

import json
from dataclasses import replace
from itertools import product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import InputError
from countwise.front_door.output_files import continued
from countwise.inference import lattice_chains
from countwise.inference.chain_draws import chain_draws, is_chain
from countwise.inference.crossed_posterior import CrossedPosterior
from countwise.inference.drawn_posterior import DrawnPosterior
from countwise.inference.lattice_chains import lattice_draws
from countwise.release.crossed_release import CrossedRelease
from countwise.tables.workload import Margin, Workload
from crossed_tables import every_margin, flat, geometric, measured, tree

ACROSS: dict[str, Any] = {"age": ["band", "year"], "sex": ["sex"]}


def release(tables: str, **given: Any) -> CrossedRelease:
    rows = [
        (*place, *age, sex, 11 * i + 7 * j + k if (age[0], sex) != ("young", "m") else 0)
        for i, place in enumerate([("N", "a"), ("N", "b"), ("S", "c")])
        for j, age in enumerate([("young", "0-9"), ("young", "10-19"), ("old", "20+")])
        for k, sex in enumerate("fm")
    ]
    frame = pl.DataFrame(rows, ["state", "county", "band", "year", "sex", "n"], orient="row")
    by = ("state", "county")
    table = cw.read_counts(frame, by=by, across=ACROSS, count="n", cells_are_public=True)
    made = cw.release(table, cw.Plan(by=by, across=ACROSS, tables=tables, rho="0.5", **given))
    assert isinstance(made, CrossedRelease)
    return made


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("WARMUP", 40), ("THIN", 4), ("FEWEST", 24), ("BLOCK", 6)):
        monkeypatch.setattr(lattice_chains, name, value)


@pytest.mark.usefixtures("quick")
def test_draws_are_whole_and_keep_exact_counts_and_zeros() -> None:
    made = release("county*year*sex", exact=("state*sex",), zeros=("band=young,sex=m",))
    draws = cw.infer(made).draws(50, rng=np.random.default_rng(1))
    assert len(draws) == len(draws["total"]) == 50
    assert (draws.chosen >= 0).all()
    assert not draws["band=young, sex=m"].any()
    known = next(each for each in made.measurements if each.exact is not None and each.exact.all())
    assert (draws.margin(known.margin) == known.noisy).all()
    for margin in made.workload.margins:
        counts = draws.margin(margin)
        assert (counts.reshape(50, -1).sum(axis=1) == draws["total"]).all()
    assert (draws["county=a"] == draws["county=a, sex=f"] + draws["county=a, sex=m"]).all()
    assert len(np.unique(draws["year=20+, county=a"])) > 1


@pytest.mark.usefixtures("quick")
def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    made = release("county*sex, year")
    asked = (made.workload, made.measurements, 90)
    whole = lattice_draws(*asked, rng=np.random.default_rng(4)).cells

    def stop(_stage: str, done: int, _of: int) -> None:
        if done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lattice_draws(*asked, rng=np.random.default_rng(4), folder=tmp_path, report=stop)
    assert len(list(tmp_path.glob("block-*.npz"))) == 3
    begun: list[int] = []
    again = lattice_draws(
        *asked,
        rng=np.random.default_rng(4),
        folder=tmp_path,
        report=lambda _stage, done, _of: begun.append(done),
    ).cells
    assert begun[0] > 20
    assert np.array_equal(again, whole)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_chain_of_tables_is_drawn_by_exact_messages(order: tuple[int, int]) -> None:
    """Against enumeration of the nested prior: every way to divide a count is as likely."""
    workload = Workload(variables=(flat("a", 2), flat("b", 2)))
    middle = Margin(order)
    margins = (Margin((0, 0)), middle, Margin((1, 1)))
    rng = np.random.default_rng(3)
    true = np.array([[0, 2], [1, 1]])
    seen = measured(workload, true, {each: geometric(1.0) for each in margins}, rng)
    assert is_chain(workload, seen)
    assert not is_chain(workload, [*seen, seen[0]])
    tables = np.array(list(product(range(16), repeat=4))).reshape(-1, 2, 2)
    rows = tables.sum(axis=2 if order == (1, 0) else 1)
    logs = -np.log(tables.sum(axis=(1, 2)) + 1.0) - np.log(rows + 1.0).sum(axis=1)
    assert comb(5 + 1, 1) == 6  # ways to divide 5 between two
    for each, sums in zip(seen, (tables.sum(axis=(1, 2))[:, None], rows, tables), strict=True):
        deviations = each.noisy.reshape(1, -1) - sums.reshape(len(tables), -1)
        logs = logs + each.law.logpmf(deviations).sum(axis=1)
    chances = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    drawn, prior = chain_draws(workload, seen, 20_000, rng=rng)
    assert "evenly" in prior
    for cell, values in enumerate(tables.reshape(-1, 4).T):
        mean, spread = values @ chances, np.sqrt(values**2 @ chances - (values @ chances) ** 2)
        assert abs(drawn[:, cell].mean() - mean) < 5 * spread / np.sqrt(20_000)
        assert abs((drawn[:, cell] == 0).mean() - chances[values == 0].sum()) < 0.018


def test_chains_of_uneven_trees_keep_their_order() -> None:
    variables = (tree("place", (1, 3)), flat("sex", 2))
    workload = Workload(variables=variables, margins=every_margin(variables))
    rng = np.random.default_rng(5)
    true = rng.poisson(50.0, workload.shape)
    margins = [Margin(each) for each in ((0, 0), (0, 1), (1, 1), (2, 1))]
    seen = measured(workload, true, {each: geometric(3.0) for each in margins}, rng)
    drawn, _ = chain_draws(workload, seen, 400, rng=rng)
    assert np.abs(drawn.mean(axis=0) - true.reshape(-1)).max() < 4


@pytest.mark.usefixtures("quick")
def test_a_prior_answers_from_draws() -> None:
    made = release("county*sex, year")
    post = cw.infer(made, prior="learned", rng=np.random.default_rng(2))
    assert isinstance(post, DrawnPosterior)
    free = cw.infer(made)
    assert isinstance(free, CrossedPosterior)
    old, plain = post.sum(county=["a", "b"], sex="f"), free.sum(county=["a", "b"], sex="f")
    assert abs(old.mean - plain.mean) < 3 * plain.sd
    low, high = old.interval(0.9)
    assert 0 <= low <= old.mean <= high
    assert "learned" in old.prior
    sure = post.probability("county=c > county=a")
    assert sure > 0.99
    assert 0 < sure.error < 0.05
    against = post.probability("county=c < county=a")
    assert against < 0.01
    table = post.table()
    assert set(table["prior"]) == {"learned"}
    assert (table["lower"] <= table["upper"]).all()
    assert "R-hat" in post.diagnostics
    given = post.draws(10).to_arviz()
    assert set(given["posterior"]) == {made.workload.name(each) for each in made.workload.margins}
    assert given["posterior"]["total"].shape[0] == lattice_chains.CHAINS
    assert given["coords"]["sex_node"] == ["sex=f", "sex=m"]


def test_priors_that_do_not_go_are_refused() -> None:
    made, rng = release("county*sex, year"), np.random.default_rng(0)
    with pytest.raises(InputError, match="learned"):
        cw.infer(made, prior="uniform", rng=rng)
    with pytest.raises(InputError, match="one tree"):
        cw.infer(made, prior="nested", rng=rng)
    with pytest.raises(InputError, match="rng"):
        cw.infer(made, prior="learned")
    with pytest.raises(InputError, match="1 or more"):
        cw.infer(made).draws(0, rng=rng)
    huge = replace(made.workload)
    with pytest.raises(InputError, match="fewer draws"):
        lattice_draws(huge, made.measurements, 10**9, rng=rng)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("ending", ["parquet", "csv", "npz"])
def test_draws_by_command(tmp_path: Path, ending: str) -> None:
    made = release("county*sex, year")
    made.save(tmp_path / "r")
    file = tmp_path / f"draws.{ending}"
    run("infer", tmp_path / "r", "--draws", 30, "--draws-out", file, "--seed", 1)
    if ending == "npz":
        with np.load(file) as arrays:
            assert {"total", "county*sex", "total_node", "prior"} <= set(arrays)
            assert arrays["county*sex"].shape[1] >= 24
    else:
        read = pl.read_parquet if ending == "parquet" else pl.read_csv
        frame = read(file)
        assert frame.columns[:5] == ["state", "county", "band", "year", "sex"]
        assert frame.columns[5:] == [f"draw_{i + 1}" for i in range(30)]
        assert len(frame) == made.workload.cells
        assert frame.select("^draw_.*$").min().min_horizontal().item() >= 0
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.usefixtures("quick")
def test_answers_under_a_prior_by_command(tmp_path: Path) -> None:
    release("county*sex, year").save(tmp_path / "r")
    said = "sex=f > county=a"
    asked = ("--prior", "learned", "--sum", "sex=f", "--statement", said, "--seed", 2, "--json")
    found = json.loads(run("infer", tmp_path / "r", *asked))
    assert found["statements"][0]["law"] == "draws"
    assert found["statements"][0]["error"] > 0
    assert found["sums"][0]["prior"] == found["prior"]
    assert "chains" in found["diagnostics"]
    with pytest.raises(InputError, match="learned"):
        run("infer", tmp_path / "r", "--prior", "uniform")
    with pytest.raises(InputError, match=r"must end in \.npz or"):
        run("infer", tmp_path / "r", "--draws-out", tmp_path / "draws.txt")


def draw_and_stop(file: Path, name: str, left: list[bool]) -> None:
    """A run that draws and is stopped; whether one of this name had left something."""
    with continued(file, name, overwrite=False) as (unfinished, partial):
        drawn = unfinished / "block"
        there = drawn.exists()
        drawn.write_text("drawn")
        partial.write_text("half of it")
        left.append(there)
        raise KeyboardInterrupt


def test_what_a_stopped_command_drew_is_there_for_the_same_one(tmp_path: Path) -> None:
    file, left = tmp_path / "draws.csv", list[bool]()
    for name in ("one", "one", "two"):
        with pytest.raises(KeyboardInterrupt):
            draw_and_stop(file, name, left)
        assert not file.exists()
    assert left == [False, True, False]
    with continued(file, "two", overwrite=False) as (unfinished, partial):
        assert (unfinished / "block").exists()
        partial.write_text("all of it")
    assert file.read_text() == "all of it"
    assert [path.name for path in tmp_path.iterdir()] == ["draws.csv"]
    with pytest.raises(InputError, match="exists already"):
        draw_and_stop(file, "two", left)
