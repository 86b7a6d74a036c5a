"""Formats of agencies: hierarchy files, total rows, cross-tables, SDMX-CSV and Excel."""

import json
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import pytest

import countwise as cw
from cases import HARD_CASES, Case
from countwise.errors import InputError, TableError
from countwise.release import workbook
from countwise.release.document import read_release
from countwise.tables.confidential import Confidential
from countwise.tables.crosstab import crosstab
from countwise.tables.domainfile import read_domain_file
from countwise.tables.hierarchy import build
from countwise.tables.hrc import read_hrc
from countwise.tables.layouts import Layout
from countwise.tables.sdmx import sdmx
from test_tabulate_refusals import call

BY = ("area", "sex")
LONG = "area,sex,n\nA,F,3\nA,M,0\nB,F,12\nB,M,7\n"
TOTALS = LONG + "A,Total,3\nB,Total,19\nTotal,F,15\nTotal,M,7\nTotal,Total,22\n"
WIDE = "area,F,M,Total\nA,3,0,3\nB,12,7,19\nTotal,15,7,22\n"
SDMX_1 = (
    "DATAFLOW,area,FREQ,sex,OBS_VALUE,OBS_STATUS\nX:Y(1.0),A,A,F,3,A\nX:Y(1.0),A,A,M,0,A\n"
    "X:Y(1.0),B,A,F,12,A\nX:Y(1.0),B,A,M,7,A\nX:Y(1.0),B,A,_T,19,A\nX:Y(1.0),_T,A,_T,22,A\n"
)
SDMX_2 = (
    "STRUCTURE,STRUCTURE_ID,ACTION,area: Place,sex: Sex,OBS_VALUE: Persons\n"
    "dataflow,X:Y(1.0),I,A: Alpha,F: Female,3\ndataflow,X:Y(1.0),I,A: Alpha,M: Male,0\n"
    "dataflow,X:Y(1.0),I,B: Beta,F: Female,12\ndataflow,X:Y(1.0),I,B: Beta,M: Male,7\n"
    "dataflow,X:Y(1.0),I,_T: Total,_T: Total,22\n"
)


def read(folder: Path, text: str, **how: object) -> Confidential:
    path = folder / "table.csv"
    path.write_text(text)
    return cw.read_counts(path, by=BY, count="n", cells_are_public=True, loader=Layout(**how))


@pytest.mark.parametrize(
    ("text", "how"),
    [
        (LONG, {}),
        (TOTALS, {"totals": {"*": "Total"}}),
        (TOTALS.replace("A,Total", "A,All").replace("B,Total", "B,All").replace("l,Total", "l,All"),
         {"totals": {"area": "Total", "sex": "All"}}),
        (WIDE, {"kind": "wide", "totals": {"*": "Total"}}),
        ("\n".join(line.rpartition(",")[0] for line in WIDE.splitlines()[:3]), {"kind": "wide"}),
        (SDMX_1, {"kind": "sdmx"}),
        (SDMX_2, {"kind": "sdmx"}),
    ],
    ids=["long", "totals", "totals by column", "wide", "wide, no totals", "sdmx 1", "sdmx 2"],
)  # fmt: skip
def test_every_layout_holds_the_same_table(
    text: str, how: dict[str, object], tmp_path: Path
) -> None:
    table = read(tmp_path, text, **how)
    assert table.reveal().tolist() == [3, 0, 12, 7]
    assert table.hierarchy.labels == (("A", "B"), ("F", "M"))


