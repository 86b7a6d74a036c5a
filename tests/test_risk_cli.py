"""countwise risk end to end: results on standard output, refusals with exit code 2."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from countwise.cli import main
from countwise.examples import clinics

DOCUMENT = Path(__file__).parent.parent / "docs" / "risk.md"
NOISY = "a,b,noisy\n,,9\nx,,5\ny,,3\nx,1,-2\nx,2,7\ny,1,3\ny,2,-1\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    before, sys.argv = sys.argv, ["countwise", *words]
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = int(stop.code or 0)
    finally:
        sys.argv = before
    said = capsys.readouterr()
    return code, said.out, said.err


def result(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    code, out, _ = run(capsys, *words, "--json")
    assert code == 0
    return json.loads(out)


def test_losses(capsys: pytest.CaptureFixture[str]) -> None:
    data = result(capsys, "risk", "--histogram", "0,16", "--epsilon", "0.1")
    found = {each["estimator"]: each for each in data["estimators"]}
    assert set(found) == {"identity", "clipped", "resized", "noisefirst", "segmented"}
    assert found["clipped"]["expected_sse"] == pytest.approx(247.50690532138958, abs=1e-11)
    assert found["resized"]["expected_sse"] == pytest.approx(251.00036971994433, abs=1e-11)
    assert all(each["method"] == "closed" and each["error"] < 1e-12 for each in found.values())
    code, out, _ = run(capsys, "risk", "--histogram", "0,16", "--epsilon", "0.1")
    assert code == 0
    assert "247.506905321" in out


@pytest.mark.parametrize(
    ("words", "method"),
    [
        (("--histogram", "1,2,3", "--noise", "geometric"), "integration"),
        (("--histogram", "1,2,3,4,5,6", "--draws", "500"), "simulation"),
        (("--histogram", "5"), "closed"),
        (("--histogram", "5,1", "--noise", "laplace-rounded", "--draws", "500"), "simulation"),
    ],
)
def test_methods(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], method: str) -> None:
    data = result(capsys, "risk", *words)
    assert {each["method"] for each in data["estimators"]} == {method}


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("risk", "search", "--worse", "noisefirst", "--than", "identity")
    data = result(capsys, *words, "--counts", "0:100", "--epsilons", "0.1:3.0:0.1")
    assert data["points"] == 306_030
    assert data["counterexamples"] == 295_808
    assert data["proof"]["left"][0] > data["proof"]["right"][1]
    _, out, _ = run(capsys, *words, "--counts", "0:5", "--epsilons", "1")
    assert "Proven in ball arithmetic" in out
    more = result(capsys, *words, "--bins", "3", "--counts", "0:9", "--epsilons", "1")
    assert more["found"]
    assert more["error_probability"] == 1e-6


def test_certify(capsys: pytest.CaptureFixture[str]) -> None:
    data = result(capsys, "risk", "certify", "resized <= identity", "--bins", "2")
    assert (data["answer"], data["proof"], data["tolerance"]) == ("certified", "signs", 0)
    data = result(
        capsys, "risk", "certify", "resized <= clipped", "--histogram", "0,16", "--epsilon", "0.1"
    )
    assert data["answer"] == "refuted"
    assert data["counterexample"]["histogram"] == [0, 16]
    left = result(capsys, "risk", "certify", "noisefirst <= 1.29975*identity", "--boxes", "9")
    assert left["answer"] == "undecided"
    assert left["left"]
    assert len(result(capsys, "risk", "certify")) == 12
    code, out, _ = run(capsys, "risk", "certify")
    assert code == 0
    assert out.count("refuted") == 20
    assert out.count("certified") == 4
    assert "[bold]" not in out


def test_mechanisms_and_advice_write_pages(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "m.html"
    data = result(
        capsys,
        "risk",
        "mechanisms",
        "--epsilons",
        "0.5:1.5:0.5",
        "--draws",
        "9",
        "--out",
        str(page),
    )
    assert len(data) == 15
    assert page.read_text(encoding="utf-8").count('role="img"') == 2
    code, _, err = run(capsys, "risk", "mechanisms", "--epsilons", "1", "--out", str(page))
    assert code == 2
    assert "exists already" in err
    page = tmp_path / "a.html"
    words = ("--by", "region,clinic,diagnosis", "--count", "patients", "--epsilon", "1")
    advice = result(
        capsys, "risk", "advise", str(clinics()), *words, "--repetitions", "3", "--out", str(page)
    )
    assert "confidential" in advice["warning"]
    assert "confidential" in page.read_text(encoding="utf-8")
    overall = [each["overall"] for each in advice["options"]]
    assert overall == sorted(overall)
    code, out, _ = run(capsys, "risk", "advise", str(clinics()), *words, "--repetitions", "3")
    assert code == 0
    assert "made-up counts only" in out


@pytest.mark.parametrize("method", ["identity", "clipped", "resized", "noisefirst", "segmented"])
def test_adjust_takes_every_estimator(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, method: str
) -> None:
    table, file = tmp_path / "noisy.csv", tmp_path / "counts.csv"
    table.write_text(NOISY)
    words = ("--by", "a,b", "--epsilon", "3", "--method", method, "--out", str(file))
    result(capsys, "adjust", str(table), *words)
    made = pl.read_csv(file)
    counts = {row[2:3][0]: [] for row in made.rows()}
    for *_, level, count in made.rows():
        counts[level].append(count)
    assert counts["total"][0] == sum(counts["a"]) == sum(counts["b"])
    if method == "identity":
        assert counts["b"] == [-2, 7, 3, -1]
    else:
        assert min(counts["b"]) >= 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--json",), "no histogram"),
        (("--histogram=",), "at least one bin"),
        (("--histogram", "1,nan"), "not a number"),
        (("--histogram", "1,-2"), "0 or more"),
        (("--histogram", "1,1e400"), "10^15"),
        (("--histogram", "1,2", "--epsilon", "0"), "must be positive"),
        (("--histogram", "1,2", "--epsilon", "nan"), "positive decimal"),
        (("--histogram", "1,2", "--epsilon", "1000"), "from 1e-06 to 500"),
        (("--histogram", "1,2", "--noise", "pink"), "laplace, geometric"),
        (("--histogram", "1,2", "--method", "magic"), "auto, closed, integration, simulation"),
        (("--histogram", "1,2,3,4", "--method", "closed"), "one or two bins"),
        (("--histogram", "1,2,3,4", "--method", "integration"), "two or three bins"),
        (("--histogram", "1.5,2", "--noise", "geometric"), "must be whole"),
        (("search", "--worse", "nosefirst", "--than", "identity"), "Did you mean 'noisefirst'"),
        (("search", "--worse", "clipped", "--than", "identity", "--bins", "0"), "1 or more"),
        (("search", "--worse", "clipped", "--than", "identity", "--epsilons", "0:1"), "positive"),
        (("search", "--worse", "clipped", "--than", "identity", "--counts", "5:1"), "upwards"),
        (("search", "--worse", "clipped", "--than", "identity", "--counts", "0.5"), "whole"),
        (
            ("search", "--worse", "clipped", "--than", "identity", "--counts", "1:2:3:4"),
            "start:stop",
        ),
        (("search", "--worse", "clipped", "--than", "identity", "--counts", ","), "no number"),
        (("certify", "resized > identity"), "resized <= identity"),
        (("certify", "resized <= median"), "identity, clipped, resized"),
        (("certify", "resized <= identity", "--bins", "3"), "two bins"),
        (("certify", "resized <= identity", "--tolerance", "nan"), "must be positive"),
        (("certify", "resized <= clipped", "--histogram", "1,2,3"), "two counts"),
        (("mechanisms", "--epsilons", "x"), "not a number"),
        (("mechanisms", "--epsilons", "1", "--delta", "2"), "between 0 and 1"),
        (("mechanisms", "--epsilons", "0.0001"), "0.001 or more"),
        (("advise", "nowhere.csv", "--by", "a", "--epsilon", "1"), "no such file"),
        (("advise", "nowhere.csv", "--by", "a"), "no epsilon"),
    ],
)
def test_bad_input(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], says: str) -> None:
    code, out, err = run(capsys, "risk", *words)
    assert code == 2
    assert says in err
    assert out == ""


EXAMPLES = [
    shlex.split(line)[1:]
    for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
    if line.startswith("    countwise risk") and "advise" not in line
]


@pytest.mark.parametrize("words", EXAMPLES, ids=" ".join)
def test_examples_of_the_document(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert out
    assert len(EXAMPLES) == 7


def test_identity_is_refused_in_a_release(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ("--by", "region,clinic,diagnosis", "--count", "patients", "--epsilon", "1")
    code, _, err = run(
        capsys,
        *("release", str(clinics()), *words, "--cells-are-public", "--adjust", "identity"),
        *("--out", str(tmp_path / "made")),
    )
    assert code == 2
    assert "negative counts" in err


def test_names_are_not_broken_on_a_narrow_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("countwise.cli.console.out.width", 80)
    _, out, _ = run(capsys, "risk", "mechanisms", "--epsilons", "1", "--draws", "5")
    for name in ("laplace-rounded", "gaussian-delta", "gaussian-rho"):
        assert name in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_of_risk_are_written_as_their_names_end(
    ending: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    read = pl.read_csv if ending == "csv" else pl.read_parquet
    file = tmp_path / f"m.{ending}"
    data = result(
        capsys, "risk", "mechanisms", "--epsilons", "1", "--draws", "5", "--out", str(file)
    )
    table = read(file)
    assert table["mechanism"].to_list() == [each["mechanism"] for each in data]
    assert table["variance"].to_list() == pytest.approx([each["variance"] for each in data])
    file = tmp_path / f"a.{ending}"
    how = ("--by", "region,clinic,diagnosis", "--count", "patients", "--epsilon", "1")
    ranked = result(capsys, "risk", "advise", str(clinics()), *how, "--repetitions", "3",
                    "--out", str(file))["options"]  # fmt: skip
    assert read(file)["adjustment"].to_list() == [each["adjustment"] for each in ranked]
    assert "rmse_clinic" in read(file).columns


def test_other_endings_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, said = run(
        capsys, "risk", "mechanisms", "--epsilons", "1", "--out", str(tmp_path / "m.pdf")
    )
    assert code == 2
    assert "must end in .html or .htm or .csv or .parquet" in said
    assert not list(tmp_path.iterdir())
