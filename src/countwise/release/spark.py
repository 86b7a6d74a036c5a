"""Releases on Spark: the same work on the same pieces, done by its executors.

The driver has the top of the tree; pieces go to executors, which see the staging folder and the
input under the same paths. A task that is tried again finds what was completed and keeps it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa

from countwise.errors import CountwiseError, TableError
from countwise.progress import Tell
from countwise.release.count_sources import CountSource, records_in_pieces
from countwise.release.execution import StageRunner
from countwise.release.piece_tasks import TaskContext
from countwise.tables import engines
from countwise.tables.cut import PIECE, cut_domain
from countwise.tables.piece_sources import piece_numbers, record_piece
from countwise.tables.spark_session import quiet, session
from countwise.tables.tabulate import (
    REFUSALS,
    Tabulation,
    counted_cells,
    grouped,
)

ANSWERS = "piece long, answer binary"
PLACED = "piece long, number long, rows long"
POLL = 0.3  # seconds between questions to the cluster how far it is


@dataclass(frozen=True, kw_only=True)
class OnSpark:
    """Work on pieces as Arrow batches on executors, a task a piece."""

    session: Any

    def __call__(self, work: Callable[[int], bytes], count: int, report: Tell) -> list[bytes]:
        """The answers of all pieces, in order."""
        pieces = self.session.range(0, count, 1, numPartitions=count)
        with quiet():
            answers = pieces.mapInArrow(_Batches(work), ANSWERS)
        return self.answers(answers, count, report)

    def answers(self, frame: Any, count: int, report: Tell) -> list[bytes]:
        """The rows of a frame of answers, once they are all there."""
        done = threading.Event()
        watch = threading.Thread(target=self._watch, args=(done, count, report), daemon=True)
        watch.start()
        try:
            with quiet():
                found = dict(frame.collect())
        finally:
            done.set()
            watch.join()
        report("", count, count)
        return [bytes(found[i]) for i in range(count)]

    def _watch(self, done: threading.Event, count: int, report: Tell) -> None:
        tracker = self.session.sparkContext.statusTracker()
        while not done.wait(POLL):
            stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
            finished = sum(each.numCompletedTasks for each in stages if each)
            tasks = sum(each.numTasks for each in stages if each)
            if tasks:
                report("", min(finished * count // tasks, count), count)


@dataclass(frozen=True)
class _Batches:
    """Work on the pieces whose numbers come in batches."""

    work: Callable[[int], bytes]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch.column(0).to_pylist():
                with _without_words():
                    answer = self.work(piece)
                yield _answer(piece, answer)


def _answer(piece: int, answer: bytes) -> pa.RecordBatch:
    columns = [pa.array([piece], pa.int64()), pa.array([answer], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, names=["piece", "answer"])


def spark_record_source(
    records: str,
    tabulation: Tabulation,
    *,
    domain: Path,
    engine: str,
    most: int = PIECE,
) -> CountSource | None:
    """Records that Spark counts and hands, a piece each, to where they are measured."""
    cut = cut_domain(tabulation.domain, most=most)
    if cut is None:
        return None

    def measure(
        work: TaskContext, each: StageRunner, key: str, drawing: Callable[[], None]
    ) -> list[bytes]:
        spark = session(engine)
        with engines.opened(records, engine=engine, reading=tabulation.reading) as source, quiet():
            query = grouped(source, tabulation, key=key)
            counted = spark.sql(str(query.compile()))
            marks = spark.range(len(cut)).selectExpr("id piece", "-1L number", "0L rows")
            placed = counted.mapInArrow(_Place(work, tabulation), PLACED).unionAll(marks)
            spark.conf.set("spark.sql.shuffle.partitions", str(len(cut)))

            def answers(table: pa.Table) -> pa.Table:
                return _measured_rows(work, tabulation, table)

            measured = placed.groupBy("piece").applyInArrow(answers, ANSWERS)
            runner = OnSpark(session=spark)
            drawing()
            try:
                return runner.answers(measured, len(cut), each.report_stage)
            except Exception as problem:
                for refusal in REFUSALS:
                    if _mark(refusal.__name__) in str(problem):
                        raise TableError(refusal(source, tabulation)) from None
                raise

    return records_in_pieces(records, tabulation, cut, measure, domain, engine)


def _mark(name: str) -> str:
    return f"countwise can not count: {name}"


@dataclass(frozen=True)
class _Place:
    """From groups of equal records to the cells they are counted in, and the piece of each."""

    work: TaskContext
    tabulation: Tabulation

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            with _without_words():
                frame = cast(pl.DataFrame, pl.from_arrow(pa.Table.from_batches([batch])))
                found = counted_cells(frame, self.tabulation)
                if callable(found):
                    raise CountwiseError(_mark(found.__name__))
                numbers, rows = found
                pieces = piece_numbers(self.work.cut, self.tabulation.domain, numbers)
            columns = [pa.array(each, pa.int64()) for each in (pieces, numbers, rows)]
            yield pa.RecordBatch.from_arrays(columns, names=["piece", "number", "rows"])


def _measured_rows(work: TaskContext, tabulation: Tabulation, table: pa.Table) -> pa.Table:
    """Noisy counts of the piece whose counted cells come as a table."""
    piece = table["piece"][0].as_py()
    numbers, rows = table["number"].to_numpy(), table["rows"].to_numpy()
    some = numbers >= 0
    with _without_words():
        confidential = record_piece(work.cut, tabulation.domain, piece, numbers[some], rows[some])
        answer = work.measure(confidential, piece)
    return pa.Table.from_batches([_answer(piece, answer)])


@contextmanager
def _without_words() -> Iterator[None]:
    """Faults on an executor, whose words its logs would keep, by their type."""
    try:
        yield
    except CountwiseError:
        raise
    except Exception as problem:
        raise CountwiseError(f"{type(problem).__name__} on an executor.") from None
