"""Who does the work on the pieces of a release."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from countwise.progress import Tell

WORKERS = 4  # threads: each holds a piece in memory


class Runner(Protocol):
    """Does work on every piece, each piece once or more often, and gives the answers in order."""

    def __call__(self, work: Callable[[int], bytes], count: int, report: Tell) -> list[bytes]:
        """The answers."""
        ...


@dataclass(frozen=True, kw_only=True)
class StageRunner:
    """A runner whose progress is reported under the name of one stage of a release."""

    runner: Runner
    stage: str
    report: Tell

    def __call__(self, work: Callable[[int], bytes], count: int) -> list[bytes]:
        """The answers of all pieces."""
        self.report_stage("", 0, count)
        return self.runner(work, count, self.report_stage)

    def report_stage(self, _: str, done: int = 0, of: int = 0, /) -> None:
        """Tell of work under the name of the stage."""
        self.report(self.stage, done, of)


def in_threads(work: Callable[[int], bytes], count: int, report: Tell) -> list[bytes]:
    """Pieces in parallel in this process; the kernels release the interpreter lock."""
    workers = min(os.cpu_count() or 1, WORKERS)
    with ThreadPoolExecutor(workers) as pool:
        answers = []
        for answer in pool.map(work, range(count)):
            answers.append(answer)
            report("", len(answers), count)
        return answers
