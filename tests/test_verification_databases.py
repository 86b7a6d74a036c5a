"""Rows in database tables: the same as in a file, and refusals that do not know them."""

import random
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import psycopg
import pytest

from countwise.errors import TableError
from countwise.verification.question import Question
from countwise.verification.records import read_records
from countwise.verification.request import make_request
from countwise.verification.schema import schema_from_dict
from countwise.verification.verify import _outcomes, verify
from databases import postgres_server

SCHEMA = schema_from_dict(
    {
        "person": {"id": "person"},
        "columns": {
            "y": {"type": "number", "low": -100, "high": 100},
            'odd "name': {"type": "number", "low": -10, "high": 10},
            "f": {"type": "category", "levels": ["p", "q", "Zürich"]},
            "won": {"type": "binary"},
        },
    }
)
NAMES = ("person", "y", 'odd "name', "f", "won")
KINDS = ("text", "float8", "float8", "text", "boolean")
# A database whose columns are text holds what a file can: words for numbers, nothing at all.
BROKEN = [
    ("7", "a word", "1", "q", "true"),
    ("8", "1e400", "nan", "elsewhere", ""),
    ("9", None, "11", None, None),
    (None, "3", "1", "p", "1"),
    ("10", " 4.5 ", "1", 'line\nbreak, "quoted"', "0"),
]


def clean(size=400):
    rng = np.random.default_rng(1)
    x = rng.normal(0, 2, size).clip(-10, 10)
    y = (1 + 2 * x + rng.normal(size=size)).clip(-100, 100)
    return [
        (f"n{i // 2}", float(y[i]), float(x[i]), ["p", "q", "Zürich"][i % 3], bool(i % 5 == 0))
        for i in range(size)
    ]


def quoted(names):
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def created(kinds):
    fields = zip(NAMES, kinds, strict=True)
    return ", ".join(f"{quoted([name])} {kind}" for name, kind in fields)


def fill_sqlite(path, rows, kinds=KINDS):
    with sqlite3.connect(path) as base:
        base.execute(f"CREATE TABLE work ({created(kinds)})")
        base.executemany("INSERT INTO work VALUES (?, ?, ?, ?, ?)", rows)
    base.close()
    return str(path)


def fill_duckdb(path, rows, kinds=KINDS):
    with duckdb.connect(str(path)) as base:
        base.execute(f"CREATE TABLE work ({created(kinds)})")
        for row in rows:
            base.execute("INSERT INTO work VALUES (?, ?, ?, ?, ?)", row)
    return str(path)


@pytest.fixture(scope="module")
def server():
    with postgres_server() as folder:
        yield folder


def fill_postgres(server, name, rows, kinds=KINDS):
    with psycopg.connect(f"host={server} user=steward dbname=postgres") as base:
        base.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
        base.execute(f"CREATE TABLE {name}.work ({created(kinds)})")
        base.cursor().executemany(f"INSERT INTO {name}.work VALUES (%s, %s, %s, %s, %s)", rows)
    return f"postgres://steward:secret@/postgres?host={server}", f"{name}.work"


def places(tmp_path, server, name, rows, kinds=KINDS):
    """The same rows in a table of each database; the file name .db says nothing."""
    return [
        (fill_duckdb(tmp_path / f"{name}.duckdb", rows, kinds), "work"),
        (fill_sqlite(tmp_path / f"{name}.db", rows, kinds), "work"),
        fill_postgres(server, name, rows, kinds),
    ]


def read(place, table):
    return read_records(place, SCHEMA, columns=SCHEMA.columns, table=table)


