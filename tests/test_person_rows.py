"""A row a person of the released cells: the counts again, whatever the shape and size."""

from pathlib import Path
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import countwise as cw
from countwise.cli import app
from countwise.errors import InputError, ReleaseError
from countwise.inference.imputations import imputations
from countwise.release import person_rows
from countwise.release.count_sources import table_source
from countwise.release.person_rows import WHAT, write_records
from countwise.release.pipeline import publish

BY = ["state", "county"]


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    rows = [(s, f"{s}{c}", sex, 7 * i + j) for i, s in enumerate("NS") for c in "abc"
            for j, sex in enumerate("fm")]  # fmt: skip
    frame = pl.DataFrame(rows, schema=[*BY, "sex", "n"], orient="row")
    frame.write_csv(tmp_path / "cells.csv")
    return tmp_path / "cells.csv"


def crossed(cells: Path, tables: str) -> cw.CrossedRelease:
    across = {"sex": ["sex"]}
    table = cw.read_counts(cells, by=BY, across=across, count="n", cells_are_public=True)
    return cw.release(table, cw.Plan(by=BY, across=across, tables=tables, rho=1))


def tree(cells: Path) -> cw.Release:
    table = cw.read_counts(cells, by=[*BY, "sex"], count="n", cells_are_public=True)
    return cw.release(table, cw.Plan(by=(*BY, "sex"), epsilon=1))


def counted(people: pl.DataFrame) -> dict[tuple[str, ...], int]:
    """How many rows each combination of labels has."""
    return {
        row[:-1]: row[-1] for row in people.cast(pl.String).group_by(people.columns).len().rows()
    }


def released(made: cw.Release | cw.CrossedRelease, table: str, by: list[str]) -> dict:
    rows = made.table().filter(pl.col("level") == table, pl.col("count") > 0)
    return {row[:-1]: row[-1] for row in rows.select(pl.col(by).cast(pl.String), "count").rows()}


@pytest.mark.parametrize("batch", [3, 1_000_000])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_are_the_released_counts(cells: Path, tmp_path: Path, ending: str, batch: int) -> None:
    """Of a tree and of tables that cross, as a frame and as a file made in batches."""
    for name, made, table in (
        ("tree", tree(cells), "sex"),
        ("crossed", crossed(cells, "county*sex"), "county*sex"),
        ("coarse", crossed(cells, "state:sex, county"), "state*sex"),
    ):
        made.save(tmp_path / name)
        by = ["state", "sex"] if name == "coarse" else [*BY, "sex"]
        asked = table if name == "coarse" else None
        expected = released(made, table, by)
        assert sum(expected.values()) > 0
        file = tmp_path / f"{name}.{ending}"
        with patch.object(person_rows, "BATCH", batch):
            assert counted(cw.records(made, table=asked)) == expected
            assert write_records(tmp_path / name, file, table=asked) == sum(expected.values())
        read = pl.read_parquet(file) if ending == "parquet" else pl.read_csv(file)
        assert read.columns == by
        assert counted(read) == expected


def test_a_release_in_pieces_is_written_without_being_held(cells: Path, tmp_path: Path) -> None:
    """Of a data set in parts too; the rows are those of the same folder read whole."""
    by = (*BY, "sex")
    source = table_source(cells, by=by, count="n", domain=cells, most=4)
    assert source is not None
    for parts in (False, True):
        folder = tmp_path / f"pieces{parts}"
        publish(source, cw.Plan(epsilon=1, by=by), folder, data_set=parts)
        file = tmp_path / f"{folder.name}.parquet"
        write_records(folder, file)
        assert counted(pl.read_parquet(file)) == counted(cw.records(cw.read_release(folder)))
        assert WHAT in pl.read_parquet_metadata(file).values()


def test_what_can_not_become_rows_is_refused(cells: Path, tmp_path: Path) -> None:
    made = crossed(cells, "state:sex, county, total")
    with pytest.raises(InputError, match=r"--table: state\*sex, county"):
        cw.records(made)
    with pytest.raises(InputError, match="no columns"):
        cw.records(made, table="total")
    with pytest.raises(InputError, match="--table must be one of"):
        cw.records(made, table="county*sex")
    tree(cells).save(tmp_path / "r")
    with (tmp_path / "r" / "counts.parquet").open("ab") as file:
        file.write(b" ")
    with pytest.raises(ReleaseError, match="was changed"):
        write_records(tmp_path / "r", tmp_path / "people.csv")


def test_the_command_says_what_it_wrote(cells: Path, tmp_path: Path) -> None:
    made = tree(cells)
    made.save(tmp_path / "r")
    ask = ["records", str(tmp_path / "r"), "--out", str(tmp_path / "people.csv")]
    said = " ".join(CliRunner().invoke(app, ask).stdout.split())
    assert f"{made.counts[0][0]:,} rows written" in said
    assert "No row is a real person" in said
    assert pl.read_csv(tmp_path / "people.csv").height == made.counts[0][0]
    again = CliRunner().invoke(app, ask)
    assert "--overwrite" in str(again.exception)
    wrong = CliRunner().invoke(app, [*ask[:-1], str(tmp_path / "people.xlsx")])
    assert "must end in .csv or .parquet" in str(wrong.exception)
    assert not (tmp_path / "people.xlsx").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_draws_are_numbered_and_count_as_the_draws_do(
    cells: Path, tmp_path: Path, ending: str
) -> None:
    """Of a tree; rows of each draw have the sums of that draw."""
    tree(cells).save(tmp_path / "release")
    file = tmp_path / f"people.{ending}"
    asked = [
        "records",
        str(tmp_path / "release"),
        "--draws",
        "3",
        "--seed",
        "1",
        "--out",
        str(file),
    ]
    result = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert result.exit_code == 0
    people = pl.read_csv(file) if ending == "csv" else pl.read_parquet(file)
    assert people.columns == ["draw", *BY, "sex"]
    rng = np.random.default_rng(1)
    drawn = cw.infer(cw.read_release(tmp_path / "release"), rng=rng).draws(3, rng=rng)
    for number in range(3):
        mine = people.filter(draw=number + 1)
        assert len(mine) == drawn["total"][number]
        assert mine.filter(state="N").height == drawn["N"][number]


def test_draws_of_crossed_tables_become_rows_too(cells: Path) -> None:
    made = crossed(cells, "county*sex")
    rng = np.random.default_rng(2)
    frames, prior = imputations(made, 2, table="state*sex", rng=rng)
    people = pl.concat(frames)
    assert people.columns == ["draw", "state", "sex"]
    assert "learned" in prior
    assert set(people["draw"]) == {1, 2}
    known = made.table().filter(level="total")["count"].item()
    for number in (1, 2):
        assert abs(people.filter(draw=number).height - known) < 60
    with pytest.raises(InputError, match="total"):
        list(imputations(made, 1, table="total", rng=rng)[0])
    with pytest.raises(InputError, match="town"):
        list(imputations(tree(cells), 1, table="town", rng=rng)[0])
