"""Hierarchies against dictionaries, files against refusals that say where and why."""

import copy
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from cases import HARD_CASES, Case, flat
from countwise.errors import TableError
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import build
from countwise.tables.noisy import read_noisy
from countwise.tables.reading import PublicCellsWarning, read_counts, read_domain

BY = ("region", "county")
GOOD = "region,county,n\nNorth,A,3\nNorth,B,0\nSouth,A,12\n"


def write(folder: Path, text: str | bytes, name: str = "cells.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path, **changes: object) -> Confidential:
    return read_counts(path, **({"by": BY, "count": "n", "cells_are_public": True} | changes))


@pytest.mark.parametrize("case", HARD_CASES, ids=lambda case: case.name)
def test_sums_paths_and_places_agree_with_a_dictionary(case: Case) -> None:
    hierarchy = case.hierarchy
    sums = hierarchy.sums(case.cells)
    depth = len(hierarchy.by)
    expected: list[Counter[tuple[str, ...]]] = [Counter() for _ in range(depth + 1)]
    cells = range(0, hierarchy.cells, max(hierarchy.cells // 500, 1))
    for level in range(depth + 1):
        assert len(sums[level]) == hierarchy.sizes[level]
        assert sums[level].sum() == case.cells.sum()
    if hierarchy.cells <= 500:
        for cell in cells:
            path = hierarchy.path(depth, cell)
            for level in range(depth + 1):
                expected[level][path[:level]] += int(case.cells[cell])
        for level in range(depth + 1):
            got = {hierarchy.path(level, i): int(v) for i, v in enumerate(sums[level])}
            assert got == dict(expected[level])
    for cell in cells:
        assert hierarchy.find(hierarchy.path(depth, cell)) == (depth, cell)


def test_row_order_leaves_no_trace() -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": ["x", "y", "x", "z"], "b": ["2", "1", "1", "9"]})
    first, order = build(frame)
    shuffled = rng.permutation(4)
    second, order2 = build(frame[shuffled])
    assert [first.path(2, i) for i in range(4)] == [second.path(2, i) for i in range(4)]
    np.testing.assert_array_equal(shuffled[order2], order)


def test_a_node_that_is_not_there_is_named() -> None:
    hierarchy, _ = build(pl.DataFrame({"a": ["x", "y"], "b": ["1", "2"]}))
    with pytest.raises(TableError, match=r"'x/2': level 'b' has no '2'"):
        hierarchy.find(("x", "2"))
    with pytest.raises(TableError, match="has no 'nowhere'"):
        hierarchy.find(("nowhere",))


def test_frames_are_empty_below_the_level() -> None:
    hierarchy, _ = build(pl.DataFrame({"a": ["x", "y"], "b": ["1", "2"]}))
    frame = hierarchy.frame(1, count=np.array([1, 2]))
    assert frame.rows() == [("x", None, "a", 1), ("y", None, "a", 2)]


def test_csv_and_parquet_hold_the_same_table(tmp_path: Path) -> None:
    csv = write(tmp_path, GOOD)
    parquet = tmp_path / "cells.parquet"
    pl.read_csv(csv).write_parquet(parquet)
    floats = tmp_path / "floats.parquet"
    pl.read_csv(csv).with_columns(pl.col("n").cast(pl.Float64)).write_parquet(floats)
    for path in (csv, parquet, floats):
        table = read(path)
        assert table.reveal().tolist() == [3, 0, 12]
        assert table.hierarchy.path(2, 1) == ("North", "B")


def test_cells_of_the_domain_without_a_row_are_zeros(tmp_path: Path) -> None:
    domain = write(tmp_path, "county,region\nB,South\nA,South\nA,North\nB,North\n", "domain.csv")
    table = read(write(tmp_path, GOOD), domain=domain, cells_are_public=None)
    assert table.hierarchy.labels == (("South", "North"), ("B", "A"))
    assert table.reveal().tolist() == [0, 12, 0, 3]


def test_the_list_of_cells_must_be_declared_public(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    with pytest.raises(TableError, match=r"list of cells must be public.*--domain"):
        read(path, cells_are_public=False)
    with pytest.warns(PublicCellsWarning, match="cells_are_public=True"):
        read(path, cells_are_public=None)


BAD = {
    "missing column": (GOOD.replace(",n\n", ",m\n"), r"no column 'n' among its 3\. To fix, check"),
    "no header": (GOOD.partition("\n")[2], r"no column 'region' among its 3\. To fix, check"),
    "capitals": (GOOD.replace("region,", "Region ,"), "differs from it in capitals or spaces"),
    "UTF-16 cut off": (GOOD.encode("utf-16")[:-1], r"not UTF-16"),
    "UTF-16 below the header": (
        GOOD.encode()[:16] + GOOD.encode("utf-16-le")[32:],
        r"row 2: column 'n'|row 5: level column 'county' is empty",
    ),
    "open quote": (GOOD.replace("North,B", 'North,"B'), r"row 3: a quotation mark is never closed"),
    "text behind a quote": (GOOD.replace("12", '"12"5'), r"row 4: a quotation mark is never"),
    "quotes over lines": (
        GOOD.replace("A,3", '"A,3').replace("B,0", 'B",0'),
        r"row 2: level column 'county' has a label of several lines",
    ),
    "too many fields": (GOOD.replace("A,3", "A,3,4"), r"row 2: has more fields than the first"),
    "other digits": (
        GOOD.replace("12", "\u0661\u0662"),
        r"row 4: column 'n' is not a whole number",
    ),
    "separated by spaces": (GOOD.replace(",", " "), r"no column 'region' among its 1\."),
    "withheld": (GOOD.replace("12", "<5"), r"row 4: column 'n' has a mark there in place of a"),
    "title": ("People of 2020\n\n" + GOOD, r"stand in line 3\. To fix, add --skip 2"),
    "thousands": (GOOD.replace("12", '"1,234"'), r"row 4: .*such as --thousands comma"),
    "three decimals": (GOOD.replace("12", "12.000"), r"row 4: .*such as --thousands comma"),
    "two spellings": (GOOD + "NORTH,C,1\n", r"'region' has two labels that differ in capitals"),
    "inner spaces": (
        GOOD.replace("A,3", "A  b,3").replace("B,0", "A b,0"),
        r"column 'county' has two labels that differ in capitals or spaces only: 'A  b' and 'A b'",
    ),
    "a total": (GOOD + "North,total,3\n", r"row 5: .*To fix, add --total-code total "),
    "empty file": ("", "is empty"),
    "no rows": ("region,county,n\n", "no rows"),
    "not whole": (GOOD.replace("12", "12.5"), r"row 4: column 'n' is not a whole number"),
    "words": (GOOD.replace("12", "many"), r"row 4: column 'n' is not a whole number"),
    "negative": (GOOD.replace(",0", ",-1"), r"row 3: column 'n' is negative"),
    "missing count": (GOOD.replace(",0", ","), r"row 3: column 'n' is missing"),
    "short row": (GOOD.replace("North,B,0", "North,B"), r"row 3: column 'n' is missing"),
    "overflow": (GOOD.replace("12", "9" * 30), r"row 4: column 'n' is larger than 10\^15"),
    "large": (GOOD.replace("12", "2" + "0" * 15), r"row 4: column 'n' is larger"),
    "large sum": (GOOD.replace("3", "9" * 15).replace("12", "9" * 15), "adds up to more"),
    "duplicate": (GOOD + "North,A,1\n", r"row 5: duplicate of the cell in row 2"),
    "ragged": (GOOD + "South,,1\n", r"row 5: level column 'county' is empty"),
    "not UTF-8": (GOOD.encode().replace(b"South", b"S\xfcd"), r"row 4: not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_with_their_place(name: str, tmp_path: Path) -> None:
    text, message = BAD[name]
    path = write(tmp_path, text)
    with pytest.raises(TableError, match=message) as refusal:
        read(path)
    assert str(path) in str(refusal.value)
    shown = str(refusal.value).removeprefix(str(path))
    public = {"North"} if "differ in capitals" in message else set()
    assert not {"12", "1,234", "North", "South"} - public & set(re.findall(r"\w+", shown)), (
        "no count and no label"
    )


def test_cells_outside_the_domain_are_refused_by_their_row(tmp_path: Path) -> None:
    domain = write(tmp_path, "region,county\nNorth,A\nNorth,B\n", "domain.csv")
    with pytest.raises(TableError, match=r"row 4: this cell is not in the domain"):
        read(write(tmp_path, GOOD), domain=domain)
    again = write(tmp_path, GOOD.replace("South", "North"), "again.csv")
    with pytest.raises(TableError, match=r"row 4: duplicate of the cell in row 2"):
        read(again, domain=domain)
    twice = write(tmp_path, "region,county\nNorth,A\nNorth,A\n", "twice.csv")
    with pytest.raises(TableError, match="duplicate of the cell in row 2"):
        read_domain(twice, by=BY)


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ((), "no level columns"),
        (("region", "region"), "named twice"),
        (("total", "county"), "can not be called 'total'"),
        (("region", "n"), "level and the count"),
    ],
)
def test_level_names_that_can_not_be(by: tuple[str, ...], message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        read(write(tmp_path, GOOD), by=by)


def test_parquet_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="can not be read"):
        read(write(tmp_path, "not parquet", "cells.parquet"))
    with pytest.raises(TableError, match="no such file"):
        read(tmp_path / "nowhere.csv")


def test_confidential_counts_do_not_show(tmp_path: Path) -> None:
    table = read(write(tmp_path, GOOD.replace("12", "98765")))
    assert repr(table) == str(table) == f"{table}" == "Confidential(1 total, 2 region, 3 county)"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy, Confidential.__getstate__):
        with pytest.raises(TypeError, match="can not be pickled"):
            leak(table)
    assert not hasattr(table, "__dict__")
    assert not table.reveal().flags.writeable


NO_COUNTS = {
    "fractions": (np.array([1.0, 2.75, 3.0]), "whole numbers, of an integer type"),
    "a list": ([1, 2, 3], "whole numbers, of an integer type"),
    "truth values": (np.array([True, False, True]), "whole numbers, of an integer type"),
    "negative": (np.array([1, -987, 3]), "negative or larger"),
    "too large": (np.array([1, 10**15 + 1, 3]), "negative or larger"),
    "too large for any": (np.array([1, 2**64 - 1, 3], dtype=np.uint64), "negative or larger"),
    "a sum too large": (np.array([9 * 10**14] * 3), "add up to more"),
    "too few": (np.array([1, 2]), "has 3 cells"),
    "two dimensions": (np.array([[1, 2, 3]]), "has 3 cells"),
}


@pytest.mark.parametrize("name", NO_COUNTS)
def test_only_whole_counts_within_range_are_confidential_counts(name: str) -> None:
    cells, message = NO_COUNTS[name]
    with pytest.raises(TableError, match=message) as refusal:
        Confidential(flat(3), cells)
    assert "987" not in str(refusal.value)


@pytest.mark.parametrize("kind", [np.uint8, np.int16, np.uint64])
def test_counts_of_any_integer_type_are_the_same_counts(kind: type[np.integer]) -> None:
    """Sums of narrow types would overflow unseen."""
    table = Confidential(flat(3), np.array([100, 90, 120], dtype=kind))
    assert table.reveal().dtype == np.int64
    assert table.level(0).reveal().tolist() == [310]


NOISY = "region,county,n\n,,14\nNorth,,5\nSouth,,9\nNorth,A,3\nNorth,B,-1\nSouth,A,12\n"


def test_noisy_counts_are_placed_by_their_labels(tmp_path: Path) -> None:
    lines = NOISY.splitlines()
    shuffled = "\n".join([lines[0], *reversed(lines[1:])])
    for text in (NOISY, shuffled):
        hierarchy, values = read_noisy(write(tmp_path, text), by=BY, noisy=["n"])
        assert [v.tolist() for v in values[0]] == [[14], [5, 9], [3, -1, 12]]
        assert hierarchy.sizes == (1, 2, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",,14\n", ""), "one row for the grand total"),
        (("South,,9\n", ""), "row 6: no row for the node above this cell at level 'region'"),
        (("South,,9\n", "South,,9\nSouth,,8\n"), "more than one row"),
        (("North,,5", ",A,5"), r"row 3: level column 'region' is empty while an inner"),
        (("South,A,12\n", ""), "has no cells below it"),
        (("-1", "x"), "not a whole number"),
    ],
)
def test_bad_noisy_tables(change: tuple[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=message):
        read_noisy(write(tmp_path, NOISY.replace(*change)), by=BY, noisy=["n"])
