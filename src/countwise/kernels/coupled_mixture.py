"""Sums of coupled problems that share T, when few weights change from one to the next.

Cuts of a released vector are such steps: as the quotient grows, one window moves at a time.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import reading
from countwise.kernels.jointdraws import sample
from countwise.kernels.solution import LEAST_OVERLAP, solve
from countwise.kernels.tilting import CoupledProblem


class StepLayout(NamedTuple):
    """Weight vectors as pieces, in the ragged layout of `countwise.kernels.coupled`.

    Piece q serves ``components[q]`` from the step c with bounds[c] <= q < bounds[c + 1] until that
    component's next piece. The first step has one piece for each component; with `Cuts`, one
    piece for each change.
    """

    offsets: IntArray
    lows: IntArray
    components: IntArray
    bounds: IntArray


class Mixture(NamedTuple):
    """The sum over steps: see `mixture`."""

    marginals: FloatArray
    messages: FloatArray
    sums: FloatArray
    step_logs: FloatArray
    log_normaliser: float


def mixture(
    weights: FloatArray,
    layout: StepLayout,
    coupling: FloatArray,
    coupling_low: int,
    *,
    least_overlap: float = LEAST_OVERLAP,
) -> Mixture:
    """Σ over steps of coupled sums that share T, when few weights change from step to step.

    Marginals are joint: the probability that piece q serves and its component equals x, so a
    component's marginal is the sum over its pieces; messages likewise, weights times messages
    being marginals. Sums are the law of the total in the layout of T, and step_logs the log
    normaliser of each step. `least_overlap` is that of `kernels.solution.solve`.
    """
    problem = stepped(weights, layout, coupling, coupling_low)
    marginals, messages = np.empty((2, problem.weights.size))
    sums, logs = np.empty(problem.coupling.size), np.empty(problem.bounds.size - 1)
    total = solve(problem, True, least_overlap, marginals, messages, sums, logs)
    return Mixture(marginals, messages, sums, logs, total)


def mixture_sums(
    weights: FloatArray,
    layout: StepLayout,
    coupling: FloatArray,
    coupling_low: int,
    *,
    least_overlap: float = LEAST_OVERLAP,
) -> tuple[FloatArray, FloatArray, float]:
    """Of a `mixture`, only the sums, step_logs and log normaliser; at half the cost."""
    problem = stepped(weights, layout, coupling, coupling_low)
    unused, sums = np.empty(problem.weights.size), np.empty(problem.coupling.size)
    logs = np.empty(problem.bounds.size - 1)
    total = solve(problem, False, least_overlap, unused, unused.copy(), sums, logs)
    return sums, logs, total


def mixture_draws_given(
    sums: IntArray, weights: FloatArray, layout: StepLayout, *, rng: np.random.Generator
) -> IntArray:
    """A joint draw from a `mixture` for each given sum, one a row."""
    low, high = int(np.min(sums)), int(np.max(sums))
    problem = stepped(weights, layout, np.ones(high - low + 1), low)
    return sample(problem, np.asarray(sums, np.int64), rng)


def stepped(
    weights: FloatArray, layout: StepLayout, coupling: FloatArray, coupling_low: int
) -> CoupledProblem:
    """A problem of many steps, its layout checked."""
    offsets, lows, components, bounds = layout
    first = np.sort(components[: bounds[1]])
    if bounds[0] != 0 or bounds[-1] != len(lows) or not np.array_equal(first, np.arange(bounds[1])):
        raise InputError("the first step must have one piece for each component 0, 1, …")
    if len(offsets) != len(lows) + 1 or offsets[-1] != len(weights) or len(components) != len(lows):
        raise InputError("lows and components must have one entry a piece, offsets one more")
    return CoupledProblem(
        reading(weights, np.float64),
        np.array(offsets, np.int64),
        reading(lows, np.int64),
        np.array(components, np.int64),
        np.array(bounds, np.int64),
        reading(coupling, np.float64),
        int(coupling_low),
    )
