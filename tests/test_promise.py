"""What is promised where some counts are exact: in words, facts, files and commands."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

import countwise as cw
from cases import tree
from countwise.release.promise import Promise, make_promise
from countwise.release.workbook import write_workbook
from countwise.tables.confidential import Confidential
from test_cli import run

ALL = "no possible release becomes more than"
WITHIN = "had they been counted elsewhere within the same exact counts"


def promise(**plan: Any) -> Promise:
    made = cw.Plan(**({"epsilon": "0.5", "split": "even"} | plan))
    return make_promise(made.neighbours, made.budget(tree(2, 2)))


def test_without_exact_counts_it_is_unconditional() -> None:
    found = promise()
    assert not found.conditional
    assert found.sentences().startswith("Whether or not any one person is in the records, no poss")
    assert "e^0.5 ≈ 1.65 times" in found.sentences()
    assert found.facts() == [("Privacy loss in all", "ε = 0.5")]
    assert found.to_dict() == {"promise": found.sentences()}


def test_an_exact_total_takes_the_place_of_the_promise() -> None:
    """Nobody may come or go; a move below the total costs twice what was spent."""
    found = promise(exact=["total"])
    words = found.sentences()
    assert "Whether or not" not in words
    assert ALL not in words
    assert "Everyone is counted in the exact total" in words
    assert f"{WITHIN}, no possible release would have become more than e^1 ≈ 2.72" in words
    assert found.facts() == [
        ("Exact counts, not protected", "1"),
        ("Privacy loss within the exact counts", "ε = 1"),
    ]
    assert found.to_dict()["conditional"] == {
        "exact_counts": 1,
        "outside": None,
        "within": {"epsilon": "1"},
    }


def test_exact_counts_of_some_leave_the_others_as_they_were() -> None:
    found = promise(exact=["l0=00000"])
    assert "counted in no exact count is in the records, no possible release becomes more than" in (
        found.sentences()
    )
    assert f"{WITHIN}, no possible release would have become more than e^1" in found.sentences()
    assert [who for who, _ in found.facts()] == [
        "Exact counts, not protected",
        "Privacy loss of who is in no exact count",
        "Privacy loss within the exact counts",
    ]
    assert found.to_dict()["conditional"]["outside"] == {"epsilon": "0.5"}


def test_replacing_someone_within_exact_counts_costs_what_is_stated() -> None:
    found = promise(exact=["total"], neighbours="replace-one")
    assert found.within == found.stated
    assert "another who is counted in the same exact counts, no possible release becomes" in (
        found.sentences()
    )
    assert "2 counts" not in found.sentences()


def test_cells_that_can_only_be_zero_do_not_limit_it() -> None:
    found = promise(zeros=["l0=00000,l1=00001"])
    assert not found.conditional
    assert found.sentences().startswith("Whether or not any one person")
    assert "can only be zero" in found.sentences()
    both = promise(zeros=["l0=00000,l1=00001"], exact=["l0=00001"])
    assert both.exact == 1, "zeros are not among the counts that people are in"


def test_gaussian_noise_says_what_epsilon_and_delta_mean() -> None:
    found = promise(epsilon=None, rho="0.5", mechanism="gaussian")
    assert "any set of releases becomes at most e^4.840 times likelier, plus 1e-06" in (
        found.sentences()
    )
    assert "apart from" not in found.sentences()
    conditional = promise(epsilon=None, rho="0.5", mechanism="gaussian", exact=["total"])
    within = conditional.to_dict()["conditional"]["within"]
    assert within["rho"] == "1"
    assert within["epsilon_of_noise"] == pytest.approx(7.327, abs=1e-3)


@pytest.mark.parametrize("unit", [{"epsilon": "0.5"}, {"rho": "0.5", "mechanism": "gaussian"}])
def test_page_workbook_and_manifest_say_the_same(unit: dict[str, str], tmp_path: Path) -> None:
    table = Confidential(tree(2, 2), np.array([5, 6, 7, 8]))
    release = cw.release(table, cw.Plan(**unit, exact=["total"]))  # type: ignore[arg-type]
    release.save(tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "release.json").read_text())["privacy"]
    assert manifest["promise"] == manifest["given"]
    assert manifest["conditional"]["exact_counts"] == 1
    page = (tmp_path / "r" / "certificate.html").read_text()
    assert "Whether or not any one person" not in page
    assert "<dt>Privacy loss in all</dt>" not in page
    assert "<dt>Privacy loss within the exact counts</dt>" in page
    assert WITHIN in page
    write_workbook(release, tmp_path / "r.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx")["Certificate"]
    text = [str(cell) for row in sheet.iter_rows(values_only=True) for cell in row if cell]
    assert "Privacy loss within the exact counts" in text
    words = make_promise("add-remove", release.budget).paragraphs()
    assert " ".join(words) == manifest["promise"]
    assert set(words) <= set(text), "the workbook has the same sentences"
    assert cw.read_release(tmp_path / "r").budget.levels == release.budget.levels


def test_commands_show_it(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("a,b,n\nx,p,3\nx,q,4\ny,p,5\ny,q,6\n")
    flags = ("cells.csv", "--by", "a,b", "--rho", "0.5", "--split", "even")
    planned = run("plan", *flags, "--exact", "total", "--json", cwd=tmp_path)
    data = json.loads(planned.stdout)
    assert data["conditional"]["within"]["rho"] == "1"
    assert data["epsilon_of_noise"] < 5
    shown = run("plan", *flags, cwd=tmp_path)
    assert "Privacy loss ρ = 0.5 (ε = 4.840 at δ = 1e-06; 5.222 from ρ alone)" in shown.stdout
    exact = run("plan", *flags, "--exact", "total", cwd=tmp_path).stdout
    assert "Spent on noise: ρ = 0.5 " in exact
    assert "Privacy loss" not in exact
    made = run("release", *flags, "--exact", "total", "--count", "n", "--cells-are-public",
               "--out", "r", "--json", cwd=tmp_path)  # fmt: skip
    assert json.loads(made.stdout)["privacy"]["conditional"] == data["conditional"]
