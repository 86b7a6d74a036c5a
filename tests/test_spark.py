"""Spark does the same work on the same pieces, and killing its executors changes nothing.

One session for all: two executors in processes of their own (local-cluster).
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import countwise as cw
from countwise.arrays import IntArray
from countwise.cli import main
from countwise.errors import TableError
from countwise.release.checkpoints import Staging
from countwise.release.count_sources import table_source
from countwise.release.folder import place
from countwise.release.pipeline import publish
from countwise.release.spark import OnSpark, spark_record_source
from countwise.tables import spark_session
from countwise.tables.crossed_cells import read_crossed_domain, variables_of
from countwise.tables.domainfile import read_domain_file
from countwise.tables.hierarchy import Hierarchy
from countwise.tables.tabulate import Tabulation, tabulate, tabulate_across
from needs import needs

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # Ibis on PySpark
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # PySpark on Pandas 3
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.timeout(600),
    pytest.mark.xdist_group("spark"),
]

BY = ("state", "county", "race")
CLUSTER = "local-cluster[2,1,1024]"
DOMAIN = """
[columns.state]
levels = ["N", "S", "E", "W"]
[columns.county]
levels = ["1", "2", "3", "4", "5"]
[columns.race]
levels = ["a", "b", "c"]
"""


def logging_to(folder: Path) -> str:
    """What a cluster that keeps event logs has among its settings."""
    return f"--conf spark.eventLog.enabled=true --conf spark.eventLog.dir={folder.as_uri()}"


@pytest.fixture(scope="module")
def event_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the settings of the cluster say that Spark keeps its event log."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def session(event_log: Path) -> Iterator[Any]:
    needs(shutil.which("java") is not None, "Java (Debian's package default-jre-headless)")
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {
        "SPARK_HOME": str(home),
        "PYSPARK_SUBMIT_ARGS": f"--master {CLUSTER} --conf spark.driver.memory=1g "
        f"{logging_to(event_log)} pyspark-shell",
    }
    with patch.dict(os.environ, settings):
        made = spark_session.session("spark")
        yield made
        name = made.sparkContext.applicationId
        made.stop()
        shutil.rmtree(home / "work" / name, ignore_errors=True)


def records(folder: Path, *, stranger: bool = False) -> tuple[str, Path]:
    rng = np.random.default_rng(2)
    n = 5000
    table = pl.DataFrame(
        {
            "id": rng.integers(0, 2000, n),
            "state": rng.choice(["N", "S", "E"], n),
            "county": rng.choice(["1", "2", "3", "4", "5"], n),
            "race": rng.choice(["a", "b", "c"], n),
        }
    )
    if stranger:
        table[1234, "race"] = "Secret"
    table.write_parquet(folder / "people.parquet")
    (folder / "domain.toml").write_text(DOMAIN)
    return str(folder / "people.parquet"), folder / "domain.toml"


def test_the_session_encrypts_and_has_two_executors(session: Any) -> None:
    assert session.conf.get("spark.io.encryption.enabled") == "true"
    assert session.sparkContext.master == CLUSTER


def by_labels(hierarchy: Hierarchy, counts: IntArray) -> pl.DataFrame:
    """Cells by their labels: tables in pieces are in the order of the labels' text."""
    cells = hierarchy.frame(len(BY), count=counts)
    return cells.with_columns(pl.col(*BY, "level").cast(pl.String)).sort(BY)


def test_records_are_counted_measured_and_adjusted_on_executors(
    session: Any, tmp_path: Path
) -> None:
    """Next to no noise: the counts are those that DuckDB finds, and rows of a person are bounded.

    The state W has no records, so nothing but the domain makes its cells.
    """
    path, domain = records(tmp_path)
    tabulation = Tabulation(domain=read_domain_file(domain, by=BY))
    source = spark_record_source(path, tabulation, domain=domain, engine="spark", most=20)
    assert source is not None
    made = publish(
        source,
        cw.Plan(epsilon=200_000, by=BY),
        tmp_path / "release",
        runner=OnSpark(session=session),
        data_set=True,
    )
    back = cw.read_release(tmp_path / "release")
    assert_frame_equal(
        by_labels(back.hierarchy, back.counts[-1]),
        by_labels(tabulation.domain.hierarchy, tabulate(path, tabulation).reveal()),
    )
    assert back.hierarchy.find(("W", "1", "a"))
    assert back.manifest().items() <= made.manifest().items()
    parts = sorted(path.name for path in (tmp_path / "release" / "counts.parquet").iterdir())
    assert parts[0] == "00-000000.parquet"
    assert len(parts) == 2 + 2 * 4
    read = session.read.parquet(str(tmp_path / "release" / "counts.parquet"))
    assert read.count() == back.hierarchy.nodes