@pytest.mark.parametrize("what", ["clean", "broken"])
def test_databases_give_the_same_rows(tmp_path, server, what):
    broken = what == "broken"
    kinds = ("text",) * 5 if broken else KINDS
    rows = BROKEN if broken else clean()
    found = [read(*each).reveal() for each in places(tmp_path, server, what, rows, kinds)]
    for columns, data, offsets in found:
        for name, column in columns.items():
            assert column.tobytes() == found[0][0][name].tobytes()
        assert data.tobytes() == found[0][1].tobytes()
        assert offsets.tobytes() == found[0][2].tobytes()
    if broken:
        places_of = {bytes(found[0][1][a:b]).decode(): i for i, (a, b) in enumerate(
            zip(found[0][2], found[0][2][1:], strict=False))}  # fmt: skip
        columns = found[0][0]
        assert np.isnan(columns["y"][[places_of[each] for each in "789"]]).all()
        assert columns["y"][places_of["10"]] == 4.5
        assert np.isnan(columns["f"][places_of["10"]])
    else:
        assert np.nansum(found[0][0]["won"]) == sum(row[-1] for row in rows)
        assert sorted(found[0][0]["y"]) == sorted(row[1] for row in rows)


def test_the_order_of_a_tables_rows_does_not_matter(tmp_path, server):
    rows = clean()
    moved = random.Random(2).sample(rows, len(rows))
    model = 'y ~ `odd "name` + C(f)'
    request = make_request(
        SCHEMA, Question(model=model, claim="C(f)[q] > 0", epsilon=4, partitions=20)
    )
    found = [
        _outcomes(read(*each), request, key=bytes(16)).tolist()
        for name, some in (("before", rows), ("after", moved))
        for each in places(tmp_path, server, name, some)
    ]
    assert found.count(found[0]) == 6
    place, table = fill_postgres(server, "again", rows)
    assert verify(read(place, table), request).sum() == 20


def problem(place, table, columns=("y",)):
    with pytest.raises(TableError) as caught:
        read_records(place, SCHEMA, columns=columns, table=table)
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_refusals_do_not_know_the_rows(tmp_path, server):
    """Without a table, a wrong table, a column that is not there: whatever the rows are."""
    messages = []
    for rows in (clean(), clean()[1:], []):
        folder = tmp_path / str(len(messages))
        folder.mkdir()
        said = []
        for place, table in places(folder, server, f"t{len(messages)}", rows):
            said.append(problem(place, None))
            said.append(problem(place, "nowhere"))
            # Half of a name, or a name that goes on, is no table and no command.
            said.append(problem(place, f'{table}"; DROP TABLE work; --'))
            assert read(place, table) is not None
        own = f"{folder}/t{len(messages)}"
        messages.append([each.replace(own, "") for each in said])
    assert messages[0] == messages[1] == messages[2]
    assert not any("secret" in each for each in messages[0])


def test_a_missing_column_is_named(tmp_path, server):
    path = tmp_path / "little.sqlite"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE work (person text)")
    base.close()
    assert problem(str(path), "work").endswith("no column 'y', which the schema promises.")
    with psycopg.connect(f"host={server} user=steward dbname=postgres") as base:
        base.execute("CREATE TABLE little (person text)")
    url = f"postgres://steward:secret@/postgres?host={server}"
    assert problem(url, "little") == (
        "postgres://steward@/postgres: no column 'y', which the schema promises."
    )


def test_places_that_are_no_database(tmp_path):
    assert "there is no such file" in problem("sqlite://nowhere.sqlite", "work")
    assert "not known here" in problem("mysql://someone@host/base", "work")
    path = Path(tmp_path / "rubbish.sqlite")
    path.write_bytes(b"SQLite format 3\0 and then nothing of the kind")
    assert "can not be read as a database" in problem(str(path), "work")
    unreachable = f"postgresql://someone:secret@/postgres?host={tmp_path}"
    said = problem(unreachable, "work")
    assert said == (
        "postgresql://someone@/postgres: can not be read as a database. To fix, check the address, "
        "the user and the table name."
    )


def test_text_that_is_no_text_is_a_missing_value(tmp_path):
    """One person's bytes must not stop an answer."""
    path = fill_sqlite(tmp_path / "bytes.sqlite", clean(40))
    with sqlite3.connect(path) as base:
        base.execute("INSERT INTO work VALUES ('x', 1, 1, CAST(x'ff41' AS TEXT), 1)")
        base.execute("INSERT INTO work VALUES ('y', x'00ff', 1, 'p', 1)")
    base.close()
    columns, _, _ = read(path, "work").reveal()
    assert np.isnan(columns["f"]).sum() == 1
    assert np.isnan(columns["y"]).sum() == 1
