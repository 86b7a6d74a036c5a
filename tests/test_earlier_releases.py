"""Folders that version 0.1.0 released, in its format: read, inferred from, converted, certified.

They lie in `fixtures`, each beside a file of what that version read from it itself.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.inference.subtree_posteriors import infer_by_pieces, write_one
from countwise.release.crossed_release import CrossedRelease
from countwise.release.large_release import read_large_release
from countwise.sumproduct.priors import read_prior

FOLDERS = Path(__file__).parent / "fixtures"
NAMES = sorted(path.name for path in FOLDERS.iterdir() if path.is_dir())
PIECES = ["parts", "pieces"]


def known(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDERS / f"{name}.json").read_text())
    return found


def flat(tables: Any) -> list[int]:
    return [int(x) for x in np.concatenate([np.ravel(each) for each in tables])]


def test_every_kind_of_noise_and_folder_is_there() -> None:
    laws = {law for name in NAMES for law, _ in known(name)["laws"]}
    assert laws == {"geometric", "laplace", "gaussian", "exact"}
    formats = [json.loads((FOLDERS / n / "release.json").read_text())["format"] for n in NAMES]
    assert sorted(formats) == [1] * 8 + [2]
    assert (FOLDERS / "parts" / "counts.parquet").is_dir()


@pytest.mark.parametrize("name", NAMES)
def test_counts_and_noise_are_read_as_they_were(name: str) -> None:
    made, expected = cw.read_release(FOLDERS / name), known(name)
    measured = made.measurements
    noisy = [m.noisy for m in measured] if isinstance(measured, tuple) else measured.noisy
    assert made.ranges is not None
    assert flat(made.counts) == expected["counts"]
    assert flat(noisy) == expected["noisy"]
    assert (flat(made.ranges.low), flat(made.ranges.high)) == (expected["low"], expected["high"])
    assert [[law.name, str(law.scale)] for law in made.budget.laws] == expected["laws"]
    assert made.method == expected["method"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_inferred_is_what_it_was(name: str) -> None:
    found = cw.infer(FOLDERS / name).table()["mean"].to_numpy()
    np.testing.assert_allclose(found, known(name)["mean"], atol=2e-6)


@pytest.mark.parametrize("name", PIECES)
def test_folders_of_large_tables_are_inferred_in_pieces(name: str, tmp_path: Path) -> None:
    large = read_large_release(FOLDERS / name, most=20)
    assert large is not None
    files = infer_by_pieces(large, tmp_path, prior=read_prior("none"))
    write_one(files, tmp_path / "posterior.parquet")
    rows = pl.read_parquet(tmp_path / "posterior.parquet")
    whole = cw.infer(FOLDERS / name).table()
    keys = [*large.by, "level"]
    both = rows.join(whole.cast(dict.fromkeys(keys, pl.String)), on=keys, nulls_equal=True)
    assert len(both) == whole.height
    np.testing.assert_allclose(both["mean"], both["mean_right"], atol=1e-6)


def test_the_prior_that_was_published_is_one_to_infer_with() -> None:
    made = cw.read_release(FOLDERS / "wide")
    assert not isinstance(made, CrossedRelease)
    assert made.prior is not None
    posterior = cw.infer(made, prior="published")
    assert (posterior.table()["mean"].to_numpy() >= 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("to", ["wide", "sdmx", "xlsx"])
def test_they_are_converted(name: str, to: str, tmp_path: Path) -> None:
    out = tmp_path / ("counts.xlsx" if to == "xlsx" else "counts.csv")
    done = CliRunner().invoke(app, ["convert", str(FOLDERS / name), "--to", to, "--out", str(out)])
    assert done.exit_code == 0, done.output
    if to == "sdmx":
        rows = pl.read_csv(out, infer_schema=False)
        assert [int(x) for x in rows["OBS_VALUE"]] == known(name)["counts"]
    assert out.stat().st_size


@pytest.mark.parametrize("name", NAMES)
def test_the_certificate_says_of_them_what_it_said(name: str) -> None:
    """The promise, how the loss adds up, and the noise of everything that was measured."""
    manifest = json.loads((FOLDERS / name / "release.json").read_text(encoding="utf-8"))
    measured = manifest.get("levels") or manifest["measured"]
    told = [manifest["privacy"]["sum"]]
    told += [f"{each.get('nodes') or each['counts']:,}" for each in measured]
    told += [each.get("level") or each["margin"] for each in measured]
    if "conditional" not in manifest["privacy"]:
        told += manifest["privacy"]["promise"].replace("^", "").split(". ")
    for page in (
        (FOLDERS / name / "certificate.html").read_text(encoding="utf-8"),
        cw.read_release(FOLDERS / name).certificate(),
    ):
        text = " ".join(html.unescape(re.sub("<[^>]*>", "", page)).split())
        assert not [words for words in told if words not in text]


@pytest.mark.parametrize("name", ["geometric", "parts"])
def test_a_folder_that_was_changed_is_refused(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    for path in (FOLDERS / name).rglob("*"):
        if path.is_file():
            target = folder / path.relative_to(FOLDERS / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    cw.read_release(folder)
    changed = next(path for path in sorted(folder.rglob("*.parquet")) if path.is_file())
    changed.write_bytes(changed.read_bytes() + b" ")
    with pytest.raises(cw.InputError, match="was changed after the release was made"):
        cw.read_release(folder)
