"""The rows of a person and the data set that cells were counted with go where the cells go."""

from pathlib import Path

import pytest

import countwise as cw
from countwise.errors import InputError, PlanError, TableError
from countwise.front_door.ledger_functions import ledger_grant
from countwise.release.run import release as in_memory
from countwise.tables.confidential import Confidential

pytestmark = pytest.mark.filterwarnings(
    "ignore:fetch_arrow_table:DeprecationWarning"  # Ibis 12 on DuckDB 2
)
Table = Confidential


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Records, in which one person has three rows, and their domain."""
    (tmp_path / "people.csv").write_text("id,region\n1,N\n1,S\n1,S\n2,S\n3,N\n")
    (tmp_path / "domain.toml").write_text('[columns.region]\nlevels = ["N", "S"]\n')
    return tmp_path


def counted(folder: Path, **words: object) -> Table:
    how: dict[str, object] = {"by": "region", "domain": folder / "domain.toml", **words}
    found = cw.tabulate(folder / "people.csv", **how)  # type: ignore[call-overload]
    assert isinstance(found, Confidential)
    return found


def written(folder: Path, name: str, **words: object) -> Path:
    how: dict[str, object] = {"by": "region", "domain": folder / "domain.toml", **words}
    cw.tabulate(folder / "people.csv", out=folder / name, **how)  # type: ignore[call-overload]
    return folder / name


def read(file: Path | str) -> Table:
    found = cw.read_counts(file, by="region", count="count", cells_are_public=True)
    assert isinstance(found, Confidential)
    return found


def tables(folder: Path) -> dict[str, Table]:
    """The same cells: in memory, read from a file, and read by a pattern."""
    file = written(folder, "cells-1.parquet", person="id", rows=3)
    return {
        "counted": counted(folder, person="id", rows=3),
        "read": read(file),
        "pattern": read(str(folder / "cells-*.parquet")),
    }


def test_the_noise_is_for_the_rows_that_were_counted(folder: Path) -> None:
    for name, table in tables(folder).items():
        made = cw.release(table, epsilon=1)
        assert made.plan.rows == 3, name
        assert [each.sensitivity for each in made.budget.levels] == [3, 3]


def test_a_plan_for_fewer_rows_is_refused_wherever_it_is_made(folder: Path) -> None:
    plan = cw.Plan(epsilon=1)
    for table in tables(folder).values():
        for make in (cw.release, in_memory):
            with pytest.raises(PlanError, match="counted with up to 3 rows a person"):
                make(table, plan)
        assert in_memory(table, cw.Plan(epsilon=1, rows=3)).plan.rows == 3


def test_a_bound_that_was_not_kept_is_not_claimed(folder: Path) -> None:
    with pytest.raises(PlanError, match="was counted without"):
        cw.release(counted(folder), epsilon=1, person="id")
    made = cw.release(counted(folder, person="id", rows=3), epsilon=1, rows=3, person="id")
    assert made.plan.person == "id"


def test_the_data_set_is_charged_from_memory_too(folder: Path) -> None:
    url = f"sqlite:///{folder / 'l.db'}"
    ledger_grant(url, dataset="people", epsilon="2", rows=3)
    file = written(folder, "cells-1.parquet", person="id", rows=3, ledger=url, dataset="people")
    for table in (read(file), read(str(folder / "cells-*.parquet"))):
        with pytest.raises(PlanError, match="counted for data set 'people'"):
            cw.release(table, epsilon=1)
        made = cw.release(table, epsilon=1, ledger=url)
        assert made.charge is not None
    with pytest.raises(InputError, match="counted for data set 'people'"):
        cw.release(str(folder / "cells-*.parquet"), by="region", epsilon=1, cells_are_public=True)


def test_files_that_were_counted_differently_are_no_table(folder: Path) -> None:
    written(folder, "cells-1.parquet", person="id", rows=3)
    written(folder, "cells-2.parquet")
    with pytest.raises(TableError, match="of some files of the table the rows"):
        read(str(folder / "cells-*.parquet"))
    url = f"sqlite:///{folder / 'l.db'}"
    ledger_grant(url, dataset="people", epsilon="2")
    (folder / "cells-2.parquet").unlink()
    written(folder, "cells-2.parquet", person="id", rows=2, ledger=url, dataset="people")
    with pytest.raises(TableError, match="different data sets"):
        read(str(folder / "cells-*.parquet"))


def test_a_level_of_a_table_keeps_it(folder: Path) -> None:
    table = counted(folder, person="id", rows=3)
    assert table.level(0).provenance == table.provenance
    assert table.provenance.rows == 3