BAD = {
    "total of a row": (TOTALS.replace("B,Total,19", "B,Total,18"), {"totals": {"*": "Total"}},
                       r"table.csv, row 7: this total is not the sum of its cells"),
    "total of a column": (TOTALS.replace("Total,F,15", "Total,F,16"), {"totals": {"*": "Total"}},
                          r"row 8: this total"),
    "grand total": (TOTALS.replace("22", "23"), {"totals": {"*": "Total"}}, r"row 10: this total"),
    "total of nothing": (LONG + "C,Total,4\n", {"totals": {"*": "Total"}}, r"row 6: this total"),
    "only totals": ("area,sex,n\nTotal,Total,1\n", {"totals": {"*": "Total"}}, "every row is a"),
    "total code of no column": (LONG, {"totals": {"age": "Total"}}, "total code for 'age'"),
    "duplicate behind totals": (TOTALS + "B,M,7\n", {"totals": {"*": "Total"}},
                                r"row \d+: this total|row 11: duplicate"),
    "blank in a wide table": (WIDE.replace("12", ""), {"kind": "wide", "no_totals": True},
                              r"row 3, column 2: the count is missing"),
    "words in a wide table": (WIDE.replace("12", "many"), {"kind": "wide", "no_totals": True},
                              r"row 3, column 2: the count is not a whole number"),
    "nameless column": (WIDE.replace("Total", ""), {"kind": "wide"}, r"column 4 has counts and no"),
    "wide that is long": (LONG, {"kind": "wide"}, "so it is not wide"),
    "wide without categories": ("area\nA\n", {"kind": "wide"}, "it needs one a category"),
    "long that is no sdmx": (LONG, {"kind": "sdmx"}, "not SDMX-CSV"),
    "deletion": (SDMX_2.replace(",I,B: Beta,F", ",D,B: Beta,F"), {"kind": "sdmx"},
                 r"row 4: ACTION is D"),
    "no dimension": (SDMX_1.replace("sex", "SEX"), {"kind": "sdmx"}, "no column 'sex'"),
    "two periods": (SDMX_1.replace("X:Y(1.0),B,A,M,7,A", "X:Y(1.0),B,A,M,7,A\nX:Y(1.0),A,Q,F,0,A"),
                    {"kind": "sdmx"}, r"row 6: duplicate of the cell in row 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_tables_are_refused_with_their_place(name: str, tmp_path: Path) -> None:
    text, how, message = BAD[name]
    with pytest.raises(TableError, match=message) as refusal:
        read(tmp_path, text, **how)
    said = str(refusal.value).replace(str(tmp_path), "")
    assert not any(count in said for count in ("12", "19", "22"))


def test_an_unknown_layout_is_refused() -> None:
    with pytest.raises(TableError, match="layout must be one of long, wide, sdmx"):
        Layout(kind="narrow")


HRC = "North\n@N1\n@@N1a\n@@N1b\n@N2\nSouth\n@S1\n@@S1a\nIsland\n"


def test_hierarchy_files_are_trees_of_codes(tmp_path: Path) -> None:
    path = tmp_path / "place.hrc"
    path.write_text(HRC)
    tree = read_hrc(path)
    assert tree.depth == 3
    assert tree.leaves == ("N1a", "N1b", "N2", "S1a", "Island")
    assert tree.paths["N1b"] == ("North", "N1", "N1b")
    cells = tree.cells(("a", "b", "c"), code="place")
    assert cells.rows()[2:] == [
        ("N2", "North", "N2", "N2"), ("S1a", "South", "S1", "S1a"),
        ("Island", "Island", "Island", "Island"),
    ]  # fmt: skip
    path.write_text(HRC.replace("@", "  "))
    assert read_hrc(path, indent="  ") == tree
    path.write_bytes(b"\xef\xbb\xbf" + HRC.replace("\n", "\r\n").encode())
    assert read_hrc(path) == tree


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no codes"),
        ("A\n@@B\n", r"row 2: code 'B' is indented 2 times below a code that is indented 0"),
        ("@A\n", "row 1: code 'A' is indented 1 times"),
        ("A\nA\n", "row 2: code 'A' stands in the file twice"),
        ("A\n@\n", "row 2: indentation without a code"),
    ],
)
def test_bad_hierarchy_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "place.hrc"
    path.write_text(text)
    with pytest.raises(TableError, match=message):
        read_hrc(path)


DOMAIN = """
[columns.sex]
levels = ["F", "M"]
[nested.place]
columns = ["region", "town"]
hierarchy = "place.hrc"
code = "place"
"""


def coded(folder: Path, text: str) -> Confidential:
    (folder / "place.hrc").write_text("North\n@N1\n@N2\nIsland\n")
    (folder / "domain.toml").write_text(DOMAIN)
    (folder / "table.csv").write_text(text)
    by = ("region", "town", "sex")
    domain = folder / "domain.toml"
    layout = Layout(domain=read_domain_file(domain, by=by), totals={"*": "Total"})
    return cw.read_counts(folder / "table.csv", by=by, count="n", domain=domain, loader=layout)


CODED = "place,sex,n\nN1,F,3\nN2,F,4\nN2,M,1\nNorth,F,7\nNorth,Total,8\nIsland,M,2\nTotal,M,3\n"


def test_tables_of_codes_have_their_inner_codes_checked(tmp_path: Path) -> None:
    table = coded(tmp_path, CODED)
    cells = {table.hierarchy.path(3, i): int(n) for i, n in enumerate(table.reveal()) if n}
    assert cells == {
        ("North", "N1", "F"): 3, ("North", "N2", "F"): 4, ("North", "N2", "M"): 1,
        ("Island", "Island", "M"): 2,
    }  # fmt: skip
    with pytest.raises(TableError, match="row 5: this total is not the sum"):
        coded(tmp_path, CODED.replace("North,F,7", "North,F,8"))
    with pytest.raises(TableError, match="row 3: column 'place' has a code that is not in the"):
        coded(tmp_path, CODED.replace("N2,F", "N9,F"))


@pytest.mark.parametrize("case", [c for c in HARD_CASES if c.hierarchy.cells <= 200],
                         ids=lambda case: case.name)  # fmt: skip
