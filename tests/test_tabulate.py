"""Records into cells: against plain group-bys, neighbours, and refusals that say where."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import psycopg
import pytest

from countwise.errors import TableError
from countwise.release.plan import Plan
from countwise.tables import engines
from countwise.tables import tabulate as tabulation_module
from countwise.tables.confidential import Confidential
from countwise.tables.crossed_cells import read_crossed_domain, variables_of
from countwise.tables.domainfile import read_domain_file
from countwise.tables.reading import read_domain
from countwise.tables.tabulate import Tabulation, as_text, tabulate, tabulate_across
from databases import postgres_server

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)

BY = ("state", "county", "race", "age")
DOMAIN = """
other = "elsewhere"

[columns.race]
levels = ["a", "b"]
missing = "unknown"

[columns.age]
edges = [0, 18, 65, inf]
labels = ["child", "adult", "old"]
missing = "no age"

[nested.geography]
columns = ["state", "county"]
tree = { North = ["01", "02"], South = ["01"] }
missing = "nowhere"
"""
PLACES = {("North", "01"), ("North", "02"), ("South", "01")}


def people(size: int, *, seed: int) -> pl.DataFrame:
    """Records with every kind of trouble: nulls, unknown labels, values on the edges."""
    rng = np.random.default_rng(seed)

    def draw(*values: object) -> list[object]:
        return [values[i] for i in rng.integers(0, len(values), size)]

    return pl.DataFrame(
        {
            "id": rng.integers(0, size // 4 + 1, size),
            "state": draw("North", "South", "South", None),
            "county": draw("01", "02"),
            "race": draw("a", "b", "b", "z", None, ""),
            "age": draw(0.0, 17.9, 18.0, 64.0, 65.0, 1e6, -1.0, None, float("nan")),
        }
    )


def cell(row: dict[str, object]) -> tuple[str, ...]:
    """Where a record belongs, in plain Python."""
    place = (row["state"], row["county"])
    race, age = row["race"], row["age"]
    if None in place:
        place = ("nowhere", "nowhere")
    elif place not in PLACES:
        place = ("elsewhere", "elsewhere")
    race = race if race in ("a", "b") else "elsewhere" if race else "unknown"
    if age is None or np.isnan(age):
        band = "no age"
    else:
        band = "elsewhere" if age < 0 else "child" if age < 18 else "adult" if age < 65 else "old"
    return (*place, race, band)


def counts(table: Confidential) -> Counter[tuple[str, ...]]:
    depth = len(table.hierarchy.by)
    return Counter(
        {table.hierarchy.path(depth, i): int(n) for i, n in enumerate(table.reveal()) if n}
    )


def save(frame: pl.DataFrame, folder: Path, name: str = "people.parquet") -> Path:
    path = folder / name
    frame.write_parquet(path) if name.endswith("parquet") else frame.write_csv(path)
    return path


def recipe(folder: Path, text: str = DOMAIN, *, by: tuple[str, ...] = BY, **how: object):
    path = folder / "domain.toml"
    path.write_text(text)
    return Tabulation(domain=read_domain_file(path, by=by), **({"outside": "other"} | how))


@pytest.fixture
def frozen_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabulation_module, "fresh_key", lambda: "0123")


@pytest.mark.parametrize("name", ["people.parquet", "people.csv"])
def test_counts_are_those_of_a_plain_group_by(name: str, tmp_path: Path) -> None:
    frame = people(3000, seed=1)
    table = tabulate(save(frame, tmp_path, name), recipe(tmp_path))
    assert counts(table) == Counter(map(cell, frame.iter_rows(named=True)))
    assert table.hierarchy.sizes == (1, 4, 5, 20, 100)
    assert repr(table) == "Confidential(1 total, 4 state, 5 county, 20 race, 100 age)"


def test_the_order_of_level_columns_is_that_of_by(tmp_path: Path) -> None:
    frame = people(500, seed=2)
    path = save(frame, tmp_path)
    by = ("age", "county", "race", "state")
    table = tabulate(path, recipe(tmp_path, by=by))
    expected = Counter((d, b, c, a) for a, b, c, d in map(cell, frame.iter_rows(named=True)))
    assert counts(table) == expected


def test_columns_left_out_of_by_are_summed_over(tmp_path: Path) -> None:
    frame = people(500, seed=3).with_columns(state=pl.lit("North"))
    table = tabulate(save(frame, tmp_path), recipe(tmp_path, by=("state", "race")))
    expected = Counter((c[0], c[2]) for c in map(cell, frame.iter_rows(named=True)))
    assert counts(table) == expected


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_each_person_counts_so_many_rows_and_no_more(rows: int, tmp_path: Path) -> None:
    frame = people(2000, seed=4)
    table = tabulate(save(frame, tmp_path), recipe(tmp_path, person="id", rows=rows))
    by_person = Counter(frame["id"])
    assert table.reveal().sum() == sum(min(rows, n) for n in by_person.values())
    every = Counter(map(cell, frame.iter_rows(named=True)))
    assert counts(table) <= every


@pytest.mark.usefixtures("frozen_key")
def test_the_order_of_records_does_not_matter(tmp_path: Path) -> None:
    frame, how = people(2000, seed=5), recipe(tmp_path, person="id", rows=2)
    first = tabulate(save(frame, tmp_path), how)
    for seed in (1, 2):
        shuffled = frame.sample(fraction=1, shuffle=True, seed=seed)
        again = tabulate(save(shuffled, tmp_path, "shuffled.parquet"), how)
        assert counts(again) == counts(first)


@pytest.mark.usefixtures("frozen_key")
def test_neighbours_differ_by_no_more_than_the_sensitivity(tmp_path: Path) -> None:
    """A person with many rows comes, goes, or turns into another: every level moves as declared."""
    rng = np.random.default_rng(6)
    frame = people(300, seed=6)
    for trial in range(6):
        rows = int(rng.integers(1, 4))
        how = recipe(tmp_path, person="id", rows=rows)
        mine, other = (
            people(12, seed=s).with_columns(id=pl.lit(-1, pl.Int64)) for s in (trial, 99 - trial)
        )
        tables = [
            tabulate(
                save(pl.concat([frame, extra]).sample(fraction=1, shuffle=True), tmp_path), how
            )
            for extra in (frame.clear(), mine, other)
        ]
        sums = [table.hierarchy.sums(table.reveal()) for table in tables]
        for pair, neighbours in (((0, 1), "add-remove"), ((1, 2), "replace-one")):
            budget = Plan(epsilon=1, rows=rows, neighbours=neighbours).budget(tables[0].hierarchy)
            for level, a, b in zip(budget.levels, sums[pair[0]], sums[pair[1]], strict=True):
                assert np.abs(a - b).sum() <= level.sensitivity
        assert np.abs(sums[0][-1] - sums[1][-1]).sum() == rows, "the bound is reached"


def test_every_row_is_as_likely_to_stay_and_each_run_chooses_anew(tmp_path: Path) -> None:
    """Five rows in one cell and one in another: the one stays for a sixth of the people."""
    size = 3000
    rows = ["a", "a", "a", "b", "a", "a"] * size
    frame = pl.DataFrame({"id": np.repeat(np.arange(size), 6), "x": rows})
    text = '[columns.x]\nlevels = ["a", "b"]'
    how = recipe(tmp_path, text, by=("x",), person="id", outside="refuse")
    path = save(frame, tmp_path)
    kept = [int(tabulate(path, how).reveal()[1]) for _ in range(3)]
    deviation = np.sqrt(size * 5 / 36)
    assert all(abs(n - size / 6) < 6 * deviation for n in kept)
    assert len(set(kept)) > 1, "a fresh key in every run"


def test_codes_keep_their_zeros_and_whole_numbers_have_no_point(tmp_path: Path) -> None:
    text = '[columns.code]\nlevels = ["007", "7"]'
    path = tmp_path / "codes.csv"
    path.write_text("code\n007\n7\n7\n")
    how = recipe(tmp_path, text, by=("code",), outside="refuse")
    assert tabulate(path, how).reveal().tolist() == [1, 2]
    floats = save(pl.DataFrame({"code": [7.0, 7.0]}), tmp_path, "floats.parquet")
    assert tabulate(floats, how).reveal().tolist() == [0, 2]
    assert as_text(pl.Series([1.0, 1.5, None, float("nan")])).to_list() == ["1", "1.5", None, None]


def test_many_edges_agree_with_a_sorted_search(tmp_path: Path) -> None:
    edges = list(range(0, 101, 3))
    values = np.random.default_rng(7).uniform(0, 99, 2000)
    path = save(pl.DataFrame({"v": values}), tmp_path)
    how = recipe(tmp_path, f"[columns.v]\nedges = {edges}", by=("v",), outside="refuse")
    expected = np.bincount(np.searchsorted(edges, values, side="right") - 1, minlength=33)
    named = {f"[{edges[i]}, {edges[i + 1]})": int(n) for i, n in enumerate(expected)}
    got = tabulate(path, how)
    assert {k[0]: n for k, n in counts(got).items()} == {k: n for k, n in named.items() if n}


def test_results_in_many_batches_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 400_000
    path = save(pl.DataFrame({"x": np.arange(size)}), tmp_path)
    text = '[columns.x]\nlevels = [0, 399999]\nother = "more"'
    monkeypatch.setattr(engines, "BATCH", 1)
    assert tabulate(path, recipe(tmp_path, text, by=("x",))).reveal().tolist() == [1, 1, size - 2]


def test_a_list_of_cells_is_a_domain_too(tmp_path: Path) -> None:
    cells = tmp_path / "cells.csv"
    cells.write_text("state,county\nNorth,01\nNorth,02\nSouth,01\n")
    frame = pl.DataFrame({"state": ["South", "North"], "county": ["01", "02"]})
    domain = read_domain_file(cells, by=("state", "county"))
    table = tabulate(save(frame, tmp_path), Tabulation(domain=domain))
    assert table.reveal().tolist() == [0, 1, 1]
    (tmp_path / "d.toml").write_text(
        '[nested.g]\ncolumns = ["state", "county"]\nfile = "cells.csv"\n'
        '[columns.sex]\nlevels = ["f", "m"]\n'
    )
    assert read_domain(tmp_path / "d.toml", by=("state", "county", "sex")).sizes == (1, 2, 3, 6)
    assert read_domain(tmp_path / "d.toml", by=("sex", "state")).sizes == (1, 2, 4)


def test_records_may_hold_the_codes_of_a_hierarchy(tmp_path: Path) -> None:
    (tmp_path / "place.hrc").write_text("North\n@N1\n@N2\nSouth\n@S1\nIsland\n")
    text = (
        '[nested.place]\ncolumns = ["region", "town"]\nhierarchy = "place.hrc"\ncode = "place"\n'
        'other = "elsewhere"\n'
    )
    path = save(pl.DataFrame({"place": ["N1", "N1", "S1", "Island", "North", "?"]}), tmp_path)
    table = tabulate(path, recipe(tmp_path, text, by=("region", "town")))
    assert counts(table) == {
        ("North", "N1"): 2, ("South", "S1"): 1, ("Island", "Island"): 1,
        ("elsewhere", "elsewhere"): 2,
    }  # fmt: skip
    upper = tabulate(path, recipe(tmp_path, text, by=("region",)))
    assert counts(upper) == {("North",): 2, ("South",): 1, ("Island",): 1, ("elsewhere",): 2}


def test_the_example_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[1] / "docs" / "records.md").read_text()
    blocks = re.findall(r"```(toml|python)\n(.*?)```", page, flags=re.DOTALL)
    assert [kind for kind, _ in blocks] == ["toml", "python", "python", "python"]
    (tmp_path / "counties.csv").write_text("state,county\nN,1\nN,2\nS,1\n")
    (tmp_path / "domain.toml").write_text(blocks[0][1])
    frame = pl.DataFrame(
        {"id": [1, 2], "state": "N", "county": ["2", "?"], "race": ["White", None]}
    )
    save(frame.with_columns(age=pl.Series([17, 18])), tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(blocks[1][1], names)
    assert counts(names["table"]) == {  # type: ignore[arg-type]
        ("N", "2", "White"): 1, ("elsewhere", "elsewhere", "not stated"): 1
    }  # fmt: skip
    ages = Tabulation(domain=read_domain_file("domain.toml", by=("age", "race")))
    assert set(counts(tabulate("people.parquet", ages))) == {
        ("0-17", "White"),
        ("18-64", "not stated"),
    }


def test_edges_cut_the_numbers_of_another_column(tmp_path: Path) -> None:
    """A band is called band while the records have ages; one column makes one level."""
    frame = people(300, seed=4)
    text = DOMAIN.replace("[columns.age]", '[columns.band]\ncolumn = "age"')
    by = (*BY[:3], "band")
    found = tabulate(save(frame, tmp_path), recipe(tmp_path, text, by=by))
    assert counts(found) == Counter(map(cell, frame.iter_rows(named=True)))
    assert found.hierarchy.by == by
    with pytest.raises(TableError, match="column 'age' of the records is read for two levels"):
        recipe(tmp_path, text + "\n[columns.age]\nedges = [0, 9]\n", by=(*by, "age"))
    wrong = text.replace('levels = ["a", "b"]', 'levels = ["a", "b"]\ncolumn = "age"')
    with pytest.raises(TableError, match=r"\[columns.race\]: column names whose numbers"):
        recipe(tmp_path, wrong, by=by)


def test_tables_of_a_duckdb_file_are_records(tmp_path: Path) -> None:
    frame = people(500, seed=8)
    with duckdb.connect(tmp_path / "x.duckdb") as base:
        base.execute("CREATE SCHEMA office")
        base.execute("CREATE TABLE office.people AS SELECT * FROM frame")
        base.execute("CREATE TABLE people AS SELECT * FROM frame")
    for name in ("people", "office.people"):
        table = tabulate(name, recipe(tmp_path), engine=f"duckdb://{tmp_path}/x.duckdb")
        assert counts(table) == Counter(map(cell, frame.iter_rows(named=True)))
    with pytest.raises(TableError, match="neither a file of a kind that is read"):
        tabulate("nobody", recipe(tmp_path), engine=f"duckdb://{tmp_path}/x.duckdb")


@pytest.fixture
def postgres() -> Iterator[str]:
    """A database with people in it."""
    with postgres_server() as folder:
        frame = people(400, seed=9)
        with psycopg.connect(f"host={folder} user=steward dbname=postgres") as base:
            base.execute(
                "CREATE TABLE people (id bigint, state text, county text, race text, age float8)"
            )
            base.cursor().executemany(
                "INSERT INTO people VALUES (%s, %s, %s, %s, %s)", frame.rows()
            )
        yield f"postgres://steward@/postgres?host={folder}"


def test_postgres_counts_the_same(postgres: str, tmp_path: Path) -> None:
    frame = people(400, seed=9)
    table = tabulate("people", recipe(tmp_path), engine=postgres)
    assert counts(table) == Counter(map(cell, frame.iter_rows(named=True)))
    bounded = tabulate("people", recipe(tmp_path, person="id", rows=2), engine=postgres)
    assert bounded.reveal().sum() == sum(min(2, n) for n in Counter(frame["id"]).values())
    strict = recipe(tmp_path, DOMAIN.replace('missing = "no age"', ""), outside="refuse")
    with pytest.raises(TableError, match=r"^people: column '(age|race|state)"):
        tabulate("people", strict, engine=postgres)
    with pytest.raises(TableError, match="counts its own tables, not files"):
        tabulate(save(frame, tmp_path), recipe(tmp_path), engine=postgres)


def test_postgres_counts_variables_that_cross(postgres: str, tmp_path: Path) -> None:
    """By the same expression: the cells are those of the same rows counted in plain Python."""
    frame = people(400, seed=9)
    recipe(tmp_path)
    names = variables_of(("state", "county"), "race, age")
    crossing = read_crossed_domain(tmp_path / "domain.toml", names)
    whole = Tabulation(domain=crossing.domain, outside="other")
    found = tabulate_across("people", whole, crossing, engine=postgres)
    rows = found.space.frame(found.space.finest, count=found.reveal()).drop("level").rows()
    counted = Counter({row[:-1]: row[-1] for row in rows if row[-1]})
    assert counted == Counter(map(cell, frame.iter_rows(named=True)))
    bounded = replace(whole, person="id", rows=2)
    few = tabulate_across("people", bounded, crossing, engine=postgres).reveal()
    assert few.sum() == sum(min(2, n) for n in Counter(frame["id"]).values())


def test_a_file_name_is_no_pattern_when_the_file_is_there(tmp_path: Path) -> None:
    (tmp_path / "domain.csv").write_text("region\nN\nS\n")
    for name, rows in (("p[1].csv", "N\nN\n"), ("p1.csv", "S\n" * 5)):
        (tmp_path / name).write_text("region\n" + rows)
    domain = read_domain_file(str(tmp_path / "domain.csv"), by=("region",))
    table = tabulate(str(tmp_path / "p[1].csv"), Tabulation(domain=domain))
    assert counts(table) == {("N",): 2}
