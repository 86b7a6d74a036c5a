"""A dealt release whose total was drawn given the sum of the noisy parts as well: Algorithm 1.

The total m is a draw from p(n | N)·p(n* | N) over N = 0, 1, …, n the noisy total and n* the sum of
the noisy parts; the parts' values v are draws given their own noisy counts, and m is dealt in
proportion to them (Wang 2020, section 3.1). So the noisy counts matter twice, for n* and for v:
every child carries its noisy count beside its true one (`sumproduct.columns`), and for each scale
u of `dealt` a noisy count has the weight Σ_v v^k·e^{-uv}·P(v | n).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.dealt import Dealt, quadrature
from countwise.inference.pairing import NEGLIGIBLE, Coupled, couple_of
from countwise.inference.summed import Summed
from countwise.kernels.cuts import UNBOUNDED
from countwise.privacy.laws import IntegerLaw
from countwise.privacy.noisesum import sum_of
from countwise.sumproduct.columns import Columns, Pieces, columns
from countwise.sumproduct.couples import Couple
from countwise.sumproduct.laws import Laws
from countwise.sumproduct.noise import reach
from countwise.sumproduct.pairdraws import pair_draws
from countwise.sumproduct.rows import row_logs
from countwise.sumproduct.runs import UPRIGHT, Met, Ready, Run, solve, tilted
from countwise.sumproduct.steps import Steps

PRECISE = 1e-9
STEP = 64  # ends of tables of chances are multiples, so that few are made


@dataclass(frozen=True, kw_only=True)
class SummedDraw(Summed):
    """As `Summed`, with the total drawn from its posterior instead of the mode of it."""

    def window(self, depth: FloatArray) -> tuple[IntArray, IntArray]:
        """Two noises away, of the total or of the sum of the parts, whichever is less."""
        far = 2 * min(reach(self.noise, float(depth[0])), self.spread(float(depth[0])))
        return np.array([max(self.released - far, 0)]), np.array([self.released + far])

    def sums(self, low: int, high: int) -> tuple[int, int]:
        """Every sum may lead to every total."""
        return low, high

    def chances(self, sums: IntArray, totals: IntArray) -> FloatArray:
        """P(m | N, n*) for arrays of n* and N that fit each other."""
        least, low = (int(each.min()) // STEP * STEP for each in (sums, totals))
        most, high = (-(-int(each.max()) // STEP) * STEP for each in (sums, totals))
        found = drawn_totals(self, low, high, least, most)
        return np.asarray(found[totals - low, sums - least])


@lru_cache(maxsize=4)
def drawn_totals(rule: SummedDraw, low: int, high: int, least: int, most: int) -> FloatArray:
    """P(m | N, n*) for N = low..high (rows) and n* = least..most.

    Σ_n P(n | N)·p(n | m)·p(n* | m)/Σ_N' p(n | N')·p(n* | N').
    """
    far = reach(rule.noise, NEGLIGIBLE)
    n, t = np.arange(low - far, high + far + 1), np.arange(least, most + 1)
    drawn = np.arange(max(min(n[0], t[0]) - far, 0), max(n[-1], t[-1], rule.released) + far + 1)
    of_total = rule.noise.pmf(n[:, None] - drawn)
    of_sum = _pmf(rule.parts, drawn[:, None] - t)
    ways = of_total @ of_sum
    at = rule.released - drawn[0]
    share = np.divide(of_total[:, [at]] * of_sum[at], ways, out=np.zeros_like(ways), where=ways > 0)
    return np.asarray(rule.noise.pmf(n - np.arange(low, high + 1)[:, None]) @ share)


def _pmf(laws: tuple[IntegerLaw, ...], z: IntArray) -> FloatArray:
    """The law of a sum of noises up to a factor, from its slopes."""
    far = int(np.abs(z).max())
    logs = np.concatenate([[0.0], np.cumsum(sum_of(Counter(laws)).slope(np.arange(far)))])
    return np.asarray(np.exp(logs[np.abs(z)]))


@dataclass(frozen=True, kw_only=True)
class DealtSummed(Dealt):
    """As `Dealt` below the root's children; these are tied by two sums."""

    root: SummedDraw

    def steps(self, level: int, parent: int, children: Laws) -> Steps:
        """Those of the root's children have no single sum."""
        if level == 0:
            raise InputError(
                "this can not be computed for the components of a draw-1 release with a summed "
                "total. To fix, estimate it from joint draws."
            )
        return super().steps(level, parent, children)

    def solved(
        self, level: int, parent: int, children: Laws, low: int, coupling: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By frequency at the root."""
        if level > 0:
            return super().solved(level, parent, children, low, coupling)
        found = self.met(children, (low, coupling))
        nothing = np.zeros(len(children.values))
        return found[:3] if found else (nothing, nothing, np.zeros(len(coupling)))

    def met(self, children: Laws, coupled: Coupled) -> Met | None:
        """The root's children, solved; None where nothing is possible."""
        ready, couple = self._ready(children, coupled)
        found = solve(ready, children, couple, precise=PRECISE)
        if found is None and max(each.bounds.max() for each in ready) > -np.inf:
            raise InputError(
                "the prior and the release are so far apart that rounding would spoil the "
                "posterior. To fix, infer from the published noisy counts: --from measurements."
            )
        return found

    def together(self, children: Laws, coupled: Coupled) -> "DealtSiblings":
        """The joint law of the root's children."""
        return DealtSiblings(ties=self, children=children, coupled=coupled)

    def top_draws(
        self, children: Laws, low: int, coupling: FloatArray, count: int, rng: np.random.Generator
    ) -> IntArray | None:
        """By rejection."""
        offsets = pair_draws(*self._ready(children, (low, coupling)), count, rng=rng)
        if offsets is None:
            raise InputError("law and release hardly meet, and draws would take hours.")
        return offsets + self.counts[1]

    def _ready(self, children: Laws, coupled: Coupled) -> tuple[list[Ready], Couple]:
        """A run for each node of the quadrature, and one for the case that all v are zero."""
        parts, couple = self.parts(children, coupled)
        ready: list[Ready] = []
        for part in parts:
            start = ready[-1].tilt if ready else UPRIGHT  # neighbours have about the same
            ready.append(tilted(_always(part), Run(0, 1, False), couple, start))
        return ready, couple

    def parts(self, children: Laws, coupled: Coupled) -> tuple[list[Columns], Couple]:
        """The columns at each node of the quadrature, and what is known of the two sums."""
        k, depth = self.counts[1], max(self.depth, NEGLIGIBLE)
        spread = self.root.spread(NEGLIGIBLE)
        low, high = int(self.ranges.lows[0][0]), int(self.ranges.highs[0][0])
        couple = couple_of(self.root, low - spread, high + spread, coupled)
        everyone = np.arange(len(k))
        open_ = Pieces(everyone, np.array([0, len(k)]), 0 * k, np.full(len(k), UNBOUNDED))
        return self._by_scale(columns(children, self.noise[1], k, open_, depth), k), couple

    def _by_scale(self, base: Columns, k: IntArray) -> list[Columns]:
        """The columns times what each noisy count weighs at each u."""
        total = int(self.root.released)
        if total == 0:
            return [base]
        least, most = (float(each[0]) for each in self.ranges.sums[0])
        u, logs = quadrature(total, least, most, self.depth)
        logs = np.append(logs, -total * np.log(len(k)))
        factors = np.empty((len(base.component), len(logs)))
        for s in range(len(k)):
            here = base.component == s
            law = self.root.parts[s]
            factors[here], peaks = noisy_weights(law, int(k[s]), base.atoms.y[here] + k[s], u)
            logs = logs + peaks
        factors[base.component == 0] *= np.exp(logs - logs.max())
        return [
            replace(base, weights=base.weights * each, chances=base.chances * each)
            for each in factors.T[:, :, None]
            if each.any()
        ]


@dataclass(frozen=True, kw_only=True)
class DealtSiblings:
    """The joint law of the root's children; `combinations.Siblings` has those of other parents."""

    ties: DealtSummed
    children: Laws
    coupled: Coupled
    grid: ClassVar[int] = 5_000

    @cached_property
    def log_mass(self) -> float:
        """log of the weight of all combinations."""
        found = self.ties.met(self.children, self.coupled)
        return found.log if found else -np.inf

    @cached_property
    def _parts(self) -> tuple[list[Columns], Couple]:
        return self.ties.parts(self.children, self.coupled)

    def logs(self, rows: IntArray) -> FloatArray:
        """log of the weight of each row of counts."""
        parts, couple = self._parts
        return row_logs(parts, couple, self.ties.counts[1], rows)


def _always(part: Columns) -> Callable[[int, int], Columns]:
    """The columns of a run of one step."""
    return lambda _first, _last: part


def noisy_weights(
    law: IntegerLaw, k: int, n: IntArray, u: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Σ_v v^k·e^{-uv}·P(v | n) by n (rows) and u, then P(v = 0 | n); log scales of the columns."""
    v = np.arange(int(max(n.max(), 0)) + reach(law, 45.0) + 1)
    given = law.pmf(v - n[:, None]) / law.sf(-n - 1)[:, None]
    with np.errstate(divide="ignore"):
        growth = k * np.log(v) if k else np.zeros(len(v))
    logs = growth - u[:, None] * v
    peaks = logs.max(axis=1)
    table = given @ np.exp(logs - peaks[:, None]).T
    return np.concatenate([table, given[:, :1]], axis=1), np.append(peaks, 0.0)
