"""What the pages take for granted: the reader's own files, made small, and their servers."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import psycopg

import countwise as cw
from databases import new_database, postgres_server
from doc_servers import office, office_by_units, spark_cluster

REGIONS, COUNTIES, RACES = ("North", "South"), ("A", "B"), ("x", "yy", "zzz")
CELLS = "region,county,race,n\n" + "".join(
    f"{region},{county},{race},{len(region + county + race) % 7}\n"
    for region in REGIONS
    for county in COUNTIES
    for race in RACES
)


def cells(folder: Path) -> None:
    """cells.csv, and stand-in.csv without its innermost level."""
    (folder / "cells.csv").write_text(CELLS)
    frame = pl.read_csv(folder / "cells.csv").group_by("region", "county").agg(pl.sum("n"))
    frame.sort("region", "county").write_csv(folder / "stand-in.csv")


def release(folder: Path) -> None:
    """A release folder of the cells."""
    cells(folder)
    table = cw.read_counts(
        folder / "cells.csv", by=["region", "county", "race"], count="n", cells_are_public=True
    )
    cw.release(table, cw.Plan(epsilon=3)).save(folder / "release")


def several_releases(folder: Path) -> None:
    """A release folder of the cells, those of two years, and one of tables that cross."""
    release(folder)
    race = {"race": ("race",)}
    plan = cw.Plan(by=("region", "county"), across=race, rho=1)
    for year in ("last-year", "this-year"):
        table = cw.read_counts(
            folder / "cells.csv", by=plan.by, across=race, count="n", cells_are_public=True
        )
        cw.release(table, plan).save(folder / year)
    across = {"age": ("age",), "race": ("race",), "sex": ("sex",)}
    rows = [
        (county, age, race, sex, 10 * i + len(age + race))
        for i, county in enumerate(("Wake", "Durham", "Orange"))
        for age in ("0-64", "65+", "85+")
        for race in ("Asian", "Black")
        for sex in "FM"
    ]
    frame = pl.DataFrame(rows, schema=["county", *across, "n"], orient="row")
    frame.write_csv(folder / "people.csv")
    counts = cw.read_counts(
        folder / "people.csv", by=["county"], across=across, count="n", cells_are_public=True
    )
    cw.release(counts, cw.Plan(by=("county",), across=across, rho=1)).save(folder / "crossed")


def records(folder: Path) -> None:
    """People and a public domain for them."""
    people = [
        {"id": i, "state": ("NC", "VA")[i % 2], "county": ("1", "2")[i % 3 % 2],
         "race": ("Asian", "Black", "White", "elsewhere")[i % 4]}
        for i in range(60)
    ]  # fmt: skip
    pl.DataFrame(people).write_parquet(folder / "people.parquet")
    (folder / "counties.csv").write_text("state,county\nNC,1\nNC,2\nVA,1\nVA,2\n")
    (folder / "domain.toml").write_text(
        'other = "elsewhere"\n[columns.race]\nlevels = ["Asian", "Black", "White"]\n'
        '[nested.geography]\ncolumns = ["state", "county"]\nfile = "counties.csv"\n'
    )


def large_cells(folder: Path) -> None:
    """cells.parquet of six levels, more than 100,000 cells."""
    sizes = {"region": 4, "state": 3, "county": 5, "tract": 5, "block": 20, "kind": 20}
    codes = np.indices(tuple(sizes.values())).reshape(len(sizes), -1)
    labels = {
        name: pl.Series(each).cast(pl.String) for name, each in zip(sizes, codes, strict=True)
    }
    frame = pl.DataFrame(labels).with_columns(count=pl.Series(codes.sum(0) % 9))
    frame.write_parquet(folder / "cells.parquet")


def large(folder: Path) -> None:
    """Records, and a large table of cells."""
    records(folder)
    large_cells(folder)


@contextmanager
def engines(folder: Path) -> Iterator[dict[str, str]]:
    """The people in a DuckDB file and in a PostgreSQL server, too."""
    records(folder)
    with duckdb.connect(str(folder / "people.duckdb")) as base:
        base.execute("CREATE TABLE people AS FROM 'people.parquet'")
        people = base.execute("FROM people").fetchall()
    with postgres_server() as place:
        url = new_database(place)
        with psycopg.connect(url) as base, base.cursor() as cursor:
            cursor.execute("CREATE SCHEMA office")
            cursor.execute(
                "CREATE TABLE office.people (id int, state text, county text, race text)"
            )
            cursor.executemany("INSERT INTO office.people VALUES (%s, %s, %s, %s)", people)
        yield {"postgres://steward@db/census": url}


@contextmanager
def on_spark(folder: Path) -> Iterator[dict[str, str]]:
    """Records in several files, a large table, and a cluster."""
    large(folder)
    (folder / "people").mkdir()
    frame = pl.read_parquet(folder / "people.parquet")
    for i in range(2):
        frame.filter(pl.col("id") % 2 == i).write_parquet(folder / "people" / f"{i}.parquet")
    with spark_cluster(folder) as address:
        yield {"spark://host:7077": address}


Setting = Callable[[Path], AbstractContextManager[dict[str, str]]]


def files(make: Callable[[Path], None]) -> Setting:
    """A setting of files alone."""

    def setting(folder: Path) -> AbstractContextManager[dict[str, str]]:
        make(folder)
        return nullcontext({})

    return setting


# By page: what is made before, and what a reader would put in the place of what is printed.
SETTINGS: dict[str, Setting] = {
    "README.md": files(cells),
    "client.md": office,
    "inference.md": files(several_releases),
    "invariants.md": files(cells),
    "one-account.md": files(cells),
    "records.md": engines,
    "risk.md": files(cells),
    "run-on-spark.md": on_spark,
    "run-the-server.md": office,
    "scale.md": files(large),
    "server.md": office_by_units,
}
