"""The children of one parent when what is known of the sum involves a second number of each child.

A child has a count x and beside it a number y, and what is known is a function of Σx and Σy. The
pair is packed into one whole number, x·stride + y, so that the sum of the packed numbers is the
packed pair of sums, and the kernel for one number does the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.mixture import mixture_draws_given, mixture_sums
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.steps import Steps

TILTS = 65

Known = Callable[[IntArray, IntArray], FloatArray]


@dataclass(frozen=True, kw_only=True)
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

    def tied(self, low: int, coupling: FloatArray) -> tuple[int, FloatArray]:
        """What holds of the packed sum when `coupling` holds of Σx, from low on."""
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
        law, *_ = mixture_sums(
            weights, self.offsets, **self.layout(), coupling=coupling, coupling_low=start
        )
        reached = np.cumsum(law.reshape(-1, self.stride), axis=1)[sums - low]
        chosen = (reached < rng.random((len(sums), 1)) * reached[:, -1:]).sum(axis=1)
        packed = sums * self.stride + self.least + np.minimum(chosen, self.stride - 1)
        rows = mixture_draws_given(packed, weights, offsets=self.offsets, **self.layout(), rng=rng)
        return self.unpacked(rows)


@dataclass(frozen=True, kw_only=True)
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
        offsets=np.concatenate([[0], np.cumsum([len(each) for each in chances])]),
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

