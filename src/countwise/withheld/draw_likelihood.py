"""The likelihood of counts drawn from a multinomial: children are independent given a scale.

A parent's m units are dealt in proportion to its children's v: the draft's Algorithm 2, with v the
clipped noisy count, and Algorithm 1, with v a draw from the posterior given the noisy count
(Wang 2020, section 3.1.1). The likelihood Πv_s^{k_s}/(Σv)^m couples the children, but

    (Σv)^-m = ∫ u^{m-1} e^{-uΣv} du / Γ(m)

and given u they are independent: child s has weight Σ_v v^{k_s}·e^{-uv}·P(v | N_s). The integral
over log u is a sum at equal steps, whose error falls faster than any power (Trefethen & Weideman
2014). The case that all v
are zero, dealt as if they were equal, is one more step.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from countwise.arrays import FloatArray, frozen
from countwise.negligible import LEFT_OUT
from countwise.noise.laws import IntegerLaw
from countwise.sumproduct.count_laws import Laws
from countwise.sumproduct.evidence import redrawn
from countwise.sumproduct.node_noise import reach
from countwise.sumproduct.step_mixture import Steps, laid_out
from countwise.withheld.adjusted_counts import AdjustedTies
from countwise.withheld.count_windows import ChildRanges, dealt_shares, rates


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawTies(AdjustedTies):
    """`algorithm` 1 redraws every noisy count, 2 only clips it."""

    algorithm: int
    depth: float = LEFT_OUT

    def shares(self) -> ChildRanges:
        """Those of a multinomial."""
        return dealt_shares(self.hierarchy, self.counts, self.depth)

    @property
    def reaches(self) -> int:
        """One, and one more when values were drawn from the noisy counts."""
        return 3 - self.algorithm

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """The nodes of the quadrature over u, and the case that all v are zero."""
        here = self.hierarchy.children(level, parent)
        k, total = self.counts[level + 1][here], int(self.counts[level][parent])
        everyone = np.arange(children.nodes)
        if total == 0:
            bounds = np.array([0, children.nodes])
            return laid_out(children, everyone, bounds, children.lows, children.highs)
        noise = self.noise[level + 1].part(here)
        least, most = (float(each[parent]) for each in self.ranges.sums[level])
        scale = ScaleRange(total, least, most, self.depth)
        logs = np.append(quadrature(*scale)[1], -total * np.log(children.nodes))
        tables = []
        for s in range(children.nodes):
            law, low, high = noise.laws[noise.which[s]], children.lows[s], children.highs[s]
            table, peaks = by_scale(law, self.algorithm, int(k[s]), int(low), int(high), scale)
            tables.append(table)
            logs = logs + peaks
        return assembled(children, tables, logs)


class ScaleRange(NamedTuple):
    """What decides the values of u: the units dealt, the range of Σv, and how deep to go."""

    total: int
    least: float
    most: float
    depth: float


@lru_cache(maxsize=64)
def by_scale(
    law: IntegerLaw, algorithm: int, k: int, low: int, high: int, scale: ScaleRange
) -> tuple[FloatArray, FloatArray]:
    """Σ_v v^k·e^{-uv}·P(v | x) by u (rows) and x = low..high, then P(v = 0 | x); log scales."""
    u, _ = quadrature(*scale)
    far = (3 - algorithm) * reach(law, scale.depth)
    first = max(low - far, 0)
    v = np.arange(first, high + far + 1)
    chances = to_values(law, algorithm, low, high, first, int(v[-1]))
    with np.errstate(divide="ignore"):
        growth = k * np.log(v) if k else np.zeros(len(v))
    logs = growth - u[:, None] * v
    peaks = logs.max(axis=1)
    table = np.exp(logs - peaks[:, None]) @ chances.T
    zero = to_values(law, algorithm, low, high, 0, 0).T
    return frozen(np.concatenate([table, zero])), frozen(np.append(peaks, 0.0))


def quadrature(
    total: int, least: float, most: float, depth: float
) -> tuple[FloatArray, FloatArray]:
    """Values of u, and the logarithms of h·u^m/Γ(m) there, h the step in log u.

    The Fourier transform of the integrand is a gamma function on a vertical line, below 4e-17 of
    its largest at the frequency 2π/h for h = min(1/6, 1/(2√m)).
    """
    ends = rates(np.array([total]), np.array([least]), np.array([most]), depth)
    step = min(1 / 6, 0.5 / np.sqrt(total))
    logs = np.arange(np.log(ends[0][0]), np.log(ends[1][0]) + step, step)
    return np.exp(logs), total * logs + np.log(step) - float(gammaln(total))


@lru_cache(maxsize=256)
def to_values(
    law: IntegerLaw, algorithm: int, low: int, high: int, first: int, last: int
) -> FloatArray:
    """P(v | N) for N = low..high (rows) and v = first..last (columns)."""
    if algorithm == 1:
        return redrawn(law, low, high, first, last)
    x, v = np.arange(low, high + 1)[:, None], np.arange(first, last + 1)
    return np.where(v == 0, law.cdf(-x), law.pmf(v - x))


def assembled(children: Laws, tables: list[FloatArray], logs: FloatArray) -> Steps:
    """Steps whose pieces are rows of the children's tables, cut where they are negligible."""
    nodes, steps = children.nodes, len(logs)
    lows, highs = np.empty((2, steps, nodes), np.int64)
    for s, table in enumerate(tables):
        kept = table > np.exp(-LEFT_OUT) * table.max(axis=1, keepdims=True)
        lows[:, s] = children.lows[s] + kept.argmax(axis=1)
        highs[:, s] = children.highs[s] - kept[:, ::-1].argmax(axis=1)
    components = np.tile(np.arange(nodes), steps)
    bounds = np.arange(0, nodes * steps + 1, nodes)
    made = laid_out(children, components, bounds, lows.ravel(), highs.ravel())
    shares = np.exp(logs - logs.max())
    chances = np.empty(len(made.places))
    for q in range(nodes * steps):
        step, s = divmod(q, nodes)
        start = made.lows[q] - children.lows[s]
        size = made.offsets[q + 1] - made.offsets[q]
        row = tables[s][step, start : start + size]
        chances[made.offsets[q] : made.offsets[q + 1]] = row * shares[step] if s == 0 else row
    return replace(made, chances=chances)
