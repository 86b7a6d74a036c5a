"""Labels come in the order of the public domain, or by size, and never in that of a secret file."""

import warnings
from itertools import permutations
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

import countwise as cw
from countwise.errors import InputError, ReleaseError
from countwise.inference.node_names import find
from countwise.release.document import read_release
from countwise.tables.confidential import Confidential
from countwise.tables.crosstab import crosstab
from countwise.tables.domainfile import read_domain_file
from countwise.tables.hierarchy import build
from countwise.tables.order import natural
from countwise.tables.reading import read_counts, read_domain
from countwise.tables.tabulate import Tabulation, write_confidential_cells
from test_tabulate_refusals import call

ORDERED = [
    ["0", "1", "2", "10", "11", "100"],
    ["-5", "0", "2.5", "10"],
    ["0-4", "5-9", "10-14", "85+"],
    ["under 5", "5 to 9", "10 to 14", "15 and over"],
    ["Under 5", "5–9", "10–14", "15+", "unknown"],
    ["<1", "1", "2-9", "10", "10+"],
    ["0-17 years", "18-64 years", "65 years and over"],
    ["01003", "01005", "02001"],
    ["b", "c", "d", "e10", "e9"],
    ["A1", "A10", "A2"],
    ["x", "y", "z"],
]


@pytest.mark.parametrize("labels", ORDERED, ids=lambda labels: labels[0])
def test_numbers_and_ages_come_by_size_and_other_labels_by_text(labels: list[str]) -> None:
    rng = np.random.default_rng(3)
    shuffles = [rng.permutation(labels).tolist() for _ in range(20)]
    for given in [labels[::-1], sorted(labels), *shuffles]:
        series = pl.Series(given)
        assert series[natural(series)].to_list() == labels


def test_a_tree_is_the_same_whatever_the_order_of_its_rows() -> None:
    cells = pl.DataFrame({"place": ["b", "b", "a", "a"], "age": ["5-9", "10+", "0-4", "5-9"]})
    for order in permutations(range(4)):
        hierarchy, came_from = build(cells[list(order)])
        assert hierarchy.labels == (("a", "b"), ("0-4", "5-9", "10+"))
        assert [hierarchy.path(2, i) for i in range(4)] == [
            ("a", "0-4"), ("a", "5-9"), ("b", "5-9"), ("b", "10+")]  # fmt: skip
        assert [order[i] for i in came_from] == [2, 3, 0, 1]
        for i in range(4):
            assert hierarchy.find(hierarchy.path(2, i)) == (2, i)


DOMAIN = """[columns.sex]
levels = ["M", "F"]
[columns.school]
levels = ["primary", "lower secondary", "upper secondary", "tertiary"]
missing = "unknown"
"""
LEVELS = ("primary", "lower secondary", "upper secondary", "tertiary", "unknown")


def write_table(folder: Path) -> tuple[Path, Path]:
    table, domain = folder / "t.csv", folder / "d.toml"
    domain.write_text(DOMAIN)
    rows = [f"{sex},{level},{i}" for sex in "FM" for i, level in enumerate(sorted(LEVELS))]
    table.write_text("sex,school,n\n" + "\n".join(rows) + "\n")
    return table, domain


