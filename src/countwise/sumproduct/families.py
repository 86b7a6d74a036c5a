"""Families of cells that carry the same noise, when every count may be any whole number.

The counts of a family shift with its noise. What n cells say about their sum is the law of a sum
of n noises, around the sum of their noisy counts; and the true count of a cell minus its noisy one
has the same law for all cells of a family. So a family costs no more than one of its cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.kernels.compilation import reading
from countwise.kernels.shifts import told_by_parents
from countwise.negligible import SMALLEST
from countwise.noise.laws import IntegerLaw
from countwise.noise.noise_sums import sum_of
from countwise.sumproduct.count_laws import Laws, grid, window_offsets
from countwise.sumproduct.node_noise import reach
from countwise.sumproduct.tree import chunks

LARGEST_ROW = 1 << 22  # values of the laws of parents that are made at a time
CELLS = 8_192  # cells whose laws are made at a time
EDGE = 1e-10  # share of a law at the end of its window that calls for a wider one


@dataclass(frozen=True, kw_only=True, eq=False)
class Families:
    """Noisy cells, their law, which are exact (then they carry none), and where families begin."""

    law: IntegerLaw
    noisy: IntArray
    exact: BoolArray | None
    offsets: IntArray

    def one(self, parent: int) -> "Families":
        """The family of one parent."""
        here = slice(int(self.offsets[parent]), int(self.offsets[parent + 1]))
        return Families(
            law=self.law,
            noisy=self.noisy[here],
            exact=None if self.exact is None else self.exact[here],
            offsets=np.array([0, here.stop - here.start]),
        )

    @property
    def sizes(self) -> IntArray:
        """How many cells of each family carry noise."""
        if self.exact is None:
            return np.diff(self.offsets) * (self.law.variance > 0.0)
        noisy = (~self.exact & (self.law.variance > 0.0)).astype(np.int64)
        return np.add.reduceat(noisy, self.offsets[:-1])

    @property
    def centres(self) -> IntArray:
        """The sum of the noisy counts of each family."""
        return np.add.reduceat(self.noisy, self.offsets[:-1])

    def sums(
        self, own: IntArray, far: IntArray, depth: float
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """What families say about their sums: lows and highs of windows, and logarithms in them.

        The windows leave room for the parents' own noisy counts, whose noise has the reach `far`.
        """
        centres, sizes = self.centres, self.sizes
        spread = np.array([sum_reach(self.law, int(n), depth) for n in sizes])
        nearest = np.minimum(far, spread)
        known = (far == 0) | (spread == 0)
        middle = np.where(far == 0, own, centres)
        lows = np.where(known, middle, np.minimum(own, centres) - nearest)
        highs = np.where(known, middle, np.maximum(own, centres) + nearest)
        offsets = window_offsets(lows, highs)
        x = grid(lows, offsets)
        away = np.abs(x - np.repeat(centres, np.diff(offsets)))
        logs = np.empty(len(x))
        owners = np.repeat(sizes, np.diff(offsets))
        for n in np.unique(sizes):
            here = owners == n
            logs[here] = sum_logs(self.law, int(n), int(away[here].max()))[away[here]]
        return lows, highs, logs

    def differences(self, couplings: Laws, depth: float) -> Iterator[tuple[int, FloatArray]]:
        """The law of the true count minus the noisy one, for the cells of each parent: many rows.

        `couplings` hold of the parents, their families left out. With the rows comes the first
        parent; a row goes from -r to r, r being half its length.
        """
        parents, wide = couplings.nodes, 2 * reach(self.law, depth) + 1
        step = max(LARGEST_ROW // wide, 1)
        for first in range(0, parents, step):
            last = min(first + step, parents)
            yield first, self._rows(couplings, first, last, depth)

    def _rows(self, couplings: Laws, first: int, last: int, depth: float) -> FloatArray:
        far = reach(self.law, depth)
        part = couplings.part(first, last)
        others = np.maximum(self.sizes[first:last] - 1, 0)
        kinds, which = np.unique(others, return_inverse=True)
        centres = self.centres[first:last]
        longest = int(np.maximum(np.abs(part.lows - centres), np.abs(part.highs - centres)).max())
        steps = [sum_slopes(self.law, int(n), longest + far) for n in kinds]
        starts = np.concatenate([[0], np.cumsum([len(step) for step in steps])])
        rows = told_by_parents(
            reading(part.values, np.float64),
            part.offsets,
            part.lows,
            centres,
            which.astype(np.int64),
            np.concatenate([*steps, np.empty(0)]),
            starts,
            far,
        )
        rows *= np.exp(self.law.logpmf(np.arange(-far, far + 1)) - self.law.logpmf(0))
        ends = rows[:, [0, -1]].max(axis=1) > EDGE * rows.sum(axis=1)
        if bool(ends.any()) and far > 0 and depth < SMALLEST:
            return self._rows(couplings, first, last, 2 * depth)
        return rows

    def laws(
        self, couplings: Laws, depth: float, least: IntArray, most: IntArray
    ) -> Iterator[Laws]:
        """The law of every cell's true count, from its least to its most: cells chunk by chunk."""
        for first, rows in self.differences(couplings, depth):
            family = self.offsets[first : first + len(rows) + 1]
            for start, stop in chunks(family):
                low, high = int(family[start]), int(family[stop])
                owners = np.repeat(np.arange(start, stop), np.diff(family[start : stop + 1]))
                for begin in range(low, high, CELLS):
                    end = min(begin + CELLS, high)
                    here = slice(begin, end)
                    yield self._cut(here, rows, owners[begin - low : end - low], least, most)

    def _cut(
        self, cells: slice, rows: FloatArray, owners: IntArray, least: IntArray, most: IntArray
    ) -> Laws:
        noisy, far = self.noisy[cells], rows.shape[1] // 2
        still = np.zeros(len(noisy), np.bool_)
        if self.exact is not None:
            still = self.exact[cells]
        reached = np.where(still, 0, far)
        lows = np.clip(noisy - reached, least[cells], most[cells])
        highs = np.clip(noisy + reached, lows, most[cells])
        offsets = window_offsets(lows, highs)
        places = grid(lows - noisy + far, offsets)
        size = np.diff(offsets)
        inside = (places >= 0) & (places < rows.shape[1])
        values = rows[np.repeat(owners, size), np.where(inside, places, 0)]
        alone = np.repeat((size == 1) | still, size)
        return Laws(
            lows=lows, offsets=offsets, values=np.where(alone, 1.0, np.where(inside, values, 0.0))
        )


@lru_cache(maxsize=4096)
def sum_slopes(law: IntegerLaw, count: int, far: int) -> FloatArray:
    """Log-ratios of a sum of so many noises at 0, 1, … up to far; none where nothing is summed."""
    if count == 0 or law.variance == 0.0:
        return np.empty(0)
    return np.asarray(sum_of({law: count}).slope(np.arange(max(far, 1))))


def sum_logs(law: IntegerLaw, count: int, far: int) -> FloatArray:
    """log F(k) - log F(0) for k = 0..far, F the law of such a sum."""
    slopes = sum_slopes(law, count, far)
    if not len(slopes):
        return np.where(np.arange(far + 1) == 0, 0.0, -np.inf)
    return np.concatenate([[0.0], np.cumsum(slopes)])[: far + 1]


@lru_cache(maxsize=4096)
def sum_reach(law: IntegerLaw, count: int, depth: float) -> int:
    """The smallest r with F(r) ≤ exp(-depth)·F(0)."""
    if count == 0 or law.variance == 0.0:
        return 0
    most = int(np.sqrt(2.0 * depth * count * law.variance)) + reach(law, depth) + 1
    return int(np.searchsorted(-sum_logs(law, count, most), depth))
