"""countwise infer from the outside: what is printed, written, and refused."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from cases import tree
from countwise.cli import app
from countwise.errors import CountwiseError
from countwise.release.run import release
from countwise.reports.posterior_page import posterior_page
from countwise.tables.confidential import Confidential

PAPER = "infer --counts 250,357 --total 607 --epsilon 1 --total-epsilon 1 --adjust mode --ties last"


def run(*words: str | Path) -> str:
    """Standard output of a command that succeeds."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cells = np.arange(6) * 10
    made = release(Confidential(tree(2, 3), cells), cw.Plan(epsilon=3, adjust="mode"))
    made.save(tmp_path / "release")
    return tmp_path / "release"


def test_a_table_of_a_paper_as_json() -> None:
    found = json.loads(run(*PAPER.split(), "--json", "--top", "10"))
    fields = {"path", "level", "released", "mean", "mode", "sd", "lower", "upper", "probability"}
    assert [set(node) for node in found["nodes"]] == [fields] * 3
    chances = [round(each["probability"], 3) for each in found["combinations"]]
    assert chances == [0.214, 0.128, 0.079, 0.079, 0.065, 0.047, 0.047, 0.029, 0.029, 0.027]
    assert "U ≥" in found["prior"]
    assert "cuts" in found["route"]


def test_a_release_folder_with_all_outputs(folder: Path, tmp_path: Path) -> None:
    table, page, draws = (tmp_path / name for name in ("p.parquet", "p.html", "d.npz"))
    modes = tmp_path / "m.csv"
    said = "00000 > 00001"
    out = json.loads(
        run("infer", folder, "--out", table, "--page", page, "--draws-out", draws, "--draws", 50,
            "--joint-mode", modes, "--statement", '"00000" > "00001"', "--json", "--seed", 1)
    )  # fmt: skip
    assert out["route"] == "published noisy counts, exact"
    assert out["statements"][0]["exact"]
    assert said.split(maxsplit=1)[0] in out["statements"][0]["statement"]
    assert pl.read_parquet(table).height == 9
    best = pl.read_csv(modes)
    assert best.columns == ["l0", "l1", "level", "count", "prior"]
    assert best["prior"].unique().to_list() == ["every count divided evenly among its children"]
    assert pl.read_parquet(table)["prior"].unique().to_list() == ["none"]
    assert out["prior"].startswith("none")
    assert out["statements"][0]["prior"] == out["prior"]
    sums = best.group_by("level").agg(pl.col("count").sum())["count"]
    assert sums.n_unique() == 1
    text = page.read_text()
    assert "<svg" in text
    assert "Most probable combinations" in text
    with np.load(draws) as arrays:
        assert arrays["l1"].shape == (1, 50, 6)
        assert "divided evenly" in str(arrays["prior"])
        np.testing.assert_array_equal(arrays["l1"].sum(axis=2), arrays["total"][:, :, 0])


def test_counts_alone_say_less_than_noisy_counts(tmp_path: Path) -> None:
    """Where the noise happens to be zero: so it is on average, and not always by chance."""
    cells = np.arange(6) * 10
    made = release(Confidential(tree(2, 3), cells), cw.Plan(epsilon=3, adjust="mode"))
    noisy = made.hierarchy.sums(cells)
    quiet = replace(made, measurements=replace(made.measurements, noisy=noisy), counts=noisy)
    folder = tmp_path / "quiet"
    quiet.save(folder)
    sharp = json.loads(run("infer", folder, "--json"))["nodes"]
    blunt = json.loads(run("infer", folder, "--from", "counts", "--json"))["nodes"]
    assert np.mean([n["sd"] for n in sharp]) < np.mean([n["sd"] for n in blunt])


def test_plain_output_names_route_prior_and_interval(folder: Path) -> None:
    out = run("infer", folder, "--level", "0.9", "--interval", "central")
    assert "90% range" in out
    assert "published noisy counts, exact" in out
    assert "Prior: none (every other count any whole number" in " ".join(out.split())


def test_a_sampler_shows_its_diagnostics() -> None:
    out = json.loads(run(*PAPER.split(), "--method", "gibbs", "--json", "--seed", "1"))
    assert "R-hat" in out["diagnostics"]
    assert "effective sample size" in out["diagnostics"]


def test_labels_are_escaped_on_the_page() -> None:
    post = cw.infer_counts([3, 4], epsilon=1, total_epsilon=1, labels=["<b>x</b>", "y"])
    assert "<b>x</b>" not in posterior_page(post)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("infer", "give a release folder"),
        ("infer nowhere", "no release.json"),
        ("infer --counts 1,x --epsilon 1", "whole numbers"),
        ("infer --counts 1,2", "no epsilon"),
        ("infer --counts 1,2 --epsilon 0", "positive"),
        ("infer --counts 1,2 --total 4 --epsilon 1", "not to the total"),
        ("infer --counts 1,-2 --epsilon 1", "component 2"),
        ("infer --counts 1,2 --epsilon 1 --prior normal", "prior"),
        ("infer --counts 1,2 --epsilon 1 --level 2", "between 0 and 1"),
        ("infer --counts 1,2 --epsilon 1 --adjust least", "adjust must be"),
        ("infer --counts 1,2 --epsilon 1 --statement N1>N3", "no node"),
        ("infer --counts 1,2 --epsilon 1 --statement total>1e400", "too large"),
        ("infer --counts 1,2 --epsilon 1 --statement N1>0.00000000001*N2", "too many digits"),
        ("infer somewhere --from foo", "--from must be one of"),
        ("infer somewhere --method foo", "--method must be one of"),
        ("infer --counts 1,2 --epsilon 1 --prior negative-binomial:3", "mean and size"),
        ("infer somewhere --counts 1,2", "not both"),
        ("infer --counts 1,2 --epsilon 1 --out x.txt", "must end in .csv or .parquet"),
        ("infer --counts 1,2 --epsilon 1 --joint-mode x.txt", "must end in .csv or .parquet"),
        ("infer --counts 1,2 --epsilon 1 --draws-out x.txt", "must end in .npz"),
        ("infer pyproject.toml", "is a file"),
        ("infer --counts 1,2 --epsilon 1 --out pyproject.toml/x.csv", "is a file"),
    ],
)
def test_bad_input_is_refused_with_exit_code_2(words: str, message: str) -> None:
    result = CliRunner().invoke(app, [*words.split(), "--json"])
    assert isinstance(result.exception, CountwiseError)
    assert result.exception.exit_code == 2
    assert message in str(result.exception)


def damage_counts(folder: Path) -> None:
    frame = pl.read_parquet(folder / "counts.parquet")
    frame.with_columns(pl.col("count") + 1).write_parquet(folder / "counts.parquet")


def damage_version(folder: Path) -> None:
    manifest = json.loads((folder / "release.json").read_text())
    (folder / "release.json").write_text(json.dumps(manifest | {"format": 99}))


def remove_measurements(folder: Path) -> None:
    (folder / "measurements.parquet").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_counts, "changed after"),
        (damage_version, "format"),
        (remove_measurements, "missing"),
    ],
)
def test_damaged_releases_are_refused(folder: Path, damage: object, message: str) -> None:
    damage(folder)  # type: ignore[operator]
    result = CliRunner().invoke(app, ["infer", str(folder)])
    assert isinstance(result.exception, CountwiseError)
    assert result.exception.exit_code == 2
    assert message in str(result.exception)