def test_the_order_of_a_domain_file_is_kept_everywhere(tmp_path: Path) -> None:
    table, domain = write_table(tmp_path)
    by = ("sex", "school")
    read = read_counts(table, by=by, count="n", domain=domain)
    assert read.hierarchy.labels == (("M", "F"), LEVELS)
    expected = [sorted(LEVELS).index(level) for level in LEVELS]
    assert read.reveal().tolist() == expected * 2
    done = call("release", "t.csv", "--by", "sex,school", "--count", "n", "--domain", "d.toml",
                "--epsilon", 500, "--out", "r", "--json", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = [("M", level) for level in LEVELS] + [("F", level) for level in LEVELS]
    text = (tmp_path / "r" / "counts.csv").read_text().splitlines()
    last = [tuple(line.split(",")[:2]) for line in text[-10:]]
    assert last == listed
    release = read_release(tmp_path / "r")
    assert release.hierarchy.labels == (("M", "F"), LEVELS)
    assert release.counts[-1].tolist() == expected * 2
    assert crosstab(release.hierarchy, release.counts[-1]).columns == ["sex", *LEVELS, "Total"]
    for name in ("r.xlsx", "post.csv"):
        verb = ("convert", "r", "-o", name) if name == "r.xlsx" else ("infer", "r", "--out", name)
        assert call(*verb, "--json", cwd=tmp_path).returncode == 0
    sheet = openpyxl.load_workbook(tmp_path / "r.xlsx")["Counts"]
    assert [tuple(row[:2]) for row in sheet.iter_rows(values_only=True)][-10:] == listed
    posterior = (tmp_path / "post.csv").read_text()
    places = [posterior.index(f",{level},") for level in LEVELS]
    assert places == sorted(places)


def test_lists_of_cells_come_as_listed_and_ages_by_size(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("place,age\nWest,10-14\nWest,5-9\nEast,0-4\nEast,5-9\nNorth,10-14\n")
    hierarchy = read_domain(path, by=("place", "age"))
    assert hierarchy.labels == (("West", "East", "North"), ("0-4", "5-9", "10-14"))
    assert read_domain_file(path, by=("place", "age")).hierarchy.labels == hierarchy.labels
    one = tmp_path / "one.csv"
    one.write_text("size\nsmall\nmedium\nlarge\n")
    assert read_domain(one, by=("size",)).labels == (("small", "medium", "large"),)


def test_the_order_of_a_confidential_file_leaves_no_trace(tmp_path: Path) -> None:
    rows = ["West,10,9", "West,9,3", "East,9,0", "East,100,7"]
    seen = set()
    for order in permutations(rows):
        path = tmp_path / "t.csv"
        path.write_text("place,age,n\n" + "\n".join(order) + "\n")
        table = read_counts(path, by=("place", "age"), count="n", cells_are_public=True)
        seen.add((table.hierarchy.labels, tuple(table.reveal().tolist())))
    assert seen == {((("East", "West"), ("9", "10", "100")), (0, 7, 3, 9))}


def test_releases_are_read_in_the_order_they_were_written_in(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    cells = pl.DataFrame({"a": pl.Series(["z", "z", "y"], dtype=pl.Enum(["z", "y"])),
                          "b": pl.Series(["2", "1", "1"], dtype=pl.Enum(["2", "1"]))})  # fmt: skip
    hierarchy, order = build(cells)
    assert order.tolist() == [0, 1, 2]
    made = cw.release(Confidential(hierarchy, rng.integers(50, size=3)), cw.Plan(epsilon=1))
    made.save(tmp_path / "r")
    back = read_release(tmp_path / "r")
    assert back.hierarchy.labels == (("z", "y"), ("2", "1"))
    for mine, theirs in zip(made.counts, back.counts, strict=True):
        assert mine.tolist() == theirs.tolist()


def test_names_with_spaces_and_files_of_a_release_are_told_how_to_be_written(
    tmp_path: Path,
) -> None:
    cells = pl.DataFrame({"a": ["Old Docks", "Harbour"]})
    made = cw.release(Confidential(build(cells)[0], np.array([5, 7])), cw.Plan(epsilon=1))
    made.save(tmp_path / "r")
    with pytest.raises(InputError, match='put a label with spaces in quotes: "Old Docks"'):
        find(made.hierarchy, "Old")
    with pytest.raises(ReleaseError, match=r"To fix, give the folder .*r\.$"):
        read_release(tmp_path / "r" / "counts.csv")


def test_tabulated_cells_keep_the_order_of_their_domain(tmp_path: Path) -> None:
    _, domain = write_table(tmp_path)
    people = tmp_path / "people.csv"
    people.write_text("sex,school\nF,tertiary\nM,primary\nM,\n")
    by = ("sex", "school")
    recipe = Tabulation(domain=read_domain_file(domain, by=by))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Ibis 12 on DuckDB 2
        write_confidential_cells(tmp_path / "c.parquet", people, recipe)
    for text, labels in (
        (False, (("M", "F"), LEVELS)),
        (True, (("F", "M"), tuple(sorted(LEVELS)))),
    ):
        if text:
            strings = pl.read_parquet(tmp_path / "c.parquet").with_columns(
                pl.col(by).cast(pl.String)
            )
            strings.write_parquet(tmp_path / "c.parquet")
        back = read_counts(tmp_path / "c.parquet", by=by, count="count", cells_are_public=True)
        assert back.hierarchy.labels == labels
        assert back.reveal().sum() == 3
