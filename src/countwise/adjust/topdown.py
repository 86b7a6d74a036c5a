"""Walking a tree from the root to the cells, parents in parallel."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from countwise.arrays import IntArray, UIntArray
from countwise.kernels.apportion import apportion_children, last_ranks, random_ranks
from countwise.tables.hierarchy import Hierarchy

NODES_A_TASK = 1 << 16


def ranks(hierarchy: Hierarchy, level: int, tie_key: int | None) -> UIntArray:
    """Who is served first on a tie: random and public by key, or the last when there is none."""
    size = hierarchy.sizes[level]
    if tie_key is None:
        return last_ranks(size)
    return np.asarray(random_ranks(np.uint64(tie_key), sum(hierarchy.sizes[:level]), size))


def share_among_children(
    offsets: IntArray, parents: IntArray, values: IntArray, order: UIntArray
) -> IntArray:
    """Each parent's count apportioned among its children in proportion to their values."""
    counts = np.empty_like(values)
    bounds = task_bounds(offsets)

    def work(task: int) -> None:
        first, last = bounds[task], bounds[task + 1]
        apportion_children(offsets, parents, values, order, counts, first, last)

    run_tasks(work, len(bounds) - 1)
    return counts


def task_bounds(offsets: IntArray) -> list[int]:
    """Ranges of parents with about NODES_A_TASK children each."""
    marks = np.arange(0, offsets[-1], NODES_A_TASK)
    bounds = np.unique(np.searchsorted(offsets[:-1], marks, side="left"))
    return [*(int(b) for b in bounds if b < len(offsets) - 1), len(offsets) - 1]


def run_tasks(work: Callable[[int], None], tasks: int) -> None:
    """Tasks on all cores; the kernels release the interpreter lock."""
    if tasks == 1:
        work(0)
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(work, range(tasks)):
            pass
