"""Whole cells that meet exact counts of several margins at once, where descent does not."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, OptimizeResult, milp
from scipy.sparse import csr_array, hstack

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import InputError
from countwise.margins.incidence import node_of_each
from countwise.tables.workload import Margin, Workload

SECONDS = 60.0  # for the nearest cells; then any that meet the counts
TIME_IS_UP = 1  # the solver's word for a limit reached


def matched(
    workload: Workload,
    values: FloatArray,
    free: BoolArray,
    exact: Mapping[Margin, tuple[BoolArray, IntArray]],
) -> IntArray:
    """The whole non-negative cells with these exact sums that are nearest to a table, summed up.

    Of two nested families of sums every corner of the program is whole; of others branching is
    needed.
    """
    rows, counts = _exact_rows(workload, exact)
    open_ = np.flatnonzero(free.reshape(-1))
    rows, wanted = rows[:, open_], values.reshape(-1)[open_]
    base = np.floor(wanted)
    fractions = wanted - base
    # Cells are base + first + more - less, the first unit up at a price of its own.
    prices = np.concatenate([1.0 - 2.0 * fractions, 2.0 - fractions, 1.0 + fractions])

    def solved(prices: FloatArray, **options: float) -> OptimizeResult:
        ends = np.concatenate([np.ones(base.size), np.full(base.size, np.inf), base])
        return milp(
            prices,
            integrality=1,
            bounds=Bounds(0.0, ends),
            constraints=LinearConstraint(hstack([rows, rows, -rows]), *(counts - rows @ base,) * 2),
            options=options,
        )

    whole = solved(prices, time_limit=SECONDS, mip_rel_gap=0.05)
    if whole.x is None and whole.status == TIME_IS_UP:
        # The noise is drawn: rather any cells that meet the counts, however long that takes.
        whole = solved(np.zeros_like(prices))
    if whole.x is None:
        raise InputError(
            "no whole cells meet all exact counts at once. "
            "To fix, keep fewer tables exact, or check that they are sums of one table."
        )
    first, more, less = np.rint(whole.x).astype(np.int64).reshape(3, -1)
    cells = np.zeros(workload.cells, np.int64)
    cells[open_] = base.astype(np.int64) + first + more - less
    return cells


def _exact_rows(
    workload: Workload, exact: Mapping[Margin, tuple[BoolArray, IntArray]]
) -> tuple[csr_array, IntArray]:
    """A row for every exact count: the cells that it sums."""
    columns, owners, counts, before = [], [], [], 0
    for margin, (certain, values) in exact.items():
        place = np.cumsum(certain.reshape(-1)) - 1
        nodes = node_of_each(workload, margin, of=workload.finest)
        cells = np.flatnonzero(certain.reshape(-1)[nodes])
        columns.append(cells)
        owners.append(before + place[nodes[cells]])
        counts.append(values[certain])
        before += int(certain.sum())
    every, rows = np.concatenate(columns), np.concatenate(owners)
    matrix = csr_array((np.ones(every.size), (rows, every)), shape=(before, workload.cells))
    return matrix, np.concatenate(counts)
