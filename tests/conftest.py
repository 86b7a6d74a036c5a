"""Data beside the checkout."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import numpy as np
import polars as pl
import pytest

from countwise.arrays import IntArray
from countwise.tables.hierarchy import Hierarchy, build
from databases import SmallDisk, new_database, postgres_server, small_postgres, small_sqlite
from needs import needs, shut_in

if TYPE_CHECKING:
    from countwise.server.worker import Computer

KINDS = ("sqlite", "postgresql")
MARKED = {
    "browser": ("docs", "pages", "server_browser", "server_pages"),
    "spark": ("spark",),
    "slow": (
        "client",
        "docs",
        "inference_calibration",
        "large_inference",
        "large_release",
        "mutations",
        "notebooks",
        "packaging",
        "papers",
        "scale_refusals",
        "server_accounts",
        "server_bounds",
        "server_deployment",
        "server_evidence",
        "server_http",
        "server_jobs",
        "server_start",
        "server_timing",
        "verification_databases",
        "compiled_ahead",
    ),
}
"""Files of tests that `./check --quick` leaves out, and why."""
SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long to look for leaks."""
    parser.addoption("--mutations", type=int, default=480, help="Faulty files to be tried.")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The marks that a test has by its file."""
    for item in items:
        name = item.path.stem.removeprefix("test_")
        for mark in (mark for mark, files in MARKED.items() if name in files):
            item.add_marker(mark)


@pytest.fixture
def mutations(request: pytest.FixtureRequest) -> int:
    """How many faulty files to try."""
    return int(request.config.getoption("--mutations"))


@pytest.fixture
def north_carolina() -> Path:
    """2020 census counts of North Carolina: county, tract, race."""
    path = SHARED_DATA / "nc_tracts_2020.csv"
    needs(path.is_file(), "the census tracts in ../shared/data")
    return path


@pytest.fixture(scope="session")
def income_cells() -> tuple[Hierarchy, IntArray]:
    """Persons of the 1994 census income file by occupation, education, sex, race and age band.

    16,800 cells, 80% of them empty: a table of many variables, which nothing was tuned on.
    """
    path = SHARED_DATA / "census_income_1994.csv"
    needs(path.is_file(), "the census extract in ../shared/data")
    by = ("occupation", "education", "sex", "race", "band")
    people = pl.read_csv(path).with_columns(
        band=(pl.col("age") - 15).floordiv(10).clip(0, 6).cast(pl.String)
    )
    found = people.group_by(by).len("n")
    every = found.select(pl.col(by[0]).unique())
    for name in by[1:]:
        every = every.join(found.select(pl.col(name).unique()), how="cross")
    rows = every.join(found, on=by, how="left").with_columns(pl.col("n").fill_null(0))
    hierarchy, order = build(rows.select(by))
    return hierarchy, rows["n"].to_numpy()[order].astype(np.int64)


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[Path]:
    """A PostgreSQL server for all tests of this process, behind a socket in a folder."""
    with postgres_server() as folder:
        yield folder


def _maker(request: pytest.FixtureRequest, folder: Path) -> Callable[[], str]:
    """What makes URLs of empty databases of the kind a fixture's parameter names."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_folder")
        return lambda: new_database(server)
    return lambda: f"sqlite:///{folder}/{uuid4().hex}.db"


@pytest.fixture(params=KINDS)
def databases(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """URLs of empty databases of either kind, as many as are asked for."""
    return _maker(request, tmp_path)


@pytest.fixture
def database(databases: Callable[[], str]) -> str:
    """The URL of an empty database of either kind."""
    return databases()


@pytest.fixture(params=KINDS)
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """A database of either kind whose disk can be made full."""
    if request.param == "sqlite":
        yield small_sqlite(tmp_path)
        return
    with small_postgres(request.getfixturevalue("postgres_folder")) as made:
        yield made


@pytest.fixture(scope="module", params=KINDS)
def shared_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The URL of a database of either kind that the tests of a module share."""
    return _maker(request, tmp_path_factory.mktemp("shared"))()


@pytest.fixture(scope="session")
def computer(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Computer"]:
    """The process that reads confidential rows, for all tests of this process."""
    from countwise.server.worker import Computer
    from offices import example_config

    shut_in()
    made = Computer(example_config(tmp_path_factory.mktemp("computer"), ""))
    made.start()
    yield made
    made.stop()
