"""Records of any file, and of data frames, are counted into the same cells."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyreadstat
import pytest

from countwise.errors import TableError
from countwise.tables.dialect import Reading
from countwise.tables.domain import Domain
from countwise.tables.domainfile import read_domain_file
from countwise.tables.tabulate import Tabulation, tabulate
from test_tabulate_refusals import call

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis

DOMAIN = """[columns.region]
levels = ["01", "Öst"]
[columns.age]
edges = [0, 18, 65, inf]
labels = ["0-17", "18-64", "65+"]
"""
PEOPLE = pl.DataFrame(
    {"id": [1, 1, 2, 3], "region": ["01", "01", "Öst", "Öst"], "age": [3, 3, 64, 90]}
)
CSV = PEOPLE.write_csv()


def write_sav(path: Path) -> None:
    pyreadstat.write_sav(PEOPLE.to_pandas(), str(path))


FILES: dict[str, tuple[Callable[[Path], object], Reading]] = {
    "p.csv": (lambda path: path.write_text(CSV), Reading()),
    "semicolons.csv": (lambda path: path.write_text(CSV.replace(",", ";")), Reading()),
    "titles.csv": (lambda path: path.write_text("People\n\n" + CSV), Reading(skip=2)),
    "spaces.txt": (lambda path: path.write_text(CSV.replace(",", " \t ")), Reading()),
    "utf16.csv": (lambda path: path.write_bytes(CSV.encode("utf-16")), Reading()),
    "latin1.csv": (
        lambda path: path.write_bytes(CSV.encode("latin-1")), Reading(encoding="latin-1"),
    ),
    "p.xlsx": (PEOPLE.write_excel, Reading()),
    "p.arrow": (PEOPLE.write_ipc, Reading()),
    "p.sav": (write_sav, Reading()),
    "p.parquet": (PEOPLE.write_parquet, Reading()),
}  # fmt: skip
FRAMES: dict[str, Callable[[], object]] = {
    "polars": lambda: PEOPLE, "pandas": PEOPLE.to_pandas, "arrow": PEOPLE.to_arrow,
}  # fmt: skip


@pytest.fixture
def domain(tmp_path: Path) -> Domain:
    (tmp_path / "d.toml").write_text(DOMAIN)
    return read_domain_file(tmp_path / "d.toml", by=("region", "age"))


@pytest.mark.parametrize("name", FILES)
def test_files_of_records(name: str, tmp_path: Path, domain: Domain) -> None:
    write, reading = FILES[name]
    write(tmp_path / name)
    table = tabulate(tmp_path / name, Tabulation(domain=domain, reading=reading))
    assert table.reveal().tolist() == [2, 0, 0, 0, 1, 1]
    bounded = Tabulation(domain=domain, reading=reading, person="id", rows=1)
    assert tabulate(tmp_path / name, bounded).reveal().tolist() == [1, 0, 0, 0, 1, 1]


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_records(name: str, domain: Domain) -> None:
    recipe = Tabulation(domain=domain, person="id", rows=1)
    assert tabulate(FRAMES[name](), recipe).reveal().tolist() == [1, 0, 0, 0, 1, 1]


@pytest.mark.parametrize(
    ("name", "row"), [("p.csv", 6), ("titles.csv", 8), ("utf16.csv", 6), ("p.xlsx", 6)]
)
def test_records_that_are_in_no_cell_are_told_by_their_row(
    name: str, row: int, tmp_path: Path, domain: Domain
) -> None:
    write, reading = FILES[name]
    write(tmp_path / name)
    path = tmp_path / name
    if name == "p.xlsx":
        pl.concat([PEOPLE, PEOPLE[:1].with_columns(region=pl.lit("Zq7"))]).write_excel(path)
    else:
        encoding = "utf-16" if name == "utf16.csv" else "utf-8"
        path.write_bytes((path.read_bytes().decode(encoding) + "4,Zq7,3\n").encode(encoding))
    with pytest.raises(TableError, match=rf"row {row}: column 'region' has no level") as refusal:
        tabulate(path, Tabulation(domain=domain, reading=reading))
    assert "Zq7" not in str(refusal.value)


def test_commands_count_records_of_any_file(tmp_path: Path, domain: Domain) -> None:
    assert domain.size == 6
    FILES["titles.csv"][0](tmp_path / "p.csv")
    common = ("--by", "region,age", "--domain", "d.toml", "--skip", 2)
    done = call("tabulate", "p.csv", *common, "--out", "c.csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = call("release", "--records", "p.csv", *common, "--epsilon", 500, "--out", "r",
                cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    released = (tmp_path / "r" / "counts.csv").read_text()
    assert "01,0-17,age,2" in released
