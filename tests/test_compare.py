"""Changes between releases: their law when nothing changed, what changed, and refusals."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise import compare
from countwise.cli import app
from countwise.errors import InputError
from countwise.inference.crossed_posterior import crossed_posterior
from countwise.release.crossed_release import CrossedRelease
from countwise.tables.confidential import Confidential
from countwise.tables.workload import Workload
from crossings import flat, variable


def space(age: int = 5) -> Workload:
    """Two places, one divided in two and one in three, by ages, by sex."""
    return Workload(variables=(variable("place", [2], [2, 3]), flat("age", age), flat("sex", 2)))


def released(counts: np.ndarray, cells: Workload | None = None, **given: str) -> CrossedRelease:
    cells = space() if cells is None else cells
    first, *others = cells.variables
    names = {each.name: each.levels for each in others}
    plan = cw.Plan(by=first.levels, across=names, **({"rho": "1/2"} | given))
    made = cw.release(Confidential(cells, counts), plan)
    assert isinstance(made, CrossedRelease)
    return made


def truth() -> np.ndarray:
    return np.random.default_rng(4).poisson(np.random.default_rng(5).gamma(0.5, 60.0, 50))


def test_without_a_change_as_many_are_found_as_said() -> None:
    """Sixteen pairs of releases of the same counts: 5% at 95%, every size of noise alike."""
    counts, chances = truth(), []
    for _ in range(16):
        found = compare(released(counts), released(counts, tables="place2*age1*sex1"))
        assert found.expected_by_noise == pytest.approx(0.05 * len(found.table))
        chances.append(found.table["by_noise"].to_numpy())
    together = np.concatenate(chances)
    assert len(together) > 1500
    assert np.mean(together < 0.05) == pytest.approx(0.05, abs=0.025)
    assert np.mean(together < 0.5) == pytest.approx(0.5, abs=0.1)


def test_what_changed_is_found_with_its_range() -> None:
    counts, more = truth(), truth()
    more[7] += 100
    before, after = released(counts), released(more)
    found = compare(before, after, probability=0.99)
    table = found.table
    for name, rows in (("total", 1), ("place2*age1*sex1", 50)):
        changed = table.filter(pl.col("level").cast(pl.String) == name)
        assert len(changed) == rows
        row = changed.row(7 if rows > 1 else 0, named=True)
        assert row["more_than_noise"]
        assert row["by_noise"] < 1e-6
        assert row["lower"] < row["change"] < row["upper"]
        assert row["change"] == pytest.approx(100, abs=6 * row["sd"])
    assert table["before"].to_list() == before.table()["count"].to_list()
    assert table["after"].to_list() == after.table()["count"].to_list()
    margin = before.workload.margins[-1]
    one, other = (crossed_posterior(each).normals(margin) for each in (before, after))
    last = table.tail(before.workload.size(margin))
    np.testing.assert_allclose(last["change"], (other[0] - one[0]).reshape(-1))
    np.testing.assert_allclose(last["sd"] ** 2, (one[1] ** 2 + other[1] ** 2).reshape(-1))
    width = (last["upper"] - last["lower"]) / last["sd"]
    np.testing.assert_allclose(width, 2 * 2.5758293)


def test_only_tables_of_both_are_compared() -> None:
    one = released(truth(), tables="place2*age1, sex1")
    other = released(truth(), tables="place2*sex1, age1")
    names = compare(one, other).table["level"].cast(pl.String).unique(maintain_order=True)
    assert names.to_list() == ["total", "place2", "age1", "sex1"]
    with pytest.raises(InputError, match="no table in common"):
        compare(
            released(truth(), tables="place2:age1:sex1"),
            released(truth(), tables="place1:age1, place2:sex1"),
        )


def test_other_domains_are_refused_with_what_differs() -> None:
    other = released(np.ones(60, np.int64), space(6))
    with pytest.raises(InputError, match="only the second has age1 00005"):
        compare(released(truth()), other)
    cells = Workload(variables=(*space().variables[:2], flat("kind", 2)))
    with pytest.raises(InputError, match="place1 > place2; age1; kind1"):
        compare(released(truth()), released(truth(), cells))


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


@pytest.mark.parametrize("mechanism", ["geometric", "joint"])
def test_trees_are_compared_by_command(tmp_path: Path, mechanism: str) -> None:
    for name, last in (("one", 80), ("two", 300)):
        text = f"state,county,n\nN,a,40\nN,b,50\nS,c,60\nS,d,70\nS,e,{last}\n"
        (tmp_path / f"{name}.csv").write_text(text)
        run("release", tmp_path / f"{name}.csv", "--by", "state,county", "--count", "n",
            "--cells-are-public", "--epsilon", 2, "--mechanism", mechanism,
            "--out", tmp_path / name)  # fmt: skip
    folders, file = (tmp_path / "one", tmp_path / "two"), tmp_path / "changes.csv"
    data = json.loads(run("compare", *folders, "--out", file, "--json", "--level", 0.999))
    table = pl.read_csv(file)
    assert data["counts"] == len(table) == 8
    assert data["more_than_noise"] == table["more_than_noise"].sum()
    changed = table.filter(pl.col("more_than_noise")).select("state", "county").rows()
    assert {(None, None), ("S", None), ("S", "e")} <= set(changed)
    said = run("compare", *folders)
    assert "state=S, county=e" in said
    assert "of 8 counts changed by more than noise" in said
    with pytest.raises(InputError, match="exists already"):
        run("compare", *folders, "--out", file)
    cells = released(truth())
    cells.save(tmp_path / "crossed")
    with pytest.raises(InputError, match="different domains") as refusal:
        run("compare", tmp_path / "one", tmp_path / "crossed")
    assert refusal.value.exit_code == 2


def test_an_edited_folder_is_refused(tmp_path: Path) -> None:
    made = released(truth())
    made.save(tmp_path / "one")
    made.save(tmp_path / "two")
    table = pl.read_parquet(tmp_path / "two/counts.parquet")
    table.with_columns(pl.col("count") + 1).write_parquet(tmp_path / "two/counts.parquet")
    with pytest.raises(InputError, match="changed after the release"):
        run("compare", tmp_path / "one", tmp_path / "two")
