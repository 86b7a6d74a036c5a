"""Non-negative tables whose totals are as good as those of least squares: totals first.

Clipping small cells adds people, and the sums above pay. So every margin is fitted by itself, from
coarse to fine, near its own least-squares counts; the coarser margins it covers, already fitted,
are near constraints. Last come the cells, held to all of them.
docs/explain/crossed-whole-cells.md, section 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from countwise.arrays import FloatArray
from countwise.kernels.dual_ascent import meet_clipped, meet_tilted
from countwise.margins.certainties import Certainties
from countwise.margins.incidence import node_of_each
from countwise.tables.workload import Margin, Workload

HELD = 0.02  # variance of a fitted margin beside that of its least squares, where finer ones follow
SWEEPS = 25  # errors settle in a dozen; what still moves are nodes whose targets conflict
NEAR = 0.1  # roots of the slack, root mean square: what is still missing when a fit ends
LEAST_MEAN = 1e-6  # of a cell that nobody is in, under a law without 0
LEAST_VARIANCE = 1e-4  # of counts that carry no noise


class SignedEstimates(Protocol):
    """Signed counts of any margin and their variances, by least squares."""

    def margin(self, margin: Margin) -> FloatArray:
        """The estimates, an axis a variable."""
        ...

    def variance(self, margin: Margin) -> FloatArray:
        """Their variances, of a shape that goes with them."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Target:
    """Counts of a margin with a variance each: what sums of finer counts are to come near."""

    margin: Margin
    counts: FloatArray
    variances: FloatArray

    def tightened(self, factor: float) -> "Target":
        """The same counts with smaller variances."""
        return Target(margin=self.margin, counts=self.counts, variances=factor * self.variances)


def target_of(workload: Workload, estimates: SignedEstimates, margin: Margin) -> Target:
    """The least-squares counts of a margin; what nothing measured may be wrong by its own size."""
    shape = workload.shape_of(margin)
    counts = np.broadcast_to(np.asarray(estimates.margin(margin), dtype=np.float64), shape)
    variances = np.asarray(estimates.variance(margin), dtype=np.float64)
    variances = np.where(np.isfinite(variances), variances, np.mean(counts**2) + 1.0)
    variances = np.broadcast_to(np.maximum(variances, LEAST_VARIANCE), shape)
    return Target(margin=margin, counts=counts, variances=variances)


def held_to(
    workload: Workload,
    centre: Target,
    targets: Sequence[Target],
    *,
    tilted: bool = False,
    sweeps: int = SWEEPS,
    near: float = NEAR,
) -> FloatArray:
    """The non-negative table nearest to a centre and to targets that are sums of its counts.

    Distance is squared and inversely weighted by variances, or, `tilted`, the relative entropy of a
    law with the centre's mean and variance, under which no count becomes 0.
    """
    values = np.array(centre.counts, dtype=np.float64).reshape(-1)
    spreads = np.ascontiguousarray(centre.variances).reshape(-1)
    meet = meet_clipped
    if tilted:
        values = np.maximum(values, LEAST_MEAN)
        spreads, values, meet = spreads / values, np.log(values), meet_tilted
    ties = [
        (
            node_of_each(workload, each.margin, of=centre.margin),
            np.array(each.counts).reshape(-1),
            np.array(each.variances).reshape(-1),
            np.zeros(each.counts.size),
        )
        for each in sorted(targets, key=lambda each: -each.counts.size)
    ]
    for _ in range(sweeps):
        worst = 0.0
        for nodes, counts, slacks, multipliers in ties:
            missing = meet(values, spreads, nodes, counts, slacks, multipliers, near / 2)
            worst = max(worst, missing)
        if worst < near:
            break
    found = np.exp(values) if tilted else np.maximum(values, 0.0)
    return found.reshape(centre.counts.shape)


def fitted_margins(
    workload: Workload, estimates: SignedEstimates, margins: Sequence[Margin], known: Certainties
) -> list[Target]:
    """Non-negative counts of margins, from coarse to fine, each beside its variance.

    Those that nothing measured are left out."""
    done: list[Target] = []
    for margin in sorted(margins, key=lambda each: (workload.size(each), each)):
        if not np.isfinite(estimates.variance(margin)).any():
            continue
        target = certain_target(workload, target_of(workload, estimates, margin), known)
        above = [each.tightened(HELD) for each in done if margin.covers(each.margin)]
        counts = held_to(workload, target, above)
        done.append(Target(margin=margin, counts=counts, variances=target.variances))
    return done


def certain_target(workload: Workload, target: Target, known: Certainties) -> Target:
    """The same with the exact counts of its margin, and 0 where nobody can be."""
    certain, counts = known.empty(workload, target.margin), np.zeros(target.counts.shape)
    if target.margin in known.sums:
        exact, values = known.sums[target.margin]
        counts = np.where(exact, values, counts)
        certain = certain | exact
    if not certain.any():
        return target
    return Target(
        margin=target.margin,
        counts=np.where(certain, counts, target.counts),
        variances=np.where(certain, LEAST_VARIANCE, target.variances),
    )