def test_bounded_rows_on_executors(session: Any, tmp_path: Path) -> None:
    path, domain = records(tmp_path)
    tabulation = Tabulation(domain=read_domain_file(domain, by=BY), person="id", rows=1)
    source = spark_record_source(path, tabulation, domain=domain, engine="spark", most=20)
    assert source is not None
    plan = cw.Plan(epsilon=200_000, by=BY, person="id", rows=1)
    publish(source, plan, tmp_path / "release", runner=OnSpark(session=session), data_set=True)
    total = cw.read_release(tmp_path / "release").counts[0][0]
    assert total == pl.read_parquet(path)["id"].n_unique()


def test_records_outside_the_domain_are_refused_without_showing_them(
    session: Any, tmp_path: Path
) -> None:
    path, domain = records(tmp_path, stranger=True)
    tabulation = Tabulation(domain=read_domain_file(domain, by=BY))
    source = spark_record_source(path, tabulation, domain=domain, engine="spark", most=20)
    assert source is not None
    with pytest.raises(TableError, match="column 'race' has no level of the domain") as refusal:
        publish(
            source,
            cw.Plan(epsilon=1, by=BY),
            tmp_path / "release",
            runner=OnSpark(session=session),
        )
    assert "Secret" not in str(refusal.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["domain.toml", "people.parquet"]


def test_records_of_variables_that_cross_are_counted_on_executors(
    session: Any, tmp_path: Path
) -> None:
    """By the command with next to no noise: the counts are those of the rows, in plain Polars."""
    del session
    path, domain = records(tmp_path)
    command = [
        "countwise", "release", "--records", path, "--domain", str(domain), "--by", "state",
        "--across", "county, race", "--epsilon", "200000", "--engine", "spark",
        "--out", str(tmp_path / "release"), "--json",
    ]  # fmt: skip
    with (
        redirect_stdout(StringIO()),
        redirect_stderr(StringIO()),
        patch.object(sys, "argv", command),
        pytest.raises(SystemExit) as end,
    ):
        main()
    assert not end.value.code
    made = cw.read_release(tmp_path / "release").table()
    found = made.filter(pl.col("level") == "state*county*race", pl.col("count") > 0)
    people = pl.read_parquet(path).group_by(BY).len("count")
    assert_frame_equal(
        found.select(pl.col(BY).cast(pl.String), "count").sort(BY),
        people.select(*BY, pl.col("count").cast(pl.Int64)).sort(BY),
    )


def test_a_stranger_among_records_that_cross_is_refused_without_being_shown(
    session: Any, tmp_path: Path
) -> None:
    del session
    path, domain = records(tmp_path, stranger=True)
    names = variables_of(("state",), "county, race")
    crossing = read_crossed_domain(domain, names)
    tabulation = Tabulation(domain=crossing.domain, person="id", rows=9)
    with pytest.raises(TableError, match="column 'race' has no level of the domain") as refusal:
        tabulate_across(path, tabulation, crossing, engine="spark")
    assert "Secret" not in str(refusal.value)


def slow(work: Callable[[int], bytes], notes: Path) -> Callable[[int], bytes]:
    """Work that leaves a note of each attempt: the piece, and who started the worker."""

    def attempt(piece: int) -> bytes:
        answer = work(piece)
        note = {"piece": piece, "daemon": os.getppid()}
        (notes / f"{piece}-{os.getpid()}-{time.time_ns()}").write_text(json.dumps(note))
        time.sleep(0.2)
        return answer

    return attempt


def _parent(process: int) -> int:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1])


def test_a_killed_executor_does_not_change_what_was_measured(session: Any, tmp_path: Path) -> None:
    """An executor dies after it committed noise and before its task was over.

    Its tasks are tried again on the other one, which finds the noise and keeps it.
    """
    shape = (8, 5, 20)
    grids = np.indices(shape).reshape(3, -1)
    table = pl.DataFrame({n: [f"{n}{i:02}" for i in g] for n, g in zip(BY, grids, strict=True)})
    path = tmp_path / "cells.parquet"
    table.with_columns(count=pl.lit(100, pl.Int64)).write_parquet(path)
    notes = tmp_path / "notes"
    notes.mkdir()
    seen: dict[str, bytes] = {}
    victims: list[int] = []
    staging, over = place(tmp_path / "release"), threading.Event()

    def assassin() -> None:
        """Kills the executor of the first attempt; keeps copies of what was committed by then."""
        while not any(notes.iterdir()):
            if over.wait(0.01):
                return
        time.sleep(0.05)
        first = json.loads(next(notes.iterdir()).read_text())
        for each in staging.glob("measured-*"):
            seen[each.name] = each.read_bytes()
        executor = _parent(first["daemon"])
        victims.append(executor)
        os.kill(executor, signal.SIGKILL)

    class Runner(OnSpark):
        def __call__(self, work: Any, count: int, report: Any) -> list[bytes]:
            if victims:
                return super().__call__(work, count, report)
            thread = threading.Thread(target=assassin)
            thread.start()
            try:
                return super().__call__(slow(work, notes), count, report)
            finally:
                over.set()
                thread.join()

    source = table_source(path, by=BY, count="count", domain=None, most=100)
    assert source is not None
    with monitored(staging, seen) as changed:
        publish(
            source,
            cw.Plan(epsilon=1, by=BY),
            tmp_path / "release",
            runner=Runner(session=session),
            data_set=True,
        )
    assert victims
    assert seen
    assert changed == []
    attempts = [json.loads(each.read_text())["piece"] for each in notes.iterdir()]
    assert len(attempts) > len(set(attempts)) == 8, "no task was tried again"
    back = cw.read_release(tmp_path / "release")
    hierarchy = back.hierarchy
    with_kept = 0
    for name, data in seen.items():
        copy = tmp_path / name
        copy.write_bytes(data)
        kept = Staging(folder=tmp_path).kept(name, "noisy3")["noisy3"]
        piece = int(name[9:15])
        first, last = hierarchy.offsets[1][piece], hierarchy.offsets[1][piece + 1]
        cells = slice(hierarchy.offsets[2][first], hierarchy.offsets[2][last])
        np.testing.assert_array_equal(back.measurements.noisy[3][cells], kept)
        with_kept += 1
    assert with_kept


