"""A release that was measured and adjusted in pieces: its folder is that of any other.

Its tables are single files, or folders of parts that are written where the pieces are. Memory
holds the top of the tree and a few pieces.
"""

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from countwise.errors import CountwiseError
from countwise.progress import Tell
from countwise.release.arrow_tables import level_sums, rows, top_rows, write_tables
from countwise.release.document import tie_facts
from countwise.release.execution import StageRunner
from countwise.release.manifest import tree_contents
from countwise.release.noise_margins import noise_in_words
from countwise.release.piece_tasks import TaskContext
from countwise.release.publication import COUNTS, NOISY, Files, Publication

KINDS = ((COUNTS, "count"), (NOISY, "noisy"))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PiecewiseRelease(Publication):
    """A published tree too large for memory; what is kept of its pieces is there until written."""

    work: TaskContext
    runner: StageRunner | None = None
    """Who writes folders of parts; without one, tables are single files."""

    @property
    def size(self) -> int:
        """Number of released counts."""
        return sum(each.nodes for each in self.budget.levels)

    @property
    def noise_within(self) -> list[str]:
        """What the noise of each level stays within in 95 of 100 cases."""
        return noise_in_words(self.budget, None)

    def contents(self) -> dict[str, Any]:
        """The levels, with their noise."""
        return tree_contents(self.work.cut.by, self.budget)

    def adjustment_facts(self) -> dict[str, Any]:
        """How the total was found and ties were broken."""
        return tie_facts(self.plan, self.work.tie_key)

    def moved(self) -> list[float]:
        """How far adjustment moved the counts of each level, on average."""
        return self.work.moved()

    def write_tables(self, folder: Path, tell: Tell) -> Files:
        """One file a table, both written at once, or a folder a table."""
        if self.runner is not None:
            return _write_parts(self.work, folder, self.runner)
        work = self.work
        steps = 2 * len(work.cut) * (len(work.cut.by) - work.cut.depth)
        done = iter(range(1, steps + 1))

        def write(name: str, kind: str) -> None:
            def told() -> None:
                tell("writing", next(done), steps)

            write_tables(folder / name, _tables(work, kind, told))

        with ThreadPoolExecutor(len(KINDS)) as pool:
            for each in [pool.submit(write, name, kind) for name, kind in KINDS]:
                each.result()
        return {name: [name] for name, _ in KINDS}

    def check_written(self, folder: Path, files: Files) -> None:
        """Every level is read back: whole, and adding up to the same total.

        That children add up to their parents was seen when their piece was adjusted.
        """
        sums = level_sums([folder / name for name in files[COUNTS]], "count", self.work.sizes())
        if len(set(sums)) != 1 or sums[0] < 0:
            raise CountwiseError("the counts that were written do not add up.")


def _tables(work: TaskContext, kind: str, told: Callable[[], None]) -> Iterator[pa.Table]:
    """Rows of all levels, root first, and within a level by their labels."""
    for level in range(work.cut.depth + 1):
        yield _top(work, kind, level)
    for level in range(work.cut.depth + 1, len(work.cut.by) + 1):
        for i in range(len(work.cut)):
            yield rows(work.shape(i, level), level, work.values(kind, i, level))
            told()


def _top(work: TaskContext, kind: str, level: int) -> pa.Table:
    return top_rows(work.cut.top, work.cut.by, level, work.top_values(kind, level))


def part_name(level: int, piece: int) -> str:
    """Names of parts in the order of the rows."""
    return f"{level:02}-{piece:06}.parquet"


@dataclass(frozen=True)
class _WritePart:
    work: TaskContext
    out: Path

    def __call__(self, i: int) -> bytes:
        work = self.work
        for level in range(work.cut.depth + 1, len(work.cut.by) + 1):
            for table, kind in KINDS:
                found = rows(work.shape(i, level), level, work.values(kind, i, level))
                final = self.out / table / part_name(level, i)
                partial = final.with_name(f".{final.name}.{secrets.token_hex(4)}")
                write_tables(partial, [found])
                partial.replace(final)
        return b""


def _write_parts(work: TaskContext, out: Path, each: StageRunner) -> Files:
    """A folder a table; every piece writes its parts, and this process those of the top."""
    for table, kind in KINDS:
        (out / table).mkdir()
        for level in range(work.cut.depth + 1):
            write_tables(out / table / part_name(level, 0), [_top(work, kind, level)])
    each(_WritePart(work, out), len(work.cut))
    return {
        table: sorted(f"{table}/{path.name}" for path in (out / table).glob("[0-9]*"))
        for table, _ in KINDS
    }
