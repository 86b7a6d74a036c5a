"""A run of steps by Fourier transforms that its bulk does not wrap around."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.fft import next_fast_len

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.spectrum import ComplexArray, by_frequency, merged, planes
from countwise.sumproduct.count_laws import Laws
from countwise.withheld.pair_columns import BOTH, FIRST, SECOND, Columns
from countwise.withheld.pair_tilts import SumTable

ROUNDING = 1e-15  # of all the weight there is, whether or not it counts


class Part(NamedTuple):
    """What a run adds: marginals, messages and the law of N, up to exp(log); its error as well."""

    log: float
    marginals: FloatArray
    messages: FloatArray
    sums: FloatArray
    error: float


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformFrame:
    """Where Σz and Σy of a run are: arrays as long as the transforms.

    z is d; in a free run it is d + y, and Σy any number of those that T does not tell apart.
    """

    z: IntArray
    y: IntArray
    free: bool

    @property
    def places(self) -> tuple[IntArray, ...]:
        """Where (y, z) is in an array modulo the lengths of the transforms."""
        return np.ix_(self.y % len(self.y), self.z % len(self.z))

    def totals(self, m: int) -> IntArray:
        """The parent's count N for each y (rows) and z."""
        return m + self.z + (0 if self.free else 1) * self.y[:, None]

    def turns(self, y: IntArray) -> FloatArray | ComplexArray:
        """What makes the transform over z out of that over d, for columns with these y."""
        if not self.free:
            return np.ones(1)
        size = len(self.z)
        return np.asarray(np.exp(-2j * np.pi / size * ((y[:, None] * np.arange(size)) % size)))


def hull(ends: tuple[IntArray, IntArray]) -> tuple[int, int]:
    """The lowest and the highest of the ends of all steps."""
    return int(ends[0].min()), int(ends[1].max())


def framed(part: Columns, tilt: FloatArray, *, free: bool) -> TransformFrame:
    """Long enough that the bulk of no step wraps around."""
    y_low, y_high = hull(part.bulk(tilt, SECOND))
    z_low, z_high = hull(part.bulk(tilt, BOTH if free else FIRST))
    size = next_fast_len(max(z_high - z_low + 1, len(part.d)))
    period = 1 if free else next_fast_len(y_high - y_low + 1, real=True)
    return TransformFrame(z=z_low + np.arange(size), y=y_low + np.arange(period), free=free)


def by_transforms(
    part: Columns, children: Laws, couple: SumTable, tilt: FloatArray, *, free: bool
) -> Part | None:
    """What a run adds; nothing where T is zero."""
    frame = framed(part, tilt, free=free)
    totals = frame.totals(couple.m)
    with np.errstate(divide="ignore"):
        logs = np.log(couple.at(totals, frame.y[:, None])) - tilt[0] * frame.z
    if not free:
        logs -= tilt[1] * frame.y[:, None]
    largest = float(logs.max())
    if largest == -np.inf:
        return None
    coupling = np.exp(logs - largest)
    at = part.moments(tilt)
    scales = part.piece_logs(tilt)[part.held(int(at.logs.argmax()))]
    factors = np.exp(tilt[0] * part.d + (tilt[1] * part.atoms.y - scales[part.component])[:, None])
    law, messages = _transformed(part, frame, coupling, part.weights * factors)
    met = law * coupling
    place = totals - couple.low
    inside = (place >= 0) & (place < len(couple.table))
    messages *= factors * part.inside
    where, count = part.places.ravel(), len(children.values)
    return Part(
        float(scales.sum()) + largest,
        _added(where, messages * part.weights, count),
        _added(where, messages * part.chances, count),
        _added(place[inside], met[inside], len(couple.table)),
        ROUNDING * float(np.exp(at.logs - scales.sum()).sum()),
    )


def _transformed(
    part: Columns, frame: TransformFrame, coupling: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ over steps of the law of (Σy, Σz) in the frame, and the message to every column at d."""
    size, period = len(frame.z), len(frame.y)
    folded, placed = np.empty_like(coupling), np.zeros((len(weights), size))
    folded[frame.places] = coupling
    placed[:, part.d % size] = weights
    turns = frame.turns(part.atoms.y)
    found, spectra = by_frequency(
        part.atoms,
        planes(np.fft.fft(placed) * turns),
        planes(np.conj(np.fft.fft(np.fft.rfft(folded, axis=0)))),
        period,
    )
    law = np.fft.irfft(np.fft.ifft(merged(found)), n=period, axis=0)[frame.places]
    messages = np.fft.fft(merged(spectra) * turns).real[:, part.d % size] / (size * period)
    return np.maximum(law, 0.0), np.maximum(messages, 0.0)


def _added(places: IntArray, values: FloatArray, count: int) -> FloatArray:
    return np.asarray(np.bincount(places, values.ravel(), count), np.float64)
