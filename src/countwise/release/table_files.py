"""The tables of a release that is made in pieces: single files, or folders of parts."""

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from countwise.errors import CountwiseError
from countwise.progress import Report
from countwise.release import arrow_tables
from countwise.release.execution import StageRunner
from countwise.release.piece_tasks import COLUMNS, TaskContext

COUNTS, NOISY = "counts.parquet", "measurements.parquet"


def _tables(work: TaskContext, kind: str, told: Callable[[], None]) -> Iterator[pa.Table]:
    """Rows of all levels, root first, and within a level by their labels."""
    by, depth = work.cut.by, work.cut.depth
    for level in range(depth + 1):
        yield arrow_tables.top_rows(work.cut.top, by, level, work.top_values(kind, level))
    for level in range(depth + 1, len(by) + 1):
        for i in range(len(work.cut)):
            yield arrow_tables.rows(work.shape(i, level), level, work.values(kind, i, level))
            told()


def write_files(work: TaskContext, out: Path, report: Report) -> dict[str, list[str]]:
    """One file a table, both written at once."""
    steps = 2 * len(work.cut) * (len(work.cut.by) - work.cut.depth)
    done = iter(range(1, steps + 1))

    def write(name: str, kind: str) -> None:
        def told() -> None:
            report("writing", next(done), steps)

        arrow_tables.write(out / name, _tables(work, kind, told), work.cut.by, COLUMNS[kind])

    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(write, COUNTS, "count"), pool.submit(write, NOISY, "noisy")]:
            each.result()
    return {COUNTS: [COUNTS], NOISY: [NOISY]}


def part_name(level: int, piece: int) -> str:
    """Names of parts in the order of the rows."""
    return f"{level:02}-{piece:06}.parquet"


@dataclass(frozen=True)
class _WriteParts:
    work: TaskContext
    out: Path

    def __call__(self, i: int) -> bytes:
        work, by = self.work, self.work.cut.by
        for level in range(work.cut.depth + 1, len(by) + 1):
            for table, kind in ((COUNTS, "count"), (NOISY, "noisy")):
                found = arrow_tables.rows(work.shape(i, level), level, work.values(kind, i, level))
                final = self.out / table / part_name(level, i)
                partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}")
                arrow_tables.write(partial, [found], by, COLUMNS[kind])
                partial.replace(final)
        return b""


def write_parts(work: TaskContext, out: Path, each: StageRunner) -> dict[str, list[str]]:
    """A folder a table; every piece writes its parts, and this process those of the top."""
    files: dict[str, list[str]] = {}
    for table, kind in ((COUNTS, "count"), (NOISY, "noisy")):
        (out / table).mkdir()
        for level in range(work.cut.depth + 1):
            top = arrow_tables.top_rows(
                work.cut.top, work.cut.by, level, work.top_values(kind, level)
            )
            arrow_tables.write(out / table / part_name(level, 0), [top], work.cut.by, COLUMNS[kind])
    each(_WriteParts(work, out), len(work.cut))
    for table in (COUNTS, NOISY):
        files[table] = sorted(f"{table}/{path.name}" for path in (out / table).glob("[0-9]*"))
    return files


def check_written(work: TaskContext, out: Path, files: dict[str, list[str]]) -> None:
    """What was written is read back: every level is whole and adds up to the same total."""
    sums = arrow_tables.level_sums([out / name for name in files[COUNTS]], "count", work.sizes())
    if len(set(sums)) != 1 or sums[0] < 0:
        raise CountwiseError("the counts that were written do not add up.")
