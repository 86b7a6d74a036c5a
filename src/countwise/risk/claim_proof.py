"""Verdicts on claims about two bins under Laplace noise, each with its proof.

*Refuted*: a histogram and an ε at which the gap is enclosed above zero by ball arithmetic.
*Certified*, by signs: the gap is a formula with rational coefficients none of which is positive,
so it is ≤ 0 everywhere, exactly. Certified, by boxes: the quarter-plane is cut into boxes, the
last ones unbounded, and on each the gap is enclosed below the tolerance. *Undecided*: the boxes
that are left when the work allowed is done.
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import exp, inf, isnan
from typing import Literal

import numpy as np
from flint import arb, ctx

from countwise.arrays import FloatArray
from countwise.errors import CountwiseError
from countwise.noise.laws import Geometric, Laplace
from countwise.progress import Tell, silent
from countwise.risk.closed import PRECISION, enclosure, laplace_risk
from countwise.risk.estimator_claims import EstimatorClaim
from countwise.risk.gap import Box, Gap
from countwise.risk.terms import Interval

Answer = Literal["refuted", "certified", "undecided"]
TOLERANCE = 1e-9  # in units of 1/ε², where the identity has a risk of 4
BOXES = 20_000  # tried before giving up, unless more are asked for
REACH = 4.0  # risks are nearly constant beyond a few of these
GRID_EPSILON = Fraction(1, 10)  # grid points are whole counts at this ε, then at a tenth of it …
ZOOMS = 4  # grids, each ten times finer


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """Two bins at an ε, and rigorous enclosures of the two risks there."""

    histogram: tuple[int, int]
    epsilon: Fraction
    left: tuple[float, float]
    right: tuple[float, float]
    gap_above: float


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is proven of a claim, and how."""

    claim: EstimatorClaim
    answer: Answer
    proof: str
    counterexample: Counterexample | None = None
    formula: str | None = None
    tolerance: float | None = None
    boxes: int = 0
    left: tuple[Box, ...] = ()
    worst: float | None = None


def certify(
    claim: EstimatorClaim,
    *,
    tolerance: float = TOLERANCE,
    boxes: int = BOXES,
    at: tuple[tuple[int, int], Fraction] | None = None,
    tell: Tell = silent,
) -> Verdict:
    """Refute the claim (at a given histogram and ε, if it fails there), certify it, or say what
    is left."""
    if claim.left == claim.right and claim.factor >= 1:
        return Verdict(claim=claim, answer="certified", proof="trivial", tolerance=0.0)
    found = (proven(claim, *at) if at else None) or refute(claim)
    if found is not None:
        return Verdict(claim=claim, answer="refuted", proof="enclosure", counterexample=found)
    gap = Gap(claim)
    if not gap.merging and gap.plane.never_positive:
        return Verdict(
            claim=claim,
            answer="certified",
            proof="signs",
            tolerance=0.0,
            formula=gap.in_bins(),
        )
    return cover(claim, gap, tolerance=tolerance, boxes=boxes, tell=tell)


def refute(claim: EstimatorClaim) -> Counterexample | None:
    """A proven counterexample near the worst point of a grid, the grid made finer a few times."""
    line = np.concatenate([np.arange(151), [200, 300, 500, 1000]]).astype(np.float64)
    a, b = np.meshgrid(line, line, indexing="ij")
    epsilon = GRID_EPSILON
    for _ in range(ZOOMS):
        point = _worst(claim, a, b, float(epsilon))
        found = proven(claim, point, epsilon)
        if found is not None:
            return found
        epsilon /= 10
        around = np.arange(-12.0, 13.0)
        a, b = np.meshgrid(*(np.maximum(10 * h + around, 0) for h in point), indexing="ij")
    return None


def _worst(claim: EstimatorClaim, a: FloatArray, b: FloatArray, epsilon: float) -> tuple[int, int]:
    """The counts a ≤ b of a grid with the largest gap."""
    left, right = (laplace_risk(name, a * epsilon, b * epsilon) for name in claim.pair)
    gap = np.where(a <= b, left - float(claim.factor) * right, -np.inf)
    place = np.unravel_index(int(np.argmax(gap)), gap.shape)
    return int(a[place]), int(b[place])


def proven(
    claim: EstimatorClaim,
    histogram: tuple[int, int],
    epsilon: Fraction,
    *,
    kind: type[Laplace] | type[Geometric] = Laplace,
    precision: int = PRECISION,
) -> Counterexample | None:
    """The counterexample at a histogram and ε, if balls of so many bits show a positive gap."""
    law = kind(scale=1 / epsilon)
    bins = [Fraction(h) for h in histogram]
    left, right = (enclosure(name, bins, law, precision=precision) for name in claim.pair)
    with ctx.workprec(precision):
        gap = left - right * claim.factor.numerator / claim.factor.denominator
        if not gap > 0:
            return None
        return Counterexample(
            histogram=histogram,
            epsilon=epsilon,
            left=outward(left),
            right=outward(right),
            gap_above=outward(gap)[0],
        )


def outward(ball: arb) -> tuple[float, float]:
    """The ends of a ball as doubles, rounded outwards."""
    low, high = float(ball.lower()), float(ball.upper())
    if isnan(low) or isnan(high):
        raise CountwiseError("an enclosure is not a number; nothing is proven.")
    return float(np.nextafter(low, -np.inf)), float(np.nextafter(high, np.inf))


def cover(
    claim: EstimatorClaim,
    gap: Gap,
    *,
    tolerance: float,
    boxes: int,
    tell: Tell = silent,
) -> Verdict:
    """Branch and bound: cut the box with the worst bound until all are below the tolerance.

    A gap that depends on d alone is followed along a = 0.
    """
    whole: Box = ((0.0, 0.0 if gap.only_difference else inf), (0.0, inf))
    order = count()
    heap = [(-inf, next(order), whole)]
    done = 0
    while heap and -heap[0][0] > tolerance and done < boxes:
        tell("bounding boxes", done, boxes)
        for half in halves(heapq.heappop(heap)[2]):
            done += 1
            heapq.heappush(heap, (-outward(gap.range(half))[1], next(order), half))
    worst = -heap[0][0] if heap else 0.0
    left = tuple(box for bound, _, box in heap if -bound > tolerance)
    return Verdict(
        claim=claim,
        answer="undecided" if left else "certified",
        proof="boxes",
        tolerance=tolerance,
        boxes=done,
        left=left,
        worst=worst,
    )


def halves(box: Box) -> tuple[Box, Box]:
    """The box cut across the side that is longer where it matters, near zero."""
    widths = [exp(-low / REACH) - exp(-high / REACH) for low, high in box]
    if widths[0] > widths[1]:
        low, high = _cut(box[0])
        return (low, box[1]), (high, box[1])
    low, high = _cut(box[1])
    return (box[0], low), (box[0], high)


def _cut(side: Interval) -> tuple[Interval, Interval]:
    """An interval in two; an unbounded one at twice its start, or at 1."""
    low, high = side
    middle = max(2 * low, 1.0) if high == inf else (low + high) / 2
    return (low, middle), (middle, high)
