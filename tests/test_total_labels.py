"""Totals are told by their labels and never counted as people."""

from pathlib import Path

import numpy as np
import pytest

import countwise as cw
from countwise.errors import TableError
from countwise.tables.domainfile import read_domain_file
from countwise.tables.labels import total_labels
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_domain
from countwise.tables.rowchecks import refuse_bad_rows
from test_tabulate_refusals import call

BY = ("area", "sex")
LONG = "area,sex,n\nA,F,3\nA,M,0\nB,F,12\nB,M,7\n"


def read(folder: Path, text: str, **how: object) -> list[int]:
    path = folder / "table.csv"
    path.write_text(text)
    given = {"by": BY, "count": "n", "cells_are_public": True, "loader": Layout(**how)}
    return cw.read_counts(path, **given).reveal().tolist()


@pytest.mark.parametrize(
    "label",
    ["Total", "TOTAL", "total ", "All", "all", "Sum", "_T", "_t", "Insgesamt", "Totalt", "sex",
     "SEX", "Grand  Total", "Both sexes", "Ogółem", "合計"],
)  # fmt: skip
def test_a_name_of_totals_is_refused_in_any_spelling(label: str, tmp_path: Path) -> None:
    text = LONG + f"A,{label},3\n"
    with pytest.raises(TableError, match=r"row 6: level 'sex' has the label") as refusal:
        read(tmp_path, text)
    code = label.strip()
    assert f"--total-code {code} " in str(refusal.value) or f'"{code}"' in str(refusal.value)
    assert read(tmp_path, text, totals={"sex": code}) == [3, 0, 12, 7], "as the message says"
    assert len(read(tmp_path, text, no_totals=True)) == 5
    with pytest.raises(TableError, match="row 6: this total is not the sum of its cells"):
        read(tmp_path, text.replace("A,F,3", "A,F,4"), totals={"sex": code})


@pytest.mark.parametrize("label", ["Totality", "Allentown", "Sumner", "T", "Alle Farben", "Ball"])
def test_other_labels_are_labels(label: str, tmp_path: Path) -> None:
    assert len(read(tmp_path, LONG + f"A,{label},3\n")) == 5


def test_what_is_said_is_the_same_whatever_the_counts(tmp_path: Path) -> None:
    """A column that is the sum of the others is one like them unless its label says otherwise."""
    said = set()
    for total in (3, 4, 10**9):
        with pytest.raises(TableError) as refusal:
            read(tmp_path, LONG + f"A,Total,{total}\n")
        said.add(str(refusal.value))
    assert len(said) == 1
    assert read(tmp_path, "area,F,M,Z\nA,3,1,4\nB,2,2,4\n", kind="wide") == [3, 1, 4, 2, 2, 4]


def test_totals_of_a_wide_table(tmp_path: Path) -> None:
    wide = "area,F,M,Total\nA,3,0,3\nB,12,7,19\nAll,15,7,22\n"
    with pytest.raises(TableError, match="add --total-code area=All,sex=Total "):
        read(tmp_path, wide, kind="wide")
    totals = {"area": "All", "sex": "Total"}
    assert read(tmp_path, wide, kind="wide", totals=totals) == [3, 0, 12, 7]
    with pytest.raises(TableError, match="row 3, column 4: this total is not the sum"):
        read(tmp_path, wide.replace("19", "18"), kind="wide", totals=totals)


def test_totals_of_sdmx_have_codes_of_their_own(tmp_path: Path) -> None:
    sdmx = "DATAFLOW,area,sex,OBS_VALUE\n" + "".join(
        f"X:Y(1.0),{line}\n" for line in ("A,F,3", "A,M,2", "A,T,5", "_T,T,5")
    )
    with pytest.raises(TableError, match=r"row 4: level 'sex' has the label 'T'.*--total-code T "):
        read(tmp_path, sdmx, kind="sdmx")
    assert read(tmp_path, sdmx, kind="sdmx", totals={"sex": "T"}) == [3, 2]


def test_totals_among_public_cells(tmp_path: Path) -> None:
    cells = tmp_path / "cells.csv"
    cells.write_text("area,sex\nA,F\nA,M\nTotal,F\n")
    with pytest.raises(TableError, match=r"cells.csv: level 'area' has the label 'Total'"):
        read_domain(cells, by=BY)
    assert read_domain(cells, by=BY, layout=Layout(no_totals=True)).cells == 3
    with pytest.raises(TableError, match="has the label 'Total'"):
        read_domain_file(cells, by=BY)
    toml = tmp_path / "domain.toml"
    text = '[columns.area]\nlevels = ["A", "All"]\n[columns.sex]\nlevels = ["F"]\n'
    toml.write_text(text)
    with pytest.raises(TableError, match="no_totals = true at the top of a domain file"):
        read_domain_file(toml, by=BY)
    toml.write_text("no_totals = true\n" + text)
    assert read_domain_file(toml, by=BY).size == 2
    toml.write_text('no_totals = "yes"\n' + text)
    with pytest.raises(TableError, match="no_totals must be true or false"):
        read_domain_file(toml, by=BY)


def test_totals_of_tables_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(LONG + "A,Total,3\n")
    with pytest.raises(TableError, match="has the label 'Total', a name of totals"):
        refuse_bad_rows(path, BY, "n")
    refuse_bad_rows(path, BY, "n", no_totals=True)


def test_the_command_follows_its_own_advice(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(LONG + "A,Total,3\nTotal,Total,22\n")
    release = ("release", "table.csv", "--by", "area,sex", "--count", "n", "--epsilon", 500,
               "--cells-are-public", "--out", "r", "--json")  # fmt: skip
    done = call(*release, cwd=tmp_path)
    assert done.returncode == 2
    assert not (tmp_path / "r").exists()
    words = done.stderr.split()
    advice = words[words.index("--total-code") : words.index("--total-code") + 2]
    assert advice == ["--total-code", "Total"]
    done = call(*release, *advice, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert cw.read_release(tmp_path / "r").counts[0].tolist() == [22]
    plan = ("plan", "table.csv", "--by", "area,sex", "--epsilon", 1, "--count", "n", "--json")
    assert "--total-code Total" in call(*plan, cwd=tmp_path).stderr
    assert call(*plan, *advice, cwd=tmp_path).returncode == 0


def test_labels_are_judged_by_level() -> None:
    labels = {"sex": ["F", "Sex", None, ""], "age": ["Sex", "0"]}
    assert total_labels(labels) == {"sex": ["Sex"]}
    assert np.array(list(total_labels({"a": []}))).size == 0
