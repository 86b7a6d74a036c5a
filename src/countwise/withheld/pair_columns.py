"""Children with a count x and a noisy count n each: a column for every noisy count of a child.

The pair is counted as d = x - n and y = n - k, k the released count. What is known of the sums,
T(Σd, Σy), is left to `runs`; here are the weights, and how the steps of a mixture take columns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.kernels.spectrum import Atoms
from countwise.negligible import ROUNDING
from countwise.sumproduct.count_laws import Laws, grid
from countwise.sumproduct.node_noise import Noise

BARRED = -1e5  # for the logarithm of zero: a step without such a piece is preferred
BOTH, FIRST, SECOND = np.ones(2), np.array([1.0, 0.0]), np.array([0.0, 1.0])
PULLS = np.geomspace(0.02, 30.0, 24)  # tilts tried for the end of a bulk, in deviations


class CutPieces(NamedTuple):
    """Windows of clipped noisy counts, as in `kernels.cuts.Cuts`."""

    components: IntArray
    bounds: IntArray
    lows: IntArray
    highs: IntArray

    def part(self, first: int, last: int) -> "CutPieces":
        """The steps first to last - 1 alone."""
        held = np.zeros(int(self.bounds[1]), np.int64)
        pieces = np.arange(self.bounds[first + 1])
        np.maximum.at(held, self.components[: len(pieces)], pieces)
        chosen = np.concatenate([held, np.arange(self.bounds[first + 1], self.bounds[last])])
        steps = self.bounds[first + 1 : last + 1] - self.bounds[first + 1] + len(held)
        bounds = np.concatenate([[0], steps])
        return CutPieces(self.components[chosen], bounds, self.lows[chosen], self.highs[chosen])


class Moments(NamedTuple):
    """Log mass of each step, mean of (Σd, Σy), and the covariance of these two."""

    logs: FloatArray
    means: FloatArray
    spreads: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Column c is about child ``component[c]``: weights of (d[i], y[c]), and their chances.

    A weight is the child's law at x = n + d times the chance P(n | x); ``places`` says where x
    is in the layout of the children, and ``inside`` whether it is there at all.
    """

    component: IntArray
    d: IntArray
    places: IntArray
    inside: BoolArray
    chances: FloatArray
    weights: FloatArray
    atoms: Atoms

    @cached_property
    def uses(self) -> csr_array:
        """Which piece takes which atom."""
        sizes = self.atoms.lasts - self.atoms.firsts
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        taken = grid(self.atoms.firsts, offsets)
        shape = (len(sizes), len(self.atoms.starts) - 1)
        return csr_array((np.ones(len(taken)), taken, offsets), shape=shape)

    @cached_property
    def before(self) -> IntArray:
        """The piece that served a component before each piece, -1 for none."""
        order = np.argsort(self.atoms.components, kind="stable")
        served = self.atoms.components[order]
        earlier = np.where(np.append(False, served[1:] == served[:-1]), np.roll(order, 1), -1)
        result = np.empty(len(order), np.int64)
        result[order] = earlier
        return result

    def held(self, step: int) -> IntArray:
        """The piece of every component that serves at a step."""
        last = int(self.atoms.bounds[step + 1])
        result = np.zeros(int(self.atoms.bounds[1]), np.int64)
        np.maximum.at(result, self.atoms.components[:last], np.arange(last))
        return result

    def by_piece(self, of_columns: FloatArray) -> FloatArray:
        """Sums over the columns of each piece."""
        sums = np.add.reduceat(of_columns, self.atoms.starts[:-1], axis=0)
        return np.asarray(self.uses @ sums)

    def by_step(self, of_pieces: FloatArray) -> FloatArray:
        """Sums over the pieces that serve at each step."""
        old = np.where((self.before >= 0)[:, None], of_pieces[self.before], 0.0)
        changes = np.add.reduceat(of_pieces - old, self.atoms.bounds[:-1], axis=0)
        return np.asarray(np.cumsum(changes, axis=0))

    def moments(self, tilt: FloatArray) -> Moments:
        """Of the weights times exp(tilt[0]·d + tilt[1]·y)."""
        d, y = self.d.astype(np.float64), self.atoms.y.astype(np.float64)
        e = np.exp(tilt[0] * d)
        of_d = self.weights @ np.stack([e, e * d, e * d * d], axis=1)
        mass, first, square = of_d.T * np.exp(tilt[1] * y)
        sums = self.by_piece(np.stack([mass, first, y * mass, square, y * first, y * y * mass], 1))
        logs = _logs(sums[:, :1])
        mean = sums[:, 1:] / np.where(sums[:, :1] > 0.0, sums[:, :1], 1.0)
        (md, my), spread = mean[:, :2].T, mean[:, 2:]
        spread = spread - np.stack([md * md, md * my, my * my], axis=1)
        found = self.by_step(np.concatenate([logs, mean[:, :2], spread], axis=1))
        return Moments(found[:, 0], found[:, 1:3], found[:, 3:][:, [0, 1, 1, 2]].reshape(-1, 2, 2))

    def piece_logs(self, tilt: FloatArray) -> FloatArray:
        """The log mass of every piece under a tilt."""
        of_d = self.weights @ np.exp(tilt[0] * self.d)
        return _logs(self.by_piece(of_d * np.exp(tilt[1] * self.atoms.y)))

    def bulk(self, tilt: FloatArray, along: FloatArray) -> tuple[IntArray, IntArray]:
        """Where along[0]·Σd + along[1]·Σy is at every step of the tilted law, by Chernoff."""
        at = self.moments(tilt)
        square = float(np.einsum("sij,i,j->s", at.spreads, along, along).max())
        width = np.sqrt(max(square, 0.1))
        span = along[0] * np.abs(self.d).max() + along[1] * np.abs(self.atoms.y).max() + 1.0
        pulls = np.minimum(PULLS / width, 300.0 / span)
        pulls = np.concatenate([-pulls, pulls])
        of_d = self.weights @ np.exp(np.outer(self.d, tilt[0] + along[0] * pulls))
        of_y = np.exp(np.outer(self.atoms.y, tilt[1] + along[1] * pulls))
        logs = self.by_step(_logs(self.by_piece(of_d * of_y))) - at.logs[:, None]
        ends = (logs + ROUNDING) / pulls
        low, high = ends[:, : len(PULLS)].max(axis=1), ends[:, len(PULLS) :].min(axis=1)
        middle = at.means @ along
        return (
            np.floor(np.minimum(low, middle)).astype(np.int64),
            np.ceil(np.maximum(high, middle)).astype(np.int64),
        )


