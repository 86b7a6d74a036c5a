"""The posterior of a release in pieces is that of the whole tree."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.errors import InputError, ReleaseError
from countwise.inference.subtree_posteriors import infer_by_pieces
from countwise.release.large_release import read_large_release
from countwise.sumproduct.priors import read_prior
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import build

BY = ("region", "county", "kind")


PLAN = cw.Plan(epsilon=2, by=BY, mechanism="geometric", split="even")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uneven tree whose counts disagree with their totals here and there."""
    rng = np.random.default_rng(4)
    rows = [
        (f"r{r}", f"c{c}", f"k{k}")
        for r in range(4)
        for c in range(1 + 2 * r)
        for k in range(int(rng.integers(1, 9)))
    ]
    hierarchy, _ = build(pl.DataFrame(rows, schema=list(BY), orient="row"))
    cells = rng.negative_binomial(0.5, 0.05, hierarchy.cells)
    folder = tmp_path_factory.mktemp("large") / "release"
    cw.release(Confidential(hierarchy, cells), PLAN).save(folder)
    return folder


def rows(frame: pl.DataFrame) -> pl.DataFrame:
    names = [*BY, "level"]
    return frame.with_columns(pl.col(names).cast(pl.String)).sort(names)


@pytest.mark.parametrize(
    "prior", ["none", "nested", "uniform", "uniform:40", "poisson:8", "compositions"]
)
@pytest.mark.parametrize("most", [10, 30])
def test_pieces_say_what_the_whole_says(
    released: Path, prior: str, most: int, tmp_path: Path
) -> None:
    release = read_large_release(released, most=most)
    assert release is not None
    assert len(release.cut) > 2
    files = infer_by_pieces(release, tmp_path, prior=read_prior(prior), interval="central")
    got = rows(pl.concat([pl.read_parquet(path) for path in files]))
    expected = rows(cw.infer(released, prior=prior).table(interval="central"))
    assert got.columns == expected.columns
    for name in (*BY, "level", "released", "mode", "lower", "upper"):
        assert got[name].to_list() == expected[name].to_list(), name
    for name in ("mean", "sd", "probability"):
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-9, atol=1e-9)


def test_windows_grow_where_parts_and_totals_disagree(tmp_path: Path) -> None:
    """A total far from the sum of its parts: the posterior lies where no window was at first."""
    hierarchy, _ = build(pl.DataFrame({"a": ["x", "x", "y", "y"], "b": ["1", "2", "1", "2"]}))
    release = cw.release(
        Confidential(hierarchy, np.array([5, 5, 5, 5])),
        cw.Plan(epsilon=30, by=("a", "b"), mechanism="geometric", split="even"),
    )
    noisy = (np.array([29]), np.array([19, 10]), np.array([5, 5, 5, 5]))
    measurements = replace(release.measurements, noisy=noisy)
    replace(release, measurements=measurements).save(tmp_path / "release")
    large = read_large_release(tmp_path / "release", most=2)
    assert large is not None
    (tmp_path / "parts").mkdir()
    files = infer_by_pieces(large, tmp_path / "parts", prior=read_prior("uniform"))
    got = pl.concat([pl.read_parquet(path) for path in files]).sort("a", "b", nulls_last=True)
    expected = cw.infer(tmp_path / "release").table()
    order = expected.with_columns(pl.col("a", "b").cast(pl.String)).sort("a", "b", nulls_last=True)
    np.testing.assert_allclose(got["mean"], order["mean"], rtol=1e-8)
    np.testing.assert_allclose(got["sd"], order["sd"], rtol=1e-6)


def test_the_command_writes_large_posteriors_and_refuses_the_rest(
    released: Path, tmp_path: Path
) -> None:
    def run(*more: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "countwise", "infer", released, "--piece", 10, *more]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)

    done = run("--out", tmp_path / "posterior.parquet", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["pieces"] > 2
    table = pl.read_parquet(tmp_path / "posterior.parquet")
    assert len(table) == json.loads(done.stdout)["nodes"]
    refused = run("--out", tmp_path / "p.csv", "--page", tmp_path / "page.html")
    assert refused.returncode == 2
    assert "--page needs all of it" in refused.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "posterior.parquet"]


def test_priors_and_folders_that_do_not_fit_are_refused(released: Path, tmp_path: Path) -> None:
    release = read_large_release(released, most=10)
    assert release is not None
    with pytest.raises(InputError, match="same prior for every"):
        infer_by_pieces(release, tmp_path, prior=read_prior("shares:0.4,0.6"))
    assert read_large_release(released, most=10**6) is None
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in released.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    (changed / "counts.csv").write_text("nothing")
    with pytest.raises(ReleaseError, match="was changed after the release"):
        read_large_release(changed, most=10)
