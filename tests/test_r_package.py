"""The R package, installed and run by R: the numbers are those of the library."""

import csv
import shutil
import subprocess
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.front_door.output_files import write_draws
from countwise.inference.crossed_posterior import CrossedPosterior, crossed_posterior
from countwise.tables.workload import Margin
from needs import needs

PACKAGE = Path(__file__).parents[1] / "r"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed."""
    found = shutil.which("Rscript")
    needs(found is not None, "R (Debian's package r-base-core)")
    able = subprocess.run(
        ["Rscript", "-e", "library(jsonlite)"], check=False, capture_output=True
    ).returncode
    needs(able == 0, "jsonlite of R (Debian's package r-cran-jsonlite)")
    folder = tmp_path_factory.mktemp("library")
    done = subprocess.run(
        ["R", "CMD", "INSTALL", "--no-test-load", f"--library={folder}", str(PACKAGE)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def r(library: Path, code: str) -> subprocess.CompletedProcess[str]:
    program = f'options(digits = 15); library(countwise, lib.loc = "{library}")\n{code}'
    return subprocess.run(
        ["Rscript", "--vanilla", "-e", program], check=False, capture_output=True, text=True
    )


def rows(library: Path, code: str) -> list[dict[str, str]]:
    """What a data frame of R has, as CSV."""
    done = r(library, f"write.csv({code}, row.names = FALSE)")
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(StringIO(done.stdout)))


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cells = [
        (*place, *age, sex, 40 * i + 9 * j + k)
        for i, place in enumerate([("N", "a"), ("N", "b"), ("S", "c"), ("S", "b")])
        for j, age in enumerate([("young", "0-9"), ("young", "10-19"), ("old", "65+")])
        for k, sex in enumerate("fm")
    ]
    frame = pl.DataFrame(cells, ["state", "county", "band", "year", "sex", "n"], orient="row")
    across = {"age": ["band", "year"], "sex": ["sex"]}
    by = ("state", "county")
    table = cw.read_counts(frame, by=by, across=across, count="n", cells_are_public=True)
    plan = cw.Plan(by=by, across=across, tables="county*year, state*sex", rho="0.5")
    folder = tmp_path_factory.mktemp("releases") / "crossed"
    cw.release(table, plan).save(folder)
    return folder


def test_sums_have_the_counts_and_errors_of_the_library(library: Path, crossed: Path) -> None:
    release = cw.read_release(crossed)
    assert isinstance(release, cw.CrossedRelease)
    post = cw.infer(release)
    assert isinstance(post, CrossedPosterior)
    named = {
        'county = c("a", "c"), year = "65+"': {"county": ["a", "c"], "year": "65+"},
        'sex = "f"': {"sex": "f"},
        'state = "S", county = "b"': {"state": "S", "county": "b"},
        'age = "*9"': {"age": "*9"},
        "": {},
    }
    for said, labels in named.items():
        comma = ", " if said else ""
        code = f'sum_counts(read_release("{crossed}"){comma}{said})'
        (found,) = rows(library, code)
        asked = post.sum(**labels) if labels else post.sum("total")
        assert float(found["se"]) == pytest.approx(asked.sd, rel=1e-5)
        assert 0 <= float(found["low"]) <= float(found["high"])
    (two,) = rows(library, f'sum_counts(read_release("{crossed}"), county = c("a", "c"))')
    margin = release.workload.find("county")
    counts = release.counts[release.workload.margins.index(margin)].reshape(-1)
    assert int(two["count"]) == counts[0] + counts[3]


def test_ranges_are_those_of_the_folder(library: Path, crossed: Path) -> None:
    found = rows(library, f'ranges(read_release("{crossed}"), "state*sex")')
    release = cw.read_release(crossed)
    table = release.table().filter(level="state*sex")
    assert [int(each["low"]) for each in found] == table["low"].to_list()
    assert [int(each["high"]) for each in found] == table["high"].to_list()
    assert [each["county"] for each in found] == ["NA"] * len(table)


@pytest.mark.parametrize("mechanism", ["geometric", "laplace"])
def test_a_tree_is_read_too(library: Path, tmp_path: Path, mechanism: str) -> None:
    frame = pl.DataFrame({"region": ["N", "N", "S"], "age": ["x", "y", "x"], "n": [5, 0, 44]})
    table = cw.read_counts(frame, by=("region", "age"), count="n", cells_are_public=True)
    release = cw.release(table, cw.Plan(by=("region", "age"), epsilon=1, mechanism=mechanism))
    release.save(tmp_path / "tree")
    (found,) = rows(library, f'sum_counts(read_release("{tmp_path}/tree"), region = "N")')
    assert float(found["se"]) == pytest.approx(crossed_posterior(release).sum("region=N").sd)


def test_draws_of_a_file_are_added_up(library: Path, crossed: Path, tmp_path: Path) -> None:
    release = cw.read_release(crossed)
    assert isinstance(release, cw.CrossedRelease)
    draws = cw.infer(release).draws(12, rng=np.random.default_rng(1))
    write_draws(draws, draws.prior, tmp_path / "draws.csv", overwrite=False)
    code = f'draw_sums(read_draws("{tmp_path}/draws.csv"), state = "N", sex = "f")'
    found = [float(each["x"]) for each in rows(library, code)]
    assert found == draws["state=N, sex=f"].tolist()
    finest = Margin((1, 0, 1))
    assert found == draws.margin(finest)[:, 0, 0, 0].tolist()


def test_all_else_is_asked_of_the_command(library: Path, crossed: Path) -> None:
    command = f'options(countwise.command = c("{sys.executable}", "-m", "countwise"))'
    asked = f'infer("{crossed}", sums = c("sex=f", "year=65+"), statements = "sex=f > sex=m")'
    done = r(library, f"{command}; x <- {asked}; cat(x$sums$mean, x$statements$probability)")
    assert done.returncode == 0, done.stderr
    first, second, chance = map(float, done.stdout.split())
    post = cw.infer(cw.read_release(crossed))
    assert isinstance(post, CrossedPosterior)
    assert [first, second] == pytest.approx([post.sum("sex=f").mean, post.sum("year=65+").mean])
    assert chance == pytest.approx(post.probability("sex=f > sex=m"))
    done = r(library, f'{command}; infer("{crossed}", sums = "sex=x")')
    assert done.returncode != 0
    assert "has no 'x'" in done.stderr


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ('read_release("nowhere")', "no release.json"),
        ('sum_counts(read_release(folder), town = "a")', "no level 'town'"),
        ('sum_counts(read_release(folder), county = "z")', "has no 'z'"),
        ('sum_counts(read_release(folder), state = "N", county = "c")', "no count has all"),
        ('sum_counts(read_release(folder), year = "65+", sex = "f")', "no published table"),
        ('ranges(read_release(folder), "year*sex")', "no table 'year\\*sex'"),
        ('read_draws(file.path(folder, "counts.csv"))', "no columns draw_1"),
    ],
)
def test_what_is_wrong_is_said(library: Path, crossed: Path, code: str, message: str) -> None:
    done = r(library, f'folder <- "{crossed}"; {code}')
    assert done.returncode != 0
    assert message.replace("\\*", "*") in " ".join(done.stderr.split())