def _logs(mass: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(np.log(mass), BARRED))


def columns(children: Laws, noise: Noise, k: IntArray, pieces: CutPieces, depth: float) -> Columns:
    """The columns of all noisy counts in the windows of pieces and within reach of a child."""
    far = noise.reach(np.full(children.nodes, depth))
    s = pieces.components
    least, most = (children.lows - far)[s], (children.highs + far)[s] + 1
    begins = np.clip(np.where(pieces.lows == 0, least, pieces.lows), least, most)
    ends = np.clip(np.minimum(pieces.highs, most) + 1, begins, most)
    firsts, lasts = np.full(children.nodes, most.max()), np.full(children.nodes, least.min())
    np.minimum.at(firsts, s, begins)
    np.maximum.at(lasts, s, ends)
    offsets = np.concatenate([[0], np.cumsum(lasts - firsts)])
    component = np.repeat(np.arange(children.nodes), lasts - firsts)
    n = grid(firsts, offsets)
    shift = (offsets[:-1] - firsts)[s]
    starts = np.unique(np.concatenate([begins + shift, ends + shift, offsets]))
    d = np.arange(-far.max(), far.max() + 1)
    x = n[:, None] + d
    inside = (x >= children.lows[component, None]) & (x <= children.highs[component, None])
    at = x + (children.offsets[:-1] - children.lows)[component, None]
    places = np.where(inside, at, 0)
    rows = np.stack([law.pmf(-d) for law in noise.laws])
    chances = np.where(inside, rows[noise.which[component]], 0.0)
    return Columns(
        component=component,
        d=d,
        places=places,
        inside=inside,
        chances=chances,
        weights=children.values[places] * chances,
        atoms=Atoms(
            n - k[component],
            starts,
            np.searchsorted(starts, begins + shift),
            np.searchsorted(starts, ends + shift),
            s,
            pieces.bounds,
        ),
    )