def test_what_is_written_is_read_back(case: Case, tmp_path: Path) -> None:
    made = cw.release(Confidential(case.hierarchy, case.cells), case.make_plan())
    by, path = case.hierarchy.by, tmp_path / "table.csv"
    frames = {
        "wide": crosstab(made.hierarchy, made.counts[-1]),
        "sdmx": sdmx(made.hierarchy, made.table(), dataflow="X:Y(1.0)"),
    }
    for kind, frame in frames.items():
        frame.write_csv(path)
        layout = Layout(kind=kind, totals={"*": "Total"} if kind == "wide" else {})
        back = cw.read_counts(path, by=by, count="count", cells_are_public=True, loader=layout)
        np.testing.assert_array_equal(back.reveal(), made.counts[-1])
        assert back.hierarchy.labels == made.hierarchy.labels


def test_labels_that_a_format_can_not_hold_are_refused() -> None:
    hierarchy, _ = build(pl.DataFrame({"a": ["x y", "Total"]}))
    with pytest.raises(TableError, match="has a label 'Total', the name of totals"):
        crosstab(hierarchy, np.array([1, 2]))
    with pytest.raises(TableError, match="'x y' can not be an SDMX code"):
        sdmx(hierarchy, pl.DataFrame(), dataflow="X:Y(1.0)")
    with pytest.raises(TableError, match=r"dataflow must read AGENCY:FLOW\(1.0\)"):
        sdmx(hierarchy, pl.DataFrame(), dataflow="counts")


def small_release(folder: Path) -> Path:
    cells = pl.DataFrame({"area": ["=1+1", "=1+1", "B"], "sex": ["F", "M", "F"]})
    hierarchy, order = build(cells)
    made = cw.release(Confidential(hierarchy, np.array([3, 0, 12])[order]), cw.Plan(epsilon="1/3"))
    made.save(folder / "r")
    return folder / "r"


def test_a_workbook_has_the_certificate_and_every_count(tmp_path: Path) -> None:
    folder = small_release(tmp_path)
    done = call("convert", folder, "-o", "r.xlsx", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"file": "r.xlsx", "format": "xlsx", "nodes": 6}
    book = openpyxl.load_workbook(tmp_path / "r.xlsx")
    assert book.sheetnames == ["Certificate", "1 area by sex", "Counts"]
    rows = list(book["Counts"].iter_rows(values_only=True))
    assert rows[0] == ("area", "sex", "level", "count", "low", "high")
    released = read_release(folder).table()
    assert rows[1:] == [tuple(row) for row in released.rows()]
    kinds = {cell.data_type for row in book["Counts"].iter_rows() for cell in row}
    assert "f" not in kinds, "a label that looks like a formula is text"
    sheet = book["Certificate"].iter_rows(values_only=True)
    text = "\n".join(str(cell) for row in sheet for cell in row if cell is not None)
    for needed in ("ε = 1/3", "What is promised", "e^1/3", "What is not promised", "countwise"):
        assert needed in text
    levels = [row[0] for row in book["Certificate"].iter_rows(values_only=True)]
    assert levels.index("Level") + 1 == levels.index("total")
    bold = {str(row[0].value): row[0].font.b for row in book["Certificate"].iter_rows()}
    assert bold["Level"]
    assert not bold["total"]


def test_a_release_larger_than_a_sheet_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = read_release(small_release(tmp_path))
    monkeypatch.setattr(workbook, "MOST_ROWS", 6)
    with pytest.raises(InputError, match="has 6 counts, and an Excel sheet holds 5"):
        workbook.write_workbook(release, tmp_path / "x.xlsx")
    assert not (tmp_path / "x.xlsx").exists()


def test_convert_and_release_speak_the_same_formats(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text(WIDE)
    common = ("--by", "area,sex", "--cells-are-public", "--epsilon", 500)
    layout = ("--layout", "wide", "--total-code", "Total")
    done = call("release", "table.csv", *common, *layout, "--out", "r", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = call("convert", "r", "--to", "wide", "-o", "wide.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "wide.csv").read_text() == WIDE
    call("convert", "r", "--to", "sdmx", "-o", "s.csv", "--json", cwd=tmp_path)
    again = ("--layout", "sdmx", "--out", "again", "--json")
    assert call("release", "s.csv", *common, *again, cwd=tmp_path).returncode == 0
    both = [read_release(tmp_path / name).table() for name in ("r", "again")]
    assert both[0].equals(both[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("r", "-o", "x.csv"), "add --to with one of wide, sdmx, xlsx"),
        (("r", "-o", "x.csv", "--to", "pdf"), "--to must be one of"),
        (("nowhere", "-o", "x.xlsx"), "is not a release"),
        (("r", "-o", "x.csv", "--to", "sdmx"), "can not be an SDMX code"),
    ],
)
def test_bad_conversions_write_nothing(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    small_release(tmp_path)
    done = call("convert", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["r"]
