"""Tables that cross, by command: from cells or records to a folder, paid for, or refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.arrays import IntArray
from countwise.cli import app
from countwise.errors import BudgetError, InputError
from countwise.release.crossed_release import CrossedRelease
from countwise.tables.hierarchy import Hierarchy

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)
HRC = "young\n@0-9\n@10-19\nold\n@20-29\n@30-99\n"
DOMAIN = """
[nested.place]
columns = ["state", "county"]
tree = {N = ["a", "b"], S = ["c"]}
[nested.age]
columns = ["band", "year"]
hierarchy = "ages.hrc"
code = "group"
[columns.sex]
levels = ["f", "m"]
"""
ACROSS = ("--by", "state,county", "--across", "age: band > year, sex")
PLACES = [("N", "a"), ("N", "b"), ("S", "c")]
GROUPS = ["0-9", "10-19", "20-29", "30-99"]


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def read(folder: Path) -> CrossedRelease:
    made = cw.read_release(folder)
    assert isinstance(made, CrossedRelease)
    return made


@pytest.fixture
def records(tmp_path: Path) -> Path:
    """A thousand people, of whom some have two rows, and the domain of their cells."""
    rng = np.random.default_rng(2)
    places = [PLACES[i] for i in rng.integers(0, 3, 1000)]
    frame = pl.DataFrame(places, schema=["state", "county"], orient="row").with_columns(
        group=pl.Series([GROUPS[i] for i in rng.integers(0, 4, 1000)]),
        sex=pl.Series(["fm"[i] for i in rng.integers(0, 2, 1000)]),
        id=pl.Series(rng.integers(0, 900, 1000)),
    )
    frame.write_parquet(tmp_path / "people.parquet")
    (tmp_path / "domain.toml").write_text(DOMAIN)
    (tmp_path / "ages.hrc").write_text(HRC)
    return tmp_path / "people.parquet"


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    rows = [(*place, b, y, s) for place in PLACES for b, y in
            [("young", "0-9"), ("young", "10-19"), ("old", "20-29"), ("old", "30-99")]
            for s in "fm"]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["state", "county", "band", "year", "sex"], orient="row")
    frame.with_columns(n=pl.int_range(pl.len()) * 3).write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def release(cells: Path, *more: object, out: str = "r") -> str:
    return run("release", cells, *ACROSS, "--count", "n", "--cells-are-public",
               "--out", cells.parent / out, *more)  # fmt: skip


def test_cells_become_tables(cells: Path) -> None:
    said = release(cells, "--rho", "1/2", "--tables", "county*band*sex, state*year")
    made = read(cells.parent / "r")
    assert [made.workload.name(each) for each in made.workload.margins] == [
        "total", "county", "band", "county*band", "sex", "county*sex", "band*sex",
        "county*band*sex", "state", "year", "state*year",
    ]  # fmt: skip
    for each in made.accuracy:
        assert each.table in said
    assert "ρ = 0.5" in said


def test_records_become_the_same_cells_as_their_tabulation(records: Path) -> None:
    """With next to no noise what is released are the counts of the records, grouped by hand."""
    folder, domain = records.parent, ("--domain", records.parent / "domain.toml")
    huge = ("--epsilon", 100_000, "--tables", "county:year:sex, band:state")
    run("release", "--records", records, *domain, *ACROSS, *huge, "--out", folder / "r")
    bands = {"0-9": "young", "10-19": "young", "20-29": "old", "30-99": "old"}
    people = pl.read_parquet(records).with_columns(
        year=pl.col("group"), band=pl.col("group").replace_strict(bands)
    )
    made = read(folder / "r").table()
    for by in (["state", "county", "band", "year", "sex"], ["state", "band"]):
        name = "county*year*sex" if len(by) == 5 else "state*band"
        found = made.filter(pl.col("level") == name).select(pl.col(by).cast(pl.String), "count")
        counted = people.group_by(by).len("count").with_columns(pl.col("count").cast(pl.Int64))
        assert found.filter(pl.col("count") > 0).sort(by).equals(counted.sort(by))
    run("tabulate", records, *domain, *ACROSS, "--out", folder / "cells.parquet")
    run("release", folder / "cells.parquet", *ACROSS, "--cells-are-public", *huge,
        "--out", folder / "again")  # fmt: skip
    again = read(folder / "again").table()
    assert again.drop("low", "high").equals(made.drop("low", "high"))


def test_the_rows_of_a_person_are_bounded(records: Path) -> None:
    domain, folder = ("--domain", records.parent / "domain.toml"), records.parent
    person = ("--person", "id", "--rows", 1, "--epsilon", 100_000)
    run("release", "--records", records, *domain, *ACROSS, *person, "--out", folder / "r")
    people = pl.read_parquet(records)["id"].n_unique()
    assert read(folder / "r").counts[0].sum() == people < 1000


def test_a_plan_says_what_it_gives_and_is_released(cells: Path) -> None:
    plan = cells.parent / "plan.toml"
    run("plan", cells, *ACROSS, "--epsilon", 1, "--out", plan)
    dear = run("plan", cells, *ACROSS, "--epsilon", 1, "--split", "even")
    assert "Losses in ε add up table by table" in dear
    assert "--rho 0.5" in dear
    data = json.loads(run("plan", cells, "--plan", plan, "--json"))
    names = [each["table"] for each in data["tables"]]
    assert names[0] == "total"
    assert "county*year*sex" in names
    assert all(each["error95_fitted"] > 0 for each in data["tables"])
    quiet = run("plan", cells, *ACROSS, "--rho", "1/2")
    assert "add up table by table" not in quiet
    run("release", cells, "--plan", plan, "--count", "n", "--cells-are-public",
        "--out", cells.parent / "r")  # fmt: skip
    assert [each.table for each in read(cells.parent / "r").accuracy] == names


def test_a_release_is_charged_before_its_table_is_read(cells: Path) -> None:
    ledger = f"sqlite:///{cells.parent}/l.db"
    run("ledger", "grant", ledger, "--dataset", "people", "--rho", 1)
    paid = ("--ledger", ledger, "--dataset", "people")
    assert "ρ = 0.5" in release(cells, "--rho", "1/2", *paid)
    faulty = cells.parent / "faulty.csv"
    faulty.write_text(cells.read_text().replace("f,0\n", "f,-7\n", 1))
    with pytest.raises(InputError, match="is negative") as refusal:
        release(faulty, "--rho", "1/2", *paid, out="two")
    assert "stays charged" in refusal.value.__notes__[0]
    with pytest.raises(BudgetError, match="ρ = 0 left"):
        release(cells, "--rho", "1/2", *paid, out="three")
    release(cells, "--rho", "1/2", *paid, out="two")
    assert read(cells.parent / "two").budget.loss == 0.5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--tables", "county*yeer"], "Did you mean 'year'"),
        (["--tables", "county*year*sex, sex:year"], "is listed twice"),
        (["--tables", "county*year"], "'sex' is in no table"),
        (["--across", "state"], "belongs to two variables"),
        (["--adjust", "mode"], "least-squares, auto"),
        (["--mechanism", "joint"], "along one tree"),
        (["--engine", "spark"], "counts records of tables that cross"),
        (["--split", "county*yeer=1"], "Did you mean 'year'"),
        (["--across", "age: year > band, sex"], "no tree from coarse to fine"),
        (["--across", "age: band > years, sex"], "no column 'years'"),
    ],
)
def test_bad_input_is_refused_in_clear_words(cells: Path, more: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said) as refusal:
        release(cells, "--epsilon", 1, *more)
    assert refusal.value.exit_code == 2
    assert not (cells.parent / "r").exists()


def test_rows_that_are_no_cells_are_refused(cells: Path) -> None:
    text = cells.read_text()
    twice = cells.parent / "twice.csv"
    twice.write_text(text + text.splitlines()[-1] + "\n")
    with pytest.raises(InputError, match="row 26: duplicate of the cell in row 25"):
        release(twice, "--epsilon", 1)
    short = cells.parent / "short.csv"
    short.write_text("\n".join(line for line in text.splitlines() if "S,c" not in line))
    with pytest.raises(InputError, match="is not in the domain"):
        run("release", cells, *ACROSS, "--count", "n", "--epsilon", 1, "--domain", short,
            "--out", cells.parent / "r")  # fmt: skip


def test_income_by_five_variables(income_cells: tuple[Hierarchy, IntArray], tmp_path: Path) -> None:
    """16,800 cells, every table of up to three variables of them, by command."""
    hierarchy, counts = income_cells
    file = tmp_path / "income.csv"
    hierarchy.frame(len(hierarchy.by), n=counts).drop("level").write_csv(file)
    by, *across = hierarchy.by
    asked = ["--by", by, "--across", ",".join(across), "--rho", "1/2"]
    plan = json.loads(run("plan", file, *asked, "--json"))
    made: dict[str, Any] = json.loads(
        run("release", file, *asked, "--count", "n", "--cells-are-public", "--out", tmp_path / "r",
            "--json")
    )  # fmt: skip
    assert made["format"] == 2
    back = read(tmp_path / "r")
    true = {
        each: back.workload.sums(counts.reshape(back.workload.shape), each)
        for each in back.workload.margins
    }
    expected = {each["table"]: each["error95_fitted"] for each in plan["tables"]}
    for each, released in zip(back.workload.margins, back.counts, strict=True):
        error = np.sqrt(np.mean((released - true[each]) ** 2.0))
        name, counted = back.workload.name(each), released.size
        assert error < (1.3 + 5 / counted**0.5) * expected[name] / 1.96 + 1, name


def test_tables_are_drawn_and_exchanged(cells: Path) -> None:
    """Wide, SDMX and Excel have the released counts where people look for them."""
    folder = cells.parent
    release(cells, "--rho", "1/2", "--tables", "county*band*sex, state*year")
    made = read(folder / "r")
    with pytest.raises(InputError, match=r"--table: county\*band\*sex, state\*year"):
        run("convert", folder / "r", "--to", "wide", "--out", folder / "w.csv")
    run("convert", folder / "r", "--to", "wide", "--table", "year:state", "--out", folder / "w.csv")
    wide = pl.read_csv(folder / "w.csv")
    years = ["20-29", "30-99", "old", "0-9", "10-19", "young", "Total"]
    assert wide.columns == ["state", *years]
    counts = dict(zip(made.workload.margins, made.counts, strict=True))
    by_name = {made.workload.name(each): counts[each] for each in counts}
    assert wide.filter(pl.col("state") == "Total")["Total"].sum() == by_name["total"].sum()
    state = wide.filter(state="N").select("0-9", "10-19").row(0)
    table = made.table().filter(pl.col("level") == "state*year", state="N", band="young")
    assert state == tuple(table.sort("year")["count"])
    run("convert", folder / "r", "--to", "sdmx", "--out", folder / "s.csv")
    sdmx = pl.read_csv(folder / "s.csv")
    assert len(sdmx) == made.size
    assert sdmx.filter(pl.all_horizontal(pl.col(made.workload.by) == "_T"))["OBS_VALUE"].item() == (
        by_name["total"].item()
    )


def test_a_workbook_has_a_sheet_a_table(cells: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    folder = cells.parent
    release(cells, "--rho", "1/2", "--tables", "county*band*sex, state*year")
    run("convert", folder / "r", "--out", folder / "r.xlsx")
    book = openpyxl.load_workbook(folder / "r.xlsx")
    assert book.sheetnames == ["Certificate", "1 county band sex", "2 state year", "Counts"]
    drawn = read(folder / "r").drawn(read(folder / "r").finest[1])
    rows = list(book["2 state year"].values)
    assert rows[1][: drawn.width] == tuple(drawn.columns)
    assert [row[: drawn.width] for row in rows[2:]] == [tuple(row) for row in drawn.rows()]
    table = read(folder / "r").table().filter(pl.col("level") == "state*year", state="N")
    low = rows[0].index("Range from")
    assert rows[2][low : low + 2] == tuple(table.sort("year").filter(band="old")["low"])


def test_the_noisy_tables_of_a_folder_are_adjusted_again(cells: Path) -> None:
    folder = cells.parent
    release(cells, "--rho", "1/2")
    said = run("adjust", folder / "r", "--method", "least-squares", "--out", folder / "a.csv",
               "--json")  # fmt: skip
    assert json.loads(said)["method"] == "least-squares"
    made, again = read(folder / "r"), pl.read_csv(folder / "a.csv")
    made.check_counts(made.split(again["count"]))
    assert again["level"].to_list() == made.table()["level"].to_list()
    with pytest.raises(InputError, match="--method must be one of least-squares, auto"):
        run("adjust", folder / "r", "--method", "mode", "--out", folder / "b.csv")


def test_targets_say_what_they_need(cells: Path) -> None:
    plan = cells.parent / "plan.toml"
    text = """
