"""Joint draws of coupled pairs, by rejection.

A step is proposed by the bound on its weight, a pair of every child from its tilted weights, each
by itself, and the whole is taken with the probability that T, tilted back, has of its largest
value. What is taken has the joint law exactly; how often depends on how well law and T meet.
"""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.withheld.pair_columns import Columns
from countwise.withheld.pair_runs import TiltedRun
from countwise.withheld.pair_tilts import SumTable

BATCH = 50_000  # proposals at a time
MOST = 20_000_000  # proposals after which no more are made


def pair_draws(
    ready: list[TiltedRun], couple: SumTable, count: int, *, rng: np.random.Generator
) -> IntArray | None:
    """x - k of all children, one draw a row; None where hardly any proposal is taken."""
    bounds = np.concatenate([each.bounds for each in ready])
    if bounds.max() == -np.inf:
        return None
    owner = np.repeat(np.arange(len(ready)), [len(each.bounds) for each in ready])
    start = np.concatenate([[0], np.cumsum([len(each.bounds) for each in ready])])
    shares = np.exp(bounds - bounds.max())
    proposers = [_Proposer(each, couple) for each in ready]
    taken: list[IntArray] = []
    found = tried = 0
    while found < count:
        chosen = np.bincount(rng.choice(len(bounds), BATCH, p=shares / shares.sum()))
        rows = []
        for step in np.flatnonzero(chosen):
            run = int(owner[step])
            rows.append(proposers[run].taken(int(step - start[run]), int(chosen[step]), rng))
        taken += rows
        found, tried = found + sum(map(len, rows)), tried + BATCH
        if tried > MOST and found < count:
            return None
    every = np.concatenate(taken)
    return np.asarray(every[rng.permutation(len(every))[:count]])


class _Proposer:
    """Proposals of one run; cumulated weights are kept for every piece that was asked for."""

    def __init__(self, ready: TiltedRun, couple: SumTable) -> None:
        self.ready, self.couple = ready, couple
        self.whole: Columns | None = None
        self.cumulated: dict[int, FloatArray] = {}

    def taken(self, step: int, count: int, rng: np.random.Generator) -> IntArray:
        """x - k in those of `count` proposals of a step that are taken."""
        if self.whole is None:
            self.whole = self.ready.cut(0, len(self.ready.bounds))
        atoms, d = self.whole.atoms, self.whole.d
        held = self.whole.held(step)
        x, sums = np.empty((count, len(held)), np.int64), np.zeros((2, count), np.int64)
        for s, q in enumerate(held.tolist()):
            first = int(atoms.starts[atoms.firsts[q]])
            reached = self._reached(q)
            at = np.searchsorted(reached, reached[-1] * rng.random(count), side="right")
            column, row = np.divmod(np.minimum(at, len(reached) - 1), len(d))
            y = atoms.y[first + column]
            sums += d[row], y
            x[:, s] = d[row] + y
        logs = np.log(np.maximum(self.couple.at(self.couple.m + sums.sum(axis=0), sums[1]), 1e-300))
        logs -= self.ready.tilt @ sums + self.ready.largest
        return x[np.log(1.0 - rng.random(count)) < logs]

    def _reached(self, q: int) -> FloatArray:
        """The cumulated weights of all pairs of a piece."""
        if q not in self.cumulated and self.whole is not None:
            atoms, tilt = self.whole.atoms, self.ready.tilt
            here = slice(int(atoms.starts[atoms.firsts[q]]), int(atoms.starts[atoms.lasts[q]]))
            factors = np.exp(tilt[0] * self.whole.d + tilt[1] * atoms.y[here, None])
            self.cumulated[q] = np.cumsum(self.whole.weights[here] * factors)
        return self.cumulated[q]
