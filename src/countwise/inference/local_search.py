"""Searching for the most probable combination of siblings by moving units between them."""

from typing import Protocol

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.sumproduct.count_laws import Laws

ALL_PAIRS = 8  # children between which all moves of a unit are tried
MOVES = 6  # of more children, the best few to gain a unit and the best few to lose one
BETTER = 1e-11  # in a log weight; less is rounding


class JointLaw(Protocol):
    """The joint law of a parent's children, able to weigh combinations."""

    @property
    def grid(self) -> int:
        """How many combinations may all be tried."""
        ...

    @property
    def log_mass(self) -> float:
        """log of the weight of all combinations together."""
        ...

    def logs(self, rows: IntArray) -> FloatArray:
        """log of the weight of each row of counts."""
        ...


def moments(laws: Laws) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of each node."""
    start, mass = laws.offsets[:-1], laws.sums()
    means = np.add.reduceat(laws.values * laws.grid, start) / mass
    away = laws.grid - means[laws.owners]
    return means, np.add.reduceat(laws.values * away**2, start) / mass


def middles(laws: Laws) -> IntArray:
    """Two rows to begin with: the modes, and the means."""
    modes = [low + int(law.argmax()) for low, law in map(laws.one, range(laws.nodes))]
    return np.stack([np.array(modes), np.rint(moments(laws)[0]).astype(np.int64)])


def climbed(joint: JointLaw, rows: IntArray, *, free: bool) -> tuple[IntArray, FloatArray]:
    """Rows and their logs after the best move, again and again, until none helps.

    A move takes a unit from one child to another; in a free search it may also be gained or lost.
    """
    rows, logs = rows.copy(), joint.logs(rows)
    active = np.arange(len(rows))
    while len(active):
        tried, owners = _moves(joint, rows[active], free=free)
        if not len(tried):
            break
        found = joint.logs(tried)
        order = np.lexsort((-found, owners))
        first = order[np.unique(owners[order], return_index=True)[1]]
        better = found[first] > logs[active[owners[first]]] + BETTER
        first = first[better]
        active = active[owners[first]]
        rows[active], logs[active] = tried[first], found[first]
    return rows, logs


def _moves(joint: JointLaw, rows: IntArray, *, free: bool) -> tuple[IntArray, IntArray]:
    """Neighbours of every row, and which row each belongs to."""
    size = rows.shape[1]
    one = np.eye(size, dtype=np.int64)
    single = np.concatenate([one, -one])
    near = rows[:, None] + single
    if size <= ALL_PAIRS:
        pairs = (one[:, None] - one).reshape(-1, size)
        pairs = rows[:, None] + pairs[pairs.any(axis=1)]
    else:
        logs = joint.logs(near.reshape(-1, size)).reshape(len(rows), 2, size)
        best = np.argsort(-logs, axis=2, kind="stable")
        pairs = np.concatenate([_swaps(rows, best), _many(rows, best)], axis=1)
    tried = np.concatenate([pairs, near], axis=1) if free else pairs
    owners = np.repeat(np.arange(len(rows)), tried.shape[1])
    tried = tried.reshape(-1, size)
    kept = tried.min(axis=1) >= 0
    return tried[kept], owners[kept]


def _swaps(rows: IntArray, best: IntArray) -> IntArray:
    """A unit from one of the best to lose it to one of the best to gain it."""
    one = np.eye(rows.shape[1], dtype=np.int64)
    up, down = (one[best[:, side, :MOVES]] for side in (0, 1))
    moved = up[:, :, None] - down[:, None]
    return rows[:, None] + moved.reshape(len(rows), -1, rows.shape[1])


def _many(rows: IntArray, best: IntArray) -> IntArray:
    """Units from the 2, 4, 8, … best to lose one to as many that are best to gain one."""
    size = rows.shape[1]
    counts = 2 ** np.arange(1, max(int(np.log2(size / 2)), 1) + 1)
    place = np.empty_like(best)
    np.put_along_axis(place, best, np.arange(size)[None, None], axis=2)
    taken = place[:, :, None] < counts[:, None]
    return rows[:, None] + taken[:, 0] - taken[:, 1]
