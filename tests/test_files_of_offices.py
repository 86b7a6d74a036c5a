"""Files as offices keep them: two tries, each in the words of the refusal before, are enough."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import polars as pl
import pyreadstat
import pytest
import xlsxwriter
from playwright.sync_api import sync_playwright

from countwise.release.document import read_release
from needs import chromium
from test_pages import FAULTS, SMALLEST_LETTERS
from test_tabulate_refusals import call

pytestmark = pytest.mark.timeout(900)
Counts = dict[tuple[str, ...], int]
Try = tuple[str, tuple[str, ...]]
"""What a refusal says, and the options that the user adds for it."""


@dataclass(frozen=True, kw_only=True)
class OfficeFile:
    """A file, how it is first given to the command, the tries, and what comes of it.

    Without `counts` it ends in a refusal: that of the last try.
    """

    name: str
    write: Callable[[Path], object]
    options: tuple[str, ...]
    tries: tuple[Try, ...] = ()
    counts: Counts | None = None


def text(content: str, encoding: str = "utf-8") -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content.encode(encoding))


def lines(header: str, rows: Sequence[Sequence[object]], mark: str = ",") -> str:
    return "\n".join([header, *(mark.join(map(str, row)) for row in rows)]) + "\n"


def write_excel(path: Path) -> None:
    """A printed table: titles, an empty line, totals at the side and below, a note."""
    rows = [
        ["Table 3.1: persons by region and sex"], ["As of 1 January"], [],
        ["Region", "Women", "Men", "Total"],
        ["North", 1204, 1187, 2391], ["South", 310, 0, 310], ["Total", 1514, 1187, 2701], [],
    ]  # fmt: skip
    with xlsxwriter.Workbook(path) as book:
        sheet = book.add_worksheet("3.1")
        for i, row in enumerate(rows):
            sheet.write_row(i, 0, row)
        book.add_worksheet("Sheet2")


def write_spss(path: Path) -> None:
    frame = pl.DataFrame({"region": [2, 2, 1, 1], "sex": [1, 2, 1, 2], "n": [5, 0, 17, 8]})
    labels = {"region": {1: "Wales", 2: "England"}, "sex": {1: "Female", 2: "Male"}}
    pyreadstat.write_sav(frame.to_pandas(), str(path), variable_value_labels=labels)


AGES = [str(age) for age in range(100)]
FIVE = list(product("NS", "FM", ("0-17", "18+"), "yn", "uv"))
SDMX = [("X:Y(1.0)", geo, sex, "2020", n) for geo, sex, n in [
    ("NL1", "F", 31), ("NL1", "M", 30), ("NL2", "F", 4), ("NL2", "M", 5), ("NL1", "T", 61),
    ("NL2", "T", 9), ("TOTAL", "F", 35), ("TOTAL", "M", 35), ("TOTAL", "T", 70)]]  # fmt: skip

FILES = (
    OfficeFile(
        name="european.csv",
        write=text("Kreis;Geschlecht;Anzahl\nUlm;weiblich;1.204\nUlm;männlich;1.187\nAalen;weiblich;0\n"
                   "Aalen;männlich;12\n;;\n"),
        options=("--by", "Kreis,Geschlecht", "--count", "Anzahl"),
        tries=(("marks between its digits", ("--thousands", "point")),),
        counts={("Aalen", "männlich"): 12, ("Aalen", "weiblich"): 0, ("Ulm", "männlich"): 1187,
                ("Ulm", "weiblich"): 1204},
    ),
    OfficeFile(
        name="printed.xlsx",
        write=write_excel,
        options=("--by", "Region,Sex", "--layout", "wide"),
        tries=(("stand in line 4", ("--skip", "3")),
               ("a name of totals", ("--total-code", "Total"))),
        counts={("North", "Men"): 1187, ("North", "Women"): 1204, ("South", "Men"): 0,
                ("South", "Women"): 310},
    ),
    OfficeFile(
        name="sdmx.csv",
        write=text(lines("DATAFLOW,geo,sex,TIME_PERIOD,OBS_VALUE", SDMX)),
        options=("--by", "geo,sex", "--layout", "sdmx"),
        tries=(("a name of totals", ("--total-code", "geo=TOTAL,sex=T")),),
        counts={("NL1", "F"): 31, ("NL1", "M"): 30, ("NL2", "F"): 4, ("NL2", "M"): 5},
    ),
    OfficeFile(
        name="wide.csv",
        write=text("region,clinic,Male,Female,Total\nNorth,A,3,4,7\nNorth,B,0,9,9\nSouth,C,1,2,3\n"),
        options=("--by", "region,clinic,sex", "--layout", "wide"),
        tries=(("the label 'Total'", ("--total-code", "Total")),),
        counts={("North", "A", "Female"): 4, ("North", "A", "Male"): 3, ("North", "B", "Female"): 9,
                ("North", "B", "Male"): 0, ("South", "C", "Female"): 2, ("South", "C", "Male"): 1},
    ),
    OfficeFile(
        name="survey.sav",
        write=write_spss,
        options=("--by", "region,sex", "--count", "n"),
        counts={("England", "Female"): 5, ("England", "Male"): 0, ("Wales", "Female"): 17,
                ("Wales", "Male"): 8},
    ),
    OfficeFile(
        name="ages.csv",
        write=text(lines("age,n", [(age, 3 * int(age)) for age in sorted(AGES)])),
        options=("--by", "age", "--count", "n"),
        counts={(age,): 3 * int(age) for age in AGES},
    ),
    OfficeFile(
        name="counties.csv",
        write=text(lines("state,fips,population", [("AL", "01003", 231), ("AL", "01001", 58),
                                                   ("CO", "08001", 0)])),
        options=("--by", "state,fips", "--count", "population"),
        counts={("AL", "01001"): 58, ("AL", "01003"): 231, ("CO", "08001"): 0},
    ),
    OfficeFile(
        name="accents.csv",
        write=text(lines("région;sexe;effectif", [("Île-de-France", "F", 12), ("Hérault", "F", 3)],
                         ";"), "latin-1"),
        options=("--by", "région,sexe", "--count", "effectif"),
        tries=(("no column 'région' .* The file is not UTF-8", ("--encoding", "latin-1")),),
        counts={("Hérault", "F"): 3, ("Île-de-France", "F"): 12},
    ),
    OfficeFile(
        name="suppressed.csv",
        write=text(lines("region,disease,cases", [("North", "flu", 120), ("North", "mumps", "<5"),
                                                  ("South", "flu", "*")])),
        options=("--by", "region,disease", "--count", "cases"),
        tries=(("row 3: .* must have the true count of every cell", ()),),
    ),
    OfficeFile(
        name="duplicates.csv",
        write=text(lines("region,age,sex,n", [(r, a, s, 2) for r in "NS" for a in range(3)
                                              for s in "FM"])),
        options=("--by", "region,sex", "--count", "n"),
        tries=(("duplicate of the cell in row 2", ("--sum-duplicates",)),),
        counts={(r, s): 6 for r in "NS" for s in "FM"},
    ),
    OfficeFile(
        name="spaces.csv",
        write=text("state, fips,sex ,n \n01 ,01001, Male,4\n01,01001,Female ,7\n\n01,01003,Male,2\n"
                   ",,,\n,,,\n"),
        options=("--by", "state,fips,sex", "--count", "n"),
        counts={("01", "01001", "Female"): 7, ("01", "01001", "Male"): 4,
                ("01", "01003", "Male"): 2},
    ),
    OfficeFile(
        name="five.csv",
        write=text(lines("region\tsex\tage\twork\tplace\tn",
                         [(*cell, i % 7) for i, cell in enumerate(FIVE)], "\t")),
        options=("--by", "region,sex,age,work,place", "--count", "n"),
        counts={cell: i % 7 for i, cell in enumerate(FIVE)},
    ),
)  # fmt: skip


@pytest.mark.parametrize("office", FILES, ids=lambda office: office.name)
def test_two_tries_are_enough(office: OfficeFile, tmp_path: Path) -> None:
    office.write(tmp_path / office.name)
    command = ["release", office.name, *office.options, "--cells-are-public", "--epsilon", "500",
               "--adjust", "least-squares", "--out", "r"]  # fmt: skip
    assert len(office.tries) <= 2
    for says, more in office.tries:
        done = call(*command, cwd=tmp_path)
        assert done.returncode == 2, done.stdout
        said = " ".join(done.stderr.split())
        assert pl.Series([said]).str.contains(says).all(), said
        assert not (tmp_path / "r").exists()
        assert all(word in said for word in more if word.startswith("--")), "the option is named"
        command += more
    if office.counts is None:
        return
    done = call(*command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    release = read_release(tmp_path / "r")
    hierarchy = release.hierarchy
    depth = len(hierarchy.by)
    cells = {hierarchy.path(depth, i): int(n) for i, n in enumerate(release.counts[depth])}
    assert cells == office.counts
    assert int(release.counts[0][0]) == sum(office.counts.values()), "nobody is counted twice"
    if office.name == "ages.csv":
        assert list(hierarchy.labels[0]) == AGES
    look_at_pages(tmp_path / "r")


def look_at_pages(folder: Path) -> None:
    """Both pages in a browser, on a phone and on a desk: nothing overflows or can not be read."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name, width in product(("release.html", "certificate.html"), (390, 1280)):
            page = browser.new_page(viewport={"width": width, "height": 800})
            wrong: list[str] = []
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.goto((folder / name).as_uri())
            if name == "release.html":
                page.wait_for_selector(".listing[data-ready]")
            page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert page.evaluate(FAULTS, SMALLEST_LETTERS) == wrong == [], (name, width)
        browser.close()
