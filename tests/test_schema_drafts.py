"""Drafts of schemas never depend on values, and made-up rows are what schema and release allow."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import countwise as cw
from countwise.errors import InputError
from countwise.examples.workers import workers
from countwise.tables.confidential import Confidential
from countwise.tables.hierarchy import build
from countwise.verification.schema import schema_from_dict
from countwise.verification.synthetic_rows import synthetic_rows
from test_cli import run

STATED = {
    "person": "id", "integer": ["age: 18 to 70"], "category": ["sex: Female, Male"],
    "binary": ["member"], "count": 30, "rows": 2, "names_are_public": True,
}  # fmt: skip


def write_data(folder: Path, *rows: str) -> Path:
    file = folder / "data.csv"
    file.write_text("id,age,sex,member,pay\n" + "".join(f"{row}\n" for row in rows))
    return file


def test_a_draft_is_a_schema_with_questions(tmp_path: Path) -> None:
    file = write_data(tmp_path, "1,20,Female,1,3000.5")
    draft = cw.verify_schema(file, **STATED, out=tmp_path / "s.toml")  # type: ignore[arg-type]
    schema = cw.read_schema(tmp_path / "s.toml")
    assert list(schema.columns) == ["age", "sex", "member"]
    assert (schema.persons, schema.rows_a_person, schema.person_id) == (30, 2, "id")
    assert schema.columns["sex"].labels == ("Female", "Male")
    assert [each for each in draft.questions if "pay" in each] == list(draft.questions)
    assert "# [columns.pay]" in draft.text


def test_no_value_changes_a_draft(tmp_path: Path) -> None:
    drafts = set()
    for rows in ((), ("1,20,Female,1,3",), ("9,99,X,7,secret", "1,1,1,1,1")):
        file = write_data(tmp_path, *rows)
        drafts.add(cw.verify_schema(file, **STATED).text)  # type: ignore[arg-type]
    assert len(drafts) == 1


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"integer": ["years: 1 to 2"]}, "no column 'years' among its 5"),
        ({"integer": ["age 1 to 2"]}, "must read column: 18 to 70"),
        ({"number": ["age: young"]}, "must have bounds"),
        ({"number": ["age: 1 to 2"], "binary": ["age"]}, "stated twice"),
        ({"integer": ["age: 9 to 2"]}, "low must be below high"),
        ({"category": ["sex: F"]}, "2 to 200 different labels"),
        ({"one_row_each": True, "person": "id"}, "how a person is known"),
    ],
)
def test_what_is_stated_wrongly_is_refused(
    stated: dict[str, object], message: str, tmp_path: Path
) -> None:
    file = write_data(tmp_path, "1,20,Female,1,3")
    with pytest.raises(InputError, match=message):
        cw.verify_schema(file, **({"person": "id"} | stated))  # type: ignore[arg-type]


def test_a_file_without_a_header_is_refused_unquoted(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("71345,44,Female\n")
    with pytest.raises(InputError, match="first line does not name") as caught:
        cw.verify_schema(tmp_path / "data.csv", one_row_each=True)
    assert "71345" not in str(caught.value)


def test_names_that_may_be_a_record_are_not_shown(tmp_path: Path) -> None:
    """The first line of a file without a header is a record, of words too."""
    (tmp_path / "data.csv").write_text("A17,Smith John,Female,HIV+\n")
    draft = cw.verify_schema(tmp_path / "data.csv", one_row_each=True, out=tmp_path / "s.toml")
    with pytest.raises(InputError, match="no column 'id' among its 4") as caught:
        cw.verify_schema(tmp_path / "data.csv", person="id")
    shown = draft.text + "".join(draft.questions) + str(caught.value)
    assert "4 other columns" in draft.text
    for cell in ("A17", "Smith", "Female", "HIV"):
        assert cell not in shown + (tmp_path / "s.toml").read_text()


def test_made_up_rows_fit_their_schema() -> None:
    schema = cw.read_schema(workers("workers.toml"))
    rows = synthetic_rows(schema, persons=400, rng=np.random.default_rng(1))
    assert rows["person"].n_unique() == 400
    assert rows.group_by("person").len()["len"].max() == 3
    for name, column in schema.columns.items():
        if column.kind == "category":
            assert set(rows[name]) == set(column.labels)
        else:
            assert column.low <= rows[name].min() <= rows[name].max() <= column.high


def test_released_columns_follow_the_release() -> None:
    cells = pl.DataFrame({"region": ["N", "N", "S", "S"], "sex": ["f", "m", "f", "m"]})
    hierarchy, _ = build(cells)
    made = cw.release(Confidential(hierarchy, np.array([900, 0, 0, 300])), cw.Plan(epsilon=50))
    schema = schema_from_dict(
        {
            "person": {"one_row_each": True},
            "columns": {
                "sex": {"type": "category", "levels": ["f", "m"]},
                "region": {"type": "category", "levels": ["N", "S"]},
                "member": {"type": "binary"},
            },
        }
    )
    rng = np.random.default_rng(2)
    rows = synthetic_rows(schema, persons=4000, rng=rng, release=made)
    found = rows.group_by("region", "sex").len().sort("region")
    assert found.select("region", "sex").rows() == [("N", "f"), ("S", "m")]
    assert found["len"][0] / 4000 == pytest.approx(0.75, abs=0.05)
    assert rows["member"].mean() == pytest.approx(0.5, abs=0.05)


def test_from_draft_to_rehearsal(tmp_path: Path) -> None:
    file = workers()
    stated = ("--person", "person", "--integer", "age: 18 to 70", "--number", "hours: 0 to 80",
              "--integer", "education_years: 6 to 20", "--count", "1500",
              "--rows", "3", "--names-are-public")  # fmt: skip
    done = run("verify", "schema", str(file), *stated, "--out", "s.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"What can\s+union_member be", done.stdout)
    made = run("verify", "synthetic", "s.toml", "--out", "t.csv", "--json", cwd=tmp_path)
    assert json.loads(made.stdout)["columns"] == ["person", "age", "education_years", "hours"]
    asked = run("verify", "--rehearse", "t.csv", "--schema", "s.toml", "--model", "hours ~ age",
                "--claim", "significant(age > 0, 0.05, clustered)", "--epsilon", "1",
                cwd=tmp_path)  # fmt: skip
    assert asked.returncode == 0, asked.stderr
    assert "rehearsal" in asked.stdout.lower()
