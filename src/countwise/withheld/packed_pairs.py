"""The children of one parent when what is known of the sum involves a second number of each child.

A child has a count x and beside it a number y, and what is known is a function of Σx and Σy. The
pair is packed into one whole number, x·stride + y, so that the sum of the packed numbers is the
packed pair of sums, and the kernel for one number does the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import logsumexp

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.coupled_mixture import mixture_draws_given, mixture_sums
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.step_mixture import Steps

TILTS = 65  # odd, so that no tilt at all is one of them
BATCH = 4_096  # combinations weighed at a time, which bounds the memory

Known = Callable[[IntArray, IntArray], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class Paired(Steps):
    """Steps of packed numbers: every y, and every sum of them, is in least..least + stride - 1.

    `known` gives the probability of what is known for Σx and Σy. Chances have a factor
    exp(tilt·y), which what is known takes back: without it steps with many y that do not count
    would drown the others in rounding.
    """

    stride: int
    least: int
    known: Known
    tilt: float
    separable: ClassVar[bool] = False  # the y of all children are known together
    overlap: ClassVar[float] = 1e-7  # in two dimensions law and T meet less by nature

    def tied(self, low: int, coupling: FloatArray) -> tuple[int, FloatArray]:
        """The coupling of the packed sum, from that of Σx, which begins at low."""
        x = low + np.arange(len(coupling))
        y = self.least + np.arange(self.stride)
        factors = np.exp(-self.tilt * (y - y.mean()))
        table = coupling[:, None] * self.known(x[:, None], y) * factors
        return low * self.stride + self.least, table.ravel()

    def untied(self, sums: FloatArray) -> FloatArray:
        """The law of Σx from that of the packed sum."""
        return np.asarray(sums.reshape(-1, self.stride).sum(axis=1))

    def unpacked(self, packed: IntArray) -> IntArray:
        """The counts in packed numbers."""
        return np.asarray((packed - self.least) // self.stride)

    def split(self, children: Laws, sums: IntArray, rng: np.random.Generator) -> IntArray:
        """A draw of the children for each given sum: first Σy, then all pairs."""
        low, weights = int(sums.min()), self.weights(children)
        start, coupling = self.tied(low, np.ones(int(sums.max()) - low + 1))
        law, *_ = mixture_sums(weights, self.layout, coupling, start, least_overlap=self.overlap)
        reached = np.cumsum(law.reshape(-1, self.stride), axis=1)[sums - low]
        chosen = (reached < rng.random((len(sums), 1)) * reached[:, -1:]).sum(axis=1)
        packed = sums * self.stride + self.least + np.minimum(chosen, self.stride - 1)
        rows = mixture_draws_given(packed, weights, self.layout, rng=rng)
        return self.unpacked(rows)

    def logs(
        self, weights: FloatArray, rows: IntArray, low: int, coupling: FloatArray
    ) -> FloatArray:
        """log of the joint weight of each row of counts, Σy summed out."""
        batches = [rows[i : i + BATCH] for i in range(0, len(rows), BATCH)]
        return np.concatenate([self._logs(weights, batch, low, coupling) for batch in batches])

    def _logs(
        self, weights: FloatArray, rows: IntArray, low: int, coupling: FloatArray
    ) -> FloatArray:
        _, tied = self.tied(low, coupling)
        at = rows.sum(axis=1) - low
        inside = (at >= 0) & (at < len(coupling))
        known = tied.reshape(-1, self.stride)[np.where(inside, at, 0)]
        active = np.zeros(int(self.bounds[1]), np.int64)
        total = np.zeros(len(rows))
        for step in range(len(self.bounds) - 1):
            here = slice(self.bounds[step], self.bounds[step + 1])
            active[self.components[here]] = np.arange(here.start, here.stop)
            sums, law = 0, np.ones((len(rows), 1))
            for q in active.tolist():
                first, own = self._row(q, weights, rows[:, self.components[q]])
                sums, law = sums + first, _added(law, own)
            total += self._met(known, sums, law)
        with np.errstate(divide="ignore"):
            return np.log(np.where(inside, total, 0.0))

    def _row(self, q: int, weights: FloatArray, x: IntArray) -> tuple[int, FloatArray]:
        """The first y of a piece, and the weights of all its y for each count x."""
        piece = weights[self.offsets[q] : self.offsets[q + 1]]
        low, first = divmod(int(self.lows[q]) - self.least, self.stride)
        columns = (len(piece) - 1) % self.stride + 1
        counts = (len(piece) - columns) // self.stride + 1
        table = np.zeros((counts + 1, self.stride))  # the last row for counts outside
        table.ravel()[: len(piece)] = piece
        at = np.where((x >= low) & (x < low + counts), x - low, counts)
        return first + self.least, table[at, :columns]

    def _met(self, known: FloatArray, first: int, law: FloatArray) -> FloatArray:
        """Σ over y of the law of Σy, from first on, times what is known."""
        begin, end = max(first, self.least), min(first + law.shape[1], self.least + self.stride)
        own = law[:, begin - first : max(end - first, 0)]
        return np.asarray((own * known[:, begin - self.least : max(end - self.least, 0)]).sum(1))


def _added(law: FloatArray, other: FloatArray) -> FloatArray:
    """The law of the sum of two numbers, row by row."""
    if law.shape[1] < other.shape[1]:
        law, other = other, law
    result = np.zeros((len(law), law.shape[1] + other.shape[1] - 1))
    for i in range(other.shape[1]):
        result[:, i : i + law.shape[1]] += law * other[:, [i]]
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """The weight of each pair of a child: counts from `low` on (rows), y from `first` on."""

    low: int
    first: int
    chances: FloatArray

    @property
    def y(self) -> IntArray:
        """The y of each column."""
        return self.first + np.arange(self.chances.shape[1])


def packed(
    children: Laws,
    components: IntArray,
    bounds: IntArray,
    blocks: list[Block],
    *,
    stride: int,
    least: int,
    known: Known,
    band: tuple[int, int],
) -> Paired:
    """Steps whose piece q is a block; Σy is known to be within the band."""
    tilt = balance(children, components, bounds, blocks, band)
    chances, places, lows = [], [], []
    for s, block in zip(components, blocks, strict=True):
        rows, columns = block.chances.shape
        size = (rows - 1) * stride + columns
        flat = np.zeros((rows, stride))
        flat[:, :columns] = block.chances * np.exp(tilt * block.y)
        chances.append(flat.ravel()[:size])
        start = int(children.offsets[s] - children.lows[s]) + block.low
        places.append(np.repeat(start + np.arange(rows), stride)[:size])
        lows.append(block.low * stride + block.first)
    return Paired(
        components=components,
        bounds=bounds,
        lows=np.array(lows),
        offsets=np.concatenate([[0], np.cumsum([len(chance) for chance in chances])]),
        chances=np.concatenate(chances),
        places=np.concatenate(places),
        stride=stride,
        least=least,
        known=known,
        tilt=tilt,
    )


def balance(
    children: Laws,
    components: IntArray,
    bounds: IntArray,
    blocks: list[Block],
    band: tuple[int, int],
) -> float:
    """The tilt of y at which the bound on all steps together is least.

    The weight of all pairs with Σy in the band is at most that of all pairs under the tilt, times
    the largest exp(-tilt·Σy) of the band: a convex function of the tilt.
    """
    tilts = np.linspace(-1.0, 1.0, TILTS)[:, None] * steepest(blocks)
    current = np.zeros((int(bounds[1]), TILTS))
    steps = []
    for step in range(len(bounds) - 1):
        for q in range(bounds[step], bounds[step + 1]):
            s, block = int(components[q]), blocks[q]
            low, law = children.one(s)
            weights = law[block.low - low :][: len(block.chances)] @ block.chances
            with np.errstate(divide="ignore"):
                current[s] = logsumexp(np.log(weights) + tilts * block.y, axis=1)
        steps.append(current.sum(axis=0))
    bound = logsumexp(steps, axis=0) + (-tilts * np.array(band)).max(axis=1)
    return float(tilts[bound.argmin(), 0]) if np.isfinite(bound).any() else 0.0


def steepest(blocks: list[Block]) -> float:
    """A tilt at which no y of a block has all the weight: 30 over the longest range of them."""
    return 30.0 / max(len(block.y) for block in blocks)