class monitored:  # noqa: N801 - reads as a word
    """Watches that files which were committed are never changed while work goes on."""

    def __init__(self, folder: Path, seen: dict[str, bytes]) -> None:
        self.folder, self.seen, self.changed = folder, seen, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)

    def _watch(self) -> None:
        while not self.over.wait(0.1):
            for name, data in list(self.seen.items()):
                path = self.folder / name
                if path.exists() and path.read_bytes() != data:
                    self.changed.append(name)

    def __enter__(self) -> list[str]:
        self.thread.start()
        return self.changed

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()


def test_the_commands_release_and_infer_on_spark(session: Any, tmp_path: Path) -> None:
    """The command line end to end; the posterior is that of one machine."""
    del session
    path, domain = records(tmp_path)

    def run(*words: object) -> dict[str, Any]:
        out = StringIO()
        arguments = ["countwise", *map(str, words), "--json"]
        with (
            redirect_stdout(out),
            redirect_stderr(StringIO()),
            patch.object(sys, "argv", arguments),
            pytest.raises(SystemExit) as end,
        ):
            main()
        assert not end.value.code
        answer: dict[str, Any] = json.loads(out.getvalue())
        return answer

    release = tmp_path / "release"
    made = run(
        "release", "--records", path, "--by", ",".join(BY), "--domain", domain, "--epsilon", 2,
        "--engine", "spark", "--piece", 20, "--out", release,
    )  # fmt: skip
    assert made["resumed"] is False
    written = run(
        "infer",
        release,
        "--engine",
        "spark",
        "--piece",
        20,
        "--out",
        tmp_path / "posterior",
    )
    assert written["nodes"] == 1 + 4 + 20 + 60
    got = pl.read_parquet(tmp_path / "posterior" / "*.parquet")
    expected = cw.infer(release).table()
    names = [*BY, "level"]
    order = expected.with_columns(pl.col(names).cast(pl.String)).sort(names)
    np.testing.assert_allclose(got.sort(names)["mean"], order["mean"], rtol=1e-9)


def test_without_pyspark_the_extra_is_named() -> None:
    code = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from countwise.tables.spark_session import session\n"
        "try: session('spark')\n"
        "except Exception as problem: print(type(problem).__name__, problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "TableError engine 'spark' needs PySpark" in done.stdout
    assert 'pip install "countwise[spark]"' in done.stdout


def test_no_event_log_is_kept_where_the_cluster_keeps_one(
    session: Any, event_log: Path, tmp_path: Path
) -> None:
    """It would have queries with the key of bounded rows, and exact numbers of records."""
    made = tmp_path / "people.parquet"
    session.range(100).write.parquet(str(made))
    assert session.read.parquet(str(made)).count() == 100
    assert list(event_log.iterdir()) == []


def test_a_session_that_keeps_an_event_log_is_refused(tmp_path: Path) -> None:
    """One that is open already can not be told to stop."""
    needs(shutil.which("java") is not None, "Java (Debian's package default-jre-headless)")
    own = tmp_path / "own"
    own.mkdir()
    code = (
        "from pyspark.sql import SparkSession\n"
        "SparkSession.builder.master('local[1]').getOrCreate().range(3).count()\n"
        "from countwise.tables.spark_session import session\n"
        "session('spark')\n"
    )
    settings = {"PYSPARK_SUBMIT_ARGS": f"{logging_to(own)} pyspark-shell"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env=os.environ | settings, timeout=300,
    )  # fmt: skip
    assert "TableError" in done.stderr
    assert "keeps an event log" in done.stderr
    assert list(own.iterdir())  # such a session does keep one
