"""Files as offices keep them hold the same table, and say where they do not."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest
import xlsxwriter

from countwise.errors import TableError
from countwise.release.document import read_release
from countwise.tables.confidential import Confidential
from countwise.tables.dialect import Reading, find_dialect
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_counts, read_domain
from test_tabulate_refusals import call

BY = ("region", "sex")
ROWS = [("Ö", "F", 3), ("Ö", "M", 0), ("Öst", "F", 1234567), ("Öst", "M", 12)]
FRAME = pl.DataFrame(ROWS, schema=["region", "sex", "n"], orient="row")
CSV = FRAME.write_csv()


def read(table: object, **how: object) -> Confidential:
    said = {name: how.pop(name) for name in ("sum_duplicates", "domain") if name in how}
    layout = {name: how.pop(name) for name in ("kind", "totals") if name in how}
    loader = Layout(reading=Reading(**how), **layout)
    public = None if "domain" in said else True
    return read_counts(table, by=BY, count="n", cells_are_public=public, loader=loader, **said)


def is_the_table(found: Confidential) -> bool:
    labels = [found.hierarchy.path(2, i) for i in range(found.hierarchy.cells)]
    return sorted(zip(labels, found.reveal().tolist(), strict=True)) == sorted(
        ((region, sex), n) for region, sex, n in ROWS
    )


def german(text: str) -> str:
    return text.replace(",", ";").replace("1234567", "1.234.567")


def sheet(path: Path, rows: list[list[object]], *, more: bool = False) -> None:
    book = xlsxwriter.Workbook(path)
    first = book.add_worksheet("Table")
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            if value is not None:
                first.write(i, j, value)
    other = book.add_worksheet("Notes")
    if more:
        other.write(0, 0, "of the table")
    book.close()


TEXTS: dict[str, tuple[str | bytes, dict[str, object]]] = {
    "commas": (CSV, {}),
    "semicolons": (CSV.replace(",", ";"), {}),
    "tabs": (CSV.replace(",", "\t"), {}),
    "bars": (CSV.replace(",", "|"), {}),
    "spaces around": (CSV.replace(",", " , "), {}),
    "byte order mark": (CSV.encode("utf-8-sig"), {}),
    "UTF-16": (CSV.encode("utf-16"), {}),
    "UTF-16, big end first": (b"\xfe\xff" + CSV.encode("utf-16-be"), {}),
    "UTF-16 without a mark": (CSV.encode("utf-16-le"), {}),
    "UTF-16 with tabs, as Excel says Unicode": (CSV.replace(",", "\t").encode("utf-16"), {}),
    "UTF-32": (CSV.encode("utf-32"), {}),
    "Latin-1": (CSV.encode("latin-1"), {"encoding": "latin-1"}),
    "Windows": (CSV.replace("\n", "\r\n").encode("cp1252"), {"encoding": "windows-1252"}),
    "points between thousands": (german(CSV), {"thousands": "."}),
    "spaces between thousands": (german(CSV).replace(".", "\u202f"), {"thousands": "space"}),
    "commas between thousands": (CSV.replace("1234567", '"1,234,567"'), {"thousands": "comma"}),
    "decimals": (CSV.replace("0\n", "0.0\n").replace("67\n", "67.0\n"), {}),
    "decimal commas": (CSV.replace(",", ";").replace("12\n", "12,0\n"), {}),
    "thousands and decimals": (
        CSV.replace(",", ";").replace("1234567", "1.234.567,00"), {"thousands": "point"},
    ),
    "blank lines": (CSV.replace("\n", "\n\n"), {}),
    "empty rows below": (CSV + ",,\n,,\n \t, ,\n", {}),
    "titles": ("People by region\nall, of 2020\n\n" + CSV, {"skip": 2}),
    "another separator named": (CSV.replace(",", "^"), {"separator": "^"}),
    "another column": ("id;remark," + CSV.replace("\n", "\n7;x,").rstrip("7;x,"), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_text_files(name: str, tmp_path: Path) -> None:
    content, how = TEXTS[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert is_the_table(read(path, **how))


def write_excel(path: Path) -> None:
    sheet(path, [["region", "sex", "n"], *map(list, ROWS)])


def write_ods(path: Path) -> None:
    FRAME.to_pandas().to_excel(path, engine="odf", index=False)


def write_sav(path: Path) -> None:
    coded = FRAME.with_columns(sex=pl.col("sex").replace_strict({"F": 2, "M": 1}))
    labels = {"sex": {2: "F", 1: "M"}}
    pyreadstat.write_sav(coded.to_pandas(), str(path), variable_value_labels=labels)


def write_dta(path: Path) -> None:
    pyreadstat.write_dta(FRAME.to_pandas(), str(path))


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.xlsx": write_excel,
    "t.ods": write_ods,
    "t.arrow": FRAME.write_ipc,
    "t.feather": FRAME.write_ipc,
    "t.parquet": FRAME.write_parquet,
    "t.sav": write_sav,
    "t.dta": write_dta,
}


@pytest.mark.parametrize("name", WRITERS)
def test_other_files(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert is_the_table(read(tmp_path / name))
    assert read_domain(tmp_path / name, by=BY).cells == 4
    (tmp_path / name).write_bytes(b"region,sex,n\n31337,1,31337\n")
    with pytest.raises(TableError, match="can not be read") as refusal:
        read(tmp_path / name)
    assert "31337" not in str(refusal.value)


FRAMES: dict[str, Callable[[], object]] = {
    "polars": lambda: FRAME,
    "polars, lazy": FRAME.lazy,
    "pandas": FRAME.to_pandas,
    "pandas, numbers with gaps": lambda: FRAME.to_pandas().astype({"n": float}),
    "pandas, categories": lambda: FRAME.to_pandas().astype({"sex": "category"}),
    "pandas, grouped": lambda: FRAME.to_pandas().set_index(["region", "sex"]),
    "pandas, a series": lambda: FRAME.to_pandas().set_index(["region", "sex"])["n"],
    "arrow": FRAME.to_arrow,
    "arrow batches": lambda: pa.RecordBatchReader.from_batches(
        FRAME.to_arrow().schema, FRAME.to_arrow().to_batches()
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames(name: str) -> None:
    assert is_the_table(read(FRAMES[name]()))


def test_rows_of_frames_are_counted_from_0() -> None:
    with pytest.raises(TableError, match=r"^data frame, row 4: duplicate of the cell in row 0\."):
        read(pd.concat([FRAME.to_pandas(), FRAME.to_pandas()]))
    with pytest.raises(TableError, match=r"a data frame of pandas or Polars.*; got builtins\.list"):
        read([1, 2])


def test_sheets(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    rows = [[], ["Table 1"], [None], [None, "region", "sex", "n"],
            *([None, *row] for row in ROWS), [None], [None, None, None, None, "x"]]  # fmt: skip
    sheet(path, rows, more=True)
    with pytest.raises(TableError, match=r"has 2 sheets with cells\. To fix, name one with"):
        read(path)
    with pytest.raises(TableError, match=r"stand in line 4\. To fix, add --skip 3"):
        read(path, sheet="Table")
    assert is_the_table(read(path, sheet="Table", skip=3))
    assert is_the_table(read(path, sheet="1", skip=2)), "empty rows are passed over"
    with pytest.raises(TableError, match="no sheet 'Tables' among its 2"):
        read(path, sheet="Tables")
    rows[6] = [None, "Öst", "F", 2.5]
    sheet(path, rows)
    with pytest.raises(TableError, match="row 7: column 'n' is not a whole number"):
        read(path, skip=3)
    codes = [["region", "sex", "n"], ["01003", 5, 3.0], ["01004", 10, 10**12]]
    sheet(path, codes)
    table = read(path)
    assert table.reveal().tolist() == [3, 10**12]
    assert table.hierarchy.labels[0] == ("01003", "01004")


def test_files_under_a_pattern(tmp_path: Path) -> None:
    lines = CSV.splitlines()
    for i, part in enumerate((lines[1:3], lines[3:])):
        (tmp_path / f"part-{i}.csv").write_text("\n".join([lines[0], *part]) + "\n")
    assert is_the_table(read(tmp_path / "part-*.csv"))
    (tmp_path / "part-2.csv").write_text("region;sex;n\n\nÖst;D;many\n")
    with pytest.raises(TableError, match=r"part-\*\.csv, row 3 of part-2\.csv: column 'n' is not"):
        read(tmp_path / "part-*.csv")
    with pytest.raises(TableError, match="there is no such file"):
        read(tmp_path / "parts-*.csv")


def test_rows_of_one_cell_are_added_up_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("region,age,sex,n\n" + "".join(f"{r},{a},{s},{n}\n" for a in (1, 2)
                                                   for r, s, n in ROWS))  # fmt: skip
    with pytest.raises(TableError, match=r"row 6: duplicate of the cell in row 2\..*--sum-dupl"):
        read(path)
    table = read(path, sum_duplicates=True)
    assert table.reveal().sum() == 2 * sum(n for *_, n in ROWS)
    domain = tmp_path / "d.csv"
    domain.write_text("region,sex\n" + "".join(f"{r},{s}\n" for r, s, _ in ROWS) + "Öst,X\n")
    assert read(path, sum_duplicates=True, domain=domain).hierarchy.cells == 5


def test_labels_outside_a_domain_are_not_shown(tmp_path: Path) -> None:
    domain, path = tmp_path / "d.csv", tmp_path / "t.csv"
    domain.write_text("region,sex\nNorth,F\n")
    path.write_text("region,sex,n\nNorth,F,1\nZq7,F,1\n")
    for change in (lambda text: text, lambda text: text + "zq7,F,2\n"):
        path.write_text(change(path.read_text()))
        with pytest.raises(TableError) as refusal:
            read(path, domain=domain)
        assert "zq7" not in str(refusal.value).casefold()
        assert "add it to the public list" not in str(refusal.value)
    domain.write_text("region,sex\nNorth,F\nnorth ,F\n")
    with pytest.raises(TableError, match=r"two labels that .* only: 'North' and 'north'"):
        read_domain(domain, by=BY)


@pytest.mark.parametrize(
    "mark",
    ["*", "**", "<5", "< 5", "≤3", "c", ":", "..", "x", "-", "–", "n.a.", "suppressed", "(D)"],
)
def test_withheld_counts_are_refused_with_what_is_wanted(mark: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV.replace("1234567", mark))
    with pytest.raises(TableError, match=r"row 4: column 'n' has a mark there in place of a num"):
        read(path)


@pytest.mark.parametrize("number", ["1.5", "1e3", "0x10", "1,23", "12a", "1.23.456", "--3", "3."])
def test_what_is_no_whole_number_is_none(number: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV.replace(",", ";").replace("1234567", number))
    for thousands in (None, "point", "comma"):
        if number == "1,23" and thousands == "point":
            continue
        with pytest.raises(TableError, match=r"row 4: column 'n' is not a whole number") as refusal:
            read(path, thousands=thousands)
        assert number not in str(refusal.value).replace("10^15", "")


def test_what_is_found_out_depends_on_the_header_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    header = "region;sex;n\n"
    for rows in ("", "a,b,c,d,e\n" * 50, "a|b|c\n", "1;2;3\n"):
        path.write_text(header + rows)
        assert find_dialect(path, wanted=BY).in_words == "columns separated by semicolons"
    path.write_bytes((header + "a,b\n").encode("utf-16"))
    assert "encoding UTF-16" in find_dialect(path).in_words
    path.write_text("region,sex,n\n")
    assert not find_dialect(path).in_words


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"separator": ";;"}, "--separator must be one character"),
        ({"thousands": "x"}, "--thousands must be comma, point, space or apostrophe"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not known"),
        ({"encoding": "base64"}, "encoding 'base64' is not known"),
        ({"skip": -1}, "--skip must be 0 lines or more"),
    ],
)
def test_readings_that_can_not_be(how: dict[str, object], message: str) -> None:
    with pytest.raises(TableError, match=message):
        Reading(**how)


def test_wide_tables_of_workbooks(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    rows = [["Title"], ["region", "F", "M", None], ["Ö", 3, 0], [], ["Öst", 1234567, 12.0]]
    sheet(path, rows)
    assert is_the_table(read(path, kind="wide", skip=1))
    rows[4][2] = "c"
    sheet(path, rows)
    with pytest.raises(TableError, match="row 5, column 3: the count has a mark there"):
        read(path, kind="wide", skip=1)


def test_counts_are_exact_whatever_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    counts = rng.integers(0, 10**12, size=40)
    frame = pl.DataFrame({"region": [f"r{i:02}" for i in range(40)], "sex": "F", "n": counts})
    frame.write_excel(tmp_path / "t.xlsx")
    pyreadstat.write_sav(frame.to_pandas(), str(tmp_path / "t.sav"))
    for name in ("t.xlsx", "t.sav"):
        np.testing.assert_array_equal(read(tmp_path / name).reveal(), counts)


def test_the_command_says_what_it_found_and_takes_what_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(german(CSV).encode("latin-1"))
    release = ("release", "t.csv", "--by", "region,sex", "--count", "n", "--epsilon", 500,
               "--cells-are-public", "--out", "r")  # fmt: skip
    done = call(*release, cwd=tmp_path)
    assert done.returncode == 2
    assert "such as --encoding latin-1" in done.stderr
    done = call(*release, "--encoding", "latin-1", cwd=tmp_path)
    assert done.returncode == 2
    assert "such as --thousands comma (or point" in done.stderr
    done = call(*release, "--encoding", "latin-1", "--thousands", "point", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "t.csv: read with columns separated by semicolons, encoding ISO8859-1." in done.stderr
    assert sorted(read_release(tmp_path / "r").counts[-1].tolist()) == [0, 3, 12, 1234567]


def test_a_plan_is_made_of_the_table_that_is_released(tmp_path: Path) -> None:
    wide = [["Title"], ["region", "F", "M", "Total"], ["Ö", 3, 0, 3], ["Total", 3, 0, 3]]
    sheet(tmp_path / "t.xlsx", wide)
    plan = ("plan", "t.xlsx", "--by", "region,sex", "--epsilon", 1, "--layout", "wide", "--skip", 1,
            "--total-code", "Total", "--json")  # fmt: skip
    done = call(*plan, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    levels = json.loads(done.stdout)["levels"]
    assert [(each["level"], each["nodes"]) for each in levels] == [
        ("total", 1), ("region", 1), ("sex", 2)]  # fmt: skip
