"""Work on all cores in this process: compiled kernels release the interpreter lock."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def run_tasks(work: Callable[[int], None], tasks: int) -> None:
    """Tasks 0, 1, …, as many at a time as there are cores."""
    if tasks == 1:
        work(0)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(work, range(tasks)):
            pass


def run_parts(work: Callable[[int, int], None], count: int, *, alone: bool = False) -> None:
    """Work on first..last-1 for a part of 0..count-1 a core; on all at once if alone."""
    parts = 1 if alone else min(os.cpu_count() or 1, count)
    run_tasks(lambda i: work(count * i // parts, count * (i + 1) // parts), parts)
