"""What large and small runs refuse or say out loud: engines, bounds, disks, names."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import countwise as cw
from countwise.errors import TableError
from countwise.tables.engines import connect
from countwise.tables.provenance import provenance_of

DOMAIN = '[columns.region]\nlevels = ["North", "South"]\n[columns.sex]\nlevels = ["f", "m"]\n'
PEOPLE = "id,region,sex\n1,North,f\n1,South,f\n1,South,m\n2,South,m\n"


def run(*words: object, cwd: Path, most_bytes: int | None = None) -> "subprocess.Popen[str]":
    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

    return subprocess.run(
        [sys.executable, "-m", "countwise", *map(str, words)],
        cwd=cwd, capture_output=True, text=True, check=False, preexec_fn=limit,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "domain.toml").write_text(DOMAIN)
    return tmp_path


def test_level_columns_may_be_one_text(folder: Path) -> None:
    (folder / "cells.csv").write_text("a,b,n\nx,1,3\nx,2,4\n")
    table = cw.read_counts(folder / "cells.csv", by="a, b", count="n", cells_are_public=True)
    assert table.hierarchy.by == ("a", "b")
    assert cw.Plan(epsilon=1, by="region,county").by == ("region", "county")
    with pytest.raises(TableError, match="no level columns given"):
        cw.read_counts(folder / "cells.csv", by="", count="n", cells_are_public=True)


def test_a_tabulated_file_says_how_many_rows_of_a_person_it_counts(folder: Path) -> None:
    """Forgetting --rows is not possible, and promising for fewer rows is refused."""
    count = ("tabulate", "people.csv", "--by", "region,sex", "--domain", "domain.toml")
    done = run(*count, "--person", "id", "--rows", 2, "--out", "cells.parquet", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert provenance_of([folder / "cells.parquet"]).rows == 2
    release = ("release", "cells.parquet", "--by", "region,sex", "--cells-are-public",
               "--epsilon", 1, "--json")  # fmt: skip
    done = run(*release, "--out", "one", cwd=folder)
    manifest = json.loads(done.stdout)
    assert manifest["privacy"]["rows"] == 2
    assert [each["sensitivity"] for each in manifest["measured"]] == [2, 2, 2]
    refused = run(*release, "--rows", 1, "--out", "two", cwd=folder)
    assert refused.returncode == 2
    assert "counted with up to 2 rows a person" in refused.stderr
    assert not (folder / "two").exists()
    done = run(*release, "--rows", 3, "--out", "three", cwd=folder)
    assert json.loads(done.stdout)["privacy"]["rows"] == 3
    done = run(*count, "--out", "unbounded.parquet", cwd=folder)
    assert provenance_of([folder / "unbounded.parquet"]).rows is None
    assert provenance_of([folder / "people.csv"]).rows is None


def test_what_is_taken_on_trust_is_said_out_loud(folder: Path) -> None:
    release = ("release", "--records", "people.csv", "--by", "region,sex", "--domain",
               "domain.toml", "--epsilon", 1)  # fmt: skip
    done = run(*release, "--out", "trusted", cwd=folder)
    assert done.returncode == 0
    assert "WARNING" in done.stderr
    assert "nobody has more than one row" in " ".join(done.stderr.split())
    assert "Taken on trust" in (folder / "trusted" / "certificate.html").read_text()
    done = run(*release, "--person", "id", "--out", "bounded", cwd=folder)
    assert "WARNING" not in done.stderr
    assert "Taken on trust" not in (folder / "bounded" / "certificate.html").read_text()
    plan = run("plan", "domain.toml", "--by", "region,sex", "--epsilon", 1, cwd=folder)
    assert "taken on trust" in " ".join(plan.stdout.split())


def test_a_name_without_an_ending_is_told_the_known_ones(folder: Path) -> None:
    (folder / "cells.csv").write_text("a,b,count\nx,1,3\nx,2,4\n")
    cw.release(
        cw.read_counts(folder / "cells.csv", by="a,b", count="count", cells_are_public=True),
        cw.Plan(epsilon=1, by="a,b"),
    ).save(folder / "release")
    refused = run("convert", "release", "--out", "noext", cwd=folder)
    assert refused.returncode == 2
    for word in (".xlsx", "wide", "sdmx", ".csv"):
        assert word in refused.stderr


def test_a_missing_driver_is_named_with_its_extra() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from countwise.tables.engines import connect\n"
        "try: connect('postgres://nobody@localhost/none', folder='.')\n"
        "except Exception as problem: print(type(problem).__name__, problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("TableError engine 'postgres' needs a driver")
    assert 'pip install "countwise[postgres]"' in done.stdout


@pytest.mark.parametrize("url", ["", "nonsense", "nonsense://x", "://"])
def test_engines_that_are_none_are_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"spark://host:7077"):
        connect(url, folder=str(tmp_path))


@pytest.mark.parametrize("command", ["release", "tabulate"])
def test_a_full_disk_leaves_nothing_under_the_name(command: str, folder: Path) -> None:
    """Files may not grow beyond 300 bytes, as on a full disk."""
    source = ["--records", "people.csv"] if command == "release" else ["people.csv"]
    more = ["--epsilon", 1] if command == "release" else []
    done = run(
        command, *source, "--by", "region,sex", "--domain", "domain.toml", *more,
        "--out", "out.parquet", cwd=folder, most_bytes=300,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "countwise: " in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["domain.toml", "people.csv"]


def test_labels_that_are_numbers_are_cut_as_text(tmp_path: Path) -> None:
    """Codes in a Parquet file may be whole numbers; they sort as the text they become."""
    from countwise.tables.cut import cut_file

    codes = [9, 10, 100, 2]
    table = pl.DataFrame({"a": [c for c in codes for _ in range(3)], "b": [1, 2, 3] * 4})
    table.with_columns(count=pl.lit(1)).write_parquet(tmp_path / "cells.parquet")
    cut = cut_file(tmp_path / "cells.parquet", by=("a", "b"), most=6)
    assert cut is not None
    assert cut.paths["a"].to_list() == ["10", "100", "2", "9"]
    assert len(cut) == 2
