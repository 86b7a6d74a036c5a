"""What can not be tabulated is refused with its place, and shows no value of a record."""

import json
import stat
import subprocess
import sys
import traceback
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

import duckdb
import polars as pl
import pytest

from countwise.cli import main
from countwise.errors import CountwiseError, TableError
from countwise.release.document import read_release
from countwise.tables.domainfile import read_domain_file
from countwise.tables.engines import engine_faults
from countwise.tables.tabulate import Tabulation, tabulate

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)

BY = ("region", "age")
DOMAIN = """
[columns.region]
levels = ["North", "South"]
[columns.age]
edges = [0, 18, inf]
labels = ["minor", "adult"]
"""
RECORDS = "id,region,age\n1,North,3\n1,South,40\n2,South,41\n3,South,12\n"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "countwise", *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, timeout=100
    )


def call(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The same in this process, which is faster."""
    out, err = StringIO(), StringIO()
    words = ["countwise", *map(str, arguments)]
    with (
        chdir(cwd),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", words),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return subprocess.CompletedProcess(words, int(end.value.code), out.getvalue(), err.getvalue())


def files(folder: Path, *, records: str = RECORDS, domain: str = DOMAIN) -> tuple[Path, Path]:
    (folder / "people.csv").write_text(records)
    (folder / "domain.toml").write_text(domain)
    return folder / "people.csv", folder / "domain.toml"


def count(
    folder: Path, *, records: str = RECORDS, domain: str = DOMAIN, **how: object
) -> list[int]:
    path, declared = files(folder, records=records, domain=domain)
    recipe = Tabulation(domain=read_domain_file(declared, by=BY), **how)
    return tabulate(path, recipe).reveal().tolist()


def test_the_good_case_is_good(tmp_path: Path) -> None:
    assert count(tmp_path) == [1, 0, 1, 2]


BAD_RECORDS = {
    "unknown level": (RECORDS.replace("3,South", "3,Secret"), {},
                      r"people.csv, row 5: column 'region' has no level of the domain there"),
    "below the bins": (RECORDS.replace("41", "-987"), {}, r"row 4: column 'age' has no level"),
    "no number": (RECORDS.replace("41", "Secret"), {}, r"row 4: column 'age' has no level"),
    "missing value": (RECORDS.replace(",40", ","), {}, r"row 3: column 'age' has no level"),
    "no person": (RECORDS.replace("2,South", ",South"), {"person": "id"},
                  r"row 4: the person column 'id' is empty"),
    "no person, quoted": (RECORDS.replace("2,South", '"",South'), {"person": "id"},
                          r"row 4: the person column 'id' is empty"),
    "no such person column": (RECORDS, {"person": "ssn"},
                              r"no column 'ssn' among its 3"),
    "missing column": (RECORDS.replace("age", "years"), {}, r"no column 'age'"),
    "ragged": (RECORDS + "4,South,1,Secret,Secret\n", {}, r"row 6: the engine can not count these"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_records_are_refused_with_their_place(name: str, tmp_path: Path) -> None:
    records, how, message = BAD_RECORDS[name]
    with pytest.raises(TableError, match=message) as refusal:
        count(tmp_path, records=records, **how)
    assert "people.csv" in str(refusal.value)
    assert "Secret" not in str(refusal.value)
    assert "987" not in str(refusal.value)


def test_faults_of_an_engine_are_told_without_its_details() -> None:
    full = duckdb.IOException("IO Error: can not write\nNo space left on device: Secret")
    with (
        pytest.raises(CountwiseError, match="no space left on the disk") as fault,
        engine_faults("t"),
    ):
        raise full
    assert fault.value.exit_code == 1
    kind = "Invalid Input Error: CSV Error on Line: "
    for text, place in ((kind + "3\nOriginal Line: Secret", "t, row 3:"), (f"{kind}3 Secret", "t:"),
                        (f"Secret {kind}3", "t:"), ("Secret", "t:")):  # fmt: skip
        with pytest.raises(TableError) as fault, engine_faults("t"):
            raise duckdb.InvalidInputException(text)
        assert str(fault.value).startswith(f"{place} the engine can not count these records (Inv")
        assert "Secret" not in "".join(traceback.format_exception(fault.value))
    with pytest.raises(ZeroDivisionError), engine_faults("t"):
        raise ZeroDivisionError("a fault of ours stays one")


def test_persons_that_are_no_number_are_nobody(tmp_path: Path) -> None:
    _, declared = files(tmp_path)
    path = tmp_path / "people.parquet"
    pl.DataFrame({"id": [1.0, float("nan")], "region": "North", "age": 3}).write_parquet(path)
    recipe = Tabulation(domain=read_domain_file(declared, by=BY), person="id")
    with pytest.raises(TableError, match=r"row 2: the person column 'id' is empty"):
        tabulate(path, recipe)


def test_bins_need_numbers(tmp_path: Path) -> None:
    _, declared = files(tmp_path)
    path = tmp_path / "people.parquet"
    pl.DataFrame({"region": "North", "age": [True]}).write_parquet(path)
    with pytest.raises(TableError, match=r"column 'age' is cut into bins and holds boolean"):
        tabulate(path, Tabulation(domain=read_domain_file(declared, by=BY)))


BAD_DOMAINS = {
    "not TOML": ("levels [", "not a domain in TOML"),
    "unknown key": (DOMAIN + 'paint = "red"', "unknown key; known are"),
    "not declared": (DOMAIN.replace("[columns.age]", "[columns.years]"),
                     "level column 'age' is declared nowhere"),
    "declared twice": (DOMAIN + '[nested.x]\ncolumns = ["age"]\ntree = ["1"]', "declared twice"),
    "levels and edges": (DOMAIN + "levels = [1]", "either levels"),
    "falling edges": (DOMAIN.replace("[0, 18", "[19, 18"), "edges must rise"),
    "one edge": (DOMAIN.replace("[0, 18, inf]", "[0]"), "two numbers or more"),
    "edge that is none": (DOMAIN.replace("18", "nan"), "two numbers or more"),
    "labels of bins": (DOMAIN.replace(', "adult"', ""), "3 edges make 2 bins, and there are 1"),
    "label twice": (DOMAIN.replace("South", "North"), "each of them once"),
    "empty label": (DOMAIN.replace("South", ""), "a label is empty"),
    "no labels": (DOMAIN.replace('"North", "South"', ""), "one label or more"),
    "labels that are none": (DOMAIN.replace('"South"', "1.5"), "texts in quotes"),
    "missing that is none": (DOMAIN + "missing = 3", "missing must be a label"),
    "no table": ("columns = 3", "write [columns.name]"),
    "two sources": (DOMAIN + '[nested.x]\ncolumns = ["a"]\nfile = "a"\ntree = []', "one of file"),
    "shallow tree": ('[nested.x]\ncolumns = ["region", "age"]\ntree = ["1"]', "as deep as"),
    "twins": ('[nested.x]\ncolumns = ["region", "age"]\nfile = "twins.csv"', "listed twice"),
    "no such file": ('[nested.x]\ncolumns = ["region", "age"]\nfile = "none.csv"', "no such file"),
    "no such hierarchy": ('[nested.x]\ncolumns = ["region", "age"]\nhierarchy = "none.hrc"',
                          "no such hierarchy file"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_DOMAINS)
def test_bad_domains_are_refused(name: str, tmp_path: Path) -> None:
    text, message = BAD_DOMAINS[name]
    (tmp_path / "twins.csv").write_text("region,age\nA,1\nA,1\n")
    with pytest.raises(TableError) as refusal:
        count(tmp_path, domain=text)
    assert message in str(refusal.value)
    assert str(tmp_path) in str(refusal.value)


def test_other_levels_must_be_declared_before_they_are_used(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="declares no other level for region"):
        count(tmp_path, outside="other")
    with pytest.raises(TableError, match="outside must be refuse or other"):
        count(tmp_path, outside="ignore")
    with pytest.raises(TableError, match="rows a person"):
        count(tmp_path, rows=0)


def test_a_product_that_is_too_large_is_refused_with_its_size(tmp_path: Path) -> None:
    levels = list(range(10_000))
    text = "".join(f"[columns.c{i}]\nlevels = {levels}\n" for i in range(3))
    path = tmp_path / "domain.toml"
    path.write_text(text)
    assert read_domain_file(path, by=("c0", "c1")).size == 10**8
    with pytest.raises(TableError, match="1,000,000,000,000 cells, and the most is 10,000,000,000"):
        read_domain_file(path, by=("c0", "c1", "c2"))


GOOD = ("--by", "region,age", "--domain", "domain.toml")


def test_tabulate_then_release(tmp_path: Path) -> None:
    files(tmp_path)
    done = run("tabulate", "people.csv", *GOOD, "--person", "id", "-o", "cells.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "CONFIDENTIAL" in done.stdout
    assert stat.S_IMODE((tmp_path / "cells.csv").stat().st_mode) == 0o600
    cells = pl.read_csv(tmp_path / "cells.csv")
    assert cells.columns == ["region", "age", "count"]
    assert cells["count"].sum() == 3
    more = ("--cells-are-public", "--epsilon", "50", "--out", "r", "--json")
    released = run("release", "cells.csv", "--by", "region,age", *more, cwd=tmp_path)
    assert released.returncode == 0, released.stderr
    assert read_release(tmp_path / "r").counts[0][0] == 3


def test_release_from_records_states_its_choices_in_the_plan(tmp_path: Path) -> None:
    files(tmp_path, domain='other = "else"\n' + DOMAIN, records=RECORDS + "4,Mars,1\n")
    choices = ("--by", "region,age", "--person", "id", "--rows", "2", "--outside", "other")
    planned = call(
        "plan", "domain.toml", *choices, "--epsilon", 100, "--out", "plan.toml", cwd=tmp_path
    )
    assert planned.returncode == 0, planned.stderr
    released = call(
        "release", "--records", "people.csv", "--plan", "plan.toml", "--domain", "domain.toml",
        "--out", "r", "--json", cwd=tmp_path,
    )  # fmt: skip
    assert released.returncode == 0, released.stderr
    plan = json.loads(released.stdout)["plan"]
    assert (plan["person"], plan["rows"], plan["outside"]) == ("id", 2, "other")
    release = read_release(tmp_path / "r")
    assert release.plan.outside == "other"
    assert dict(zip(release.hierarchy.labels[0], release.counts[1], strict=True)) == {
        "North": 1, "South": 3, "else": 1
    }  # fmt: skip
    assert "at most 2 rows of the records" in (tmp_path / "r" / "certificate.html").read_text()


def test_json_stands_alone_and_shows_no_count(tmp_path: Path) -> None:
    files(tmp_path)
    done = call("tabulate", "people.csv", *GOOD, "-o", "cells.parquet", "--json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert data["confidential"] is True
    assert data["levels"][2] == {"level": "age", "nodes": 4}
    assert pl.read_parquet(tmp_path / "cells.parquet")["count"].to_list() == [1, 0, 1, 2]


BAD = {
    "no domain": (("people.csv", "--by", "region,age"), "public list of cells"),
    "unreadable engine": (("people.csv", *GOOD, "--engine", "nonsense"), "'nonsense' is not known"),
    "unknown engine": (("people.csv", *GOOD, "--engine", "nope://me:secret@x"), "is not known"),
    "missing driver": (("people.csv", *GOOD, "--engine", "trino://me:secret@x"),
                       'pip install "ibis-framework[trino]"'),
    "no such database": (("people", *GOOD, "--engine", "duckdb://nowhere.duckdb"), "reached"),
    "no such file": (("nobody.csv", *GOOD), "no such file"),
    "no such table": (("nobody", *GOOD), "nor a table of engine 'duckdb'"),
    "another format": (("people.pdf", *GOOD), "nor a table of engine 'duckdb'"),
    "rows of nobody": (("people.csv", *GOOD, "--rows", 2), "--rows needs --person"),
    "outside": (("people.csv", *GOOD, "--outside", "drop"), "outside must be refuse or other"),
    "unknown level": (("bad.csv", *GOOD), "bad.csv, row 2: column 'region'"),
    "null person": (("null.csv", *GOOD, "--person", "id"), "null.csv, row 3: the person column"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_ends_with_2_and_writes_nothing(name: str, tmp_path: Path) -> None:
    arguments, message = BAD[name]
    files(tmp_path)
    (tmp_path / "bad.csv").write_text("region,age\nSecret,1\n")
    (tmp_path / "null.csv").write_text("id,region,age\n1,North,1\n,South,1\n")
    before = sorted(tmp_path.iterdir())
    done = call("tabulate", *arguments, "-o", "cells.parquet", cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert "secret" not in done.stderr.lower()
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "either a table of cells or --records"),
        (("people.csv", "--records", "people.csv"), "either a table of cells or --records"),
        (("people.csv", "--person", "id"), "--person bounds the rows of records"),
        (("--records", "people.csv", "--cells-are-public"), "leave --cells-are-public out"),
    ],
)
def test_a_release_starts_from_one_thing(
    arguments: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    files(tmp_path)
    done = call("release", *arguments, *GOOD, "--epsilon", 1, "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "r").exists()
