"""Data beside the checkout."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from databases import new_database, postgres_server
from needs import needs, shut_in

if TYPE_CHECKING:
    from countwise.server.worker import Computer

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture
def north_carolina() -> Path:
    """2020 census counts of North Carolina: county, tract, race."""
    path = SHARED_DATA / "nc_tracts_2020.csv"
    needs(path.is_file(), "the census tracts in ../shared/data")
    return path


@pytest.fixture(scope="session")
def postgres_folder() -> Iterator[Path]:
    """A PostgreSQL server for all tests of this process, behind a socket in a folder."""
    with postgres_server() as folder:
        yield folder


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return new_database(request.getfixturevalue("postgres_folder"))


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