by = ["state", "county"]
rho = "LOSS"
[variables.age]
levels = ["band", "year"]
[variables.sex]
levels = ["sex"]
[[tables]]
by = "county:band:sex"
within = 5
[[tables]]
by = "state*year"
"""
    plan.write_text(text.replace("LOSS", "0.01"))
    little = json.loads(run("plan", cells, "--plan", plan, "--json"))
    assert "NOT met" in run("plan", cells, "--plan", plan)
    plan.write_text(text.replace("LOSS", little["least_rho"]))
    assert "are met" in run("plan", cells, "--plan", plan)
    enough = json.loads(run("plan", cells, "--plan", plan, "--json"))
    found = {each["table"]: each["error95_fitted"] for each in enough["tables"]}
    assert 4.9 < found["county*band*sex"] <= 5.0


def test_zeros_of_a_domain_and_exact_tables(records: Path) -> None:
    """Zeros come from the domain file, or as flags; with someone in one nothing is released."""
    folder, domain = records.parent, records.parent / "domain.toml"
    domain.write_text('zeros = ["band=young,sex=m"]\n' + DOMAIN)
    asked = ("--domain", domain, *ACROSS, "--rho", "1/2", "--exact", "state")
    with pytest.raises(InputError, match="can only be zero, and the table has someone"):
        run("release", "--records", records, *asked, "--out", folder / "r")
    assert not (folder / "r").exists()
    people = pl.read_parquet(records)
    young = pl.col("group").is_in(["0-9", "10-19"])
    people = people.with_columns(pl.when(young).then(pl.lit("f")).otherwise("sex").alias("sex"))
    people.write_parquet(records)
    said = run("release", "--records", records, *asked, "--out", folder / "r")
    assert "published exactly as they are" in said
    made = read(folder / "r").table()
    rows = made.filter(pl.col("level") == "band*sex", band="young", sex="m")
    assert rows.select("count", "low", "high").rows() == [(0, 0, 0)]
    states = made.filter(pl.col("level") == "state").sort("state")["count"].to_list()
    assert states == people.group_by("state").len().sort("state")["len"].to_list()
    planned = run("plan", domain, *ACROSS, "--rho", "1/2", "--exact", "state")
    assert "published exactly as they are" in planned


def test_a_plan_reads_the_table_as_the_release_does(cells: Path) -> None:
    """Title lines, another separator, and rows of totals: said once, and meant by both."""
    table = pl.read_csv(cells, infer_schema=False)
    totals = pl.DataFrame({name: ["Total"] for name in table.columns if name != "n"})
    whole = str(table["n"].cast(pl.Int64).sum())
    table = pl.concat([table, totals.with_columns(n=pl.lit(whole)).select(table.columns)])
    odd = cells.with_name("odd.csv")
    odd.write_text("People\n\n" + table.write_csv(separator=";"))
    said = ("--skip", 2, "--separator", ";", "--total-code", "Total", "--count", "n")
    shape = ("table", "counts")
    tables = [
        [{name: each[name] for name in shape} for each in json.loads(found)["tables"]]
        for found in (
            run("plan", odd, *ACROSS, *said, "--rho", "1/2", "--json"),
            run("plan", cells, *ACROSS, "--rho", "1/2", "--json"),
        )
    ]
    assert tables[0] == tables[1]
    with pytest.raises(InputError, match="--total-code"):
        run("plan", odd, *ACROSS, *said[:4], "--count", "n", "--rho", "1/2")


def test_everyone_together_is_a_table_too(cells: Path) -> None:
    run("release", cells, *ACROSS, "--count", "n", "--cells-are-public", "--rho", 1,
        "--out", cells.parent / "r")  # fmt: skip
    run("convert", cells.parent / "r", "--to", "wide", "--table", "total",
        "--out", cells.parent / "t.csv")  # fmt: skip
    assert pl.read_csv(cells.parent / "t.csv").shape == (1, 1)
    posterior = cw.infer(read(cells.parent / "r"))
    assert posterior.sum(year=["0-9"], sex="f").mean == posterior.sum("year=0-9, sex=f").mean
