"""Independent integers coupled through their sum.

Integers X_1..X_S have weights w_s(x) >= 0 on bounded supports, and the joint weight of a
vector is w_1(x_1)·…·w_S(x_S)·T(x_1 + … + x_S). Supports are ragged and stored flat: the
weights of component s are ``weights[offsets[s]:offsets[s + 1]]`` and belong to the values
``lows[s], lows[s] + 1, …``. The coupling T is an array on ``coupling_low, coupling_low + 1, …``
and zero elsewhere; without one, T = 1. When no vector has positive weight the log normaliser
is -inf, every marginal, law and message is zero, and `draws` and `mode` raise an InputError.

Weights are convolved in a balanced binary tree, and messages are passed down for marginals.
Nothing is ever divided out. Three things keep the result accurate:

* Each node is cut where its two tails together hold 1e-15 of its mass.
* Long convolutions use zero-padded Fourier transforms, whose error is about 1e-16 of the
  largest value everywhere, so entries below that are set to zero.
* Both are errors relative to the bulk of the law of the sum, so before anything is convolved the
  weights are tilted: w_s(x)·exp(θx) and T(t)·exp(-θt) have the same joint weight for every θ,
  and θ is chosen so that the two means agree. A coupling in the far tail of the law, even 1e-300
  deep, costs no accuracy.

Tilting moves one peak. Where T and the law still hardly meet after it (T with two distant peaks
on either side of the law, or T in a gap of the law), the tree is computed again with every tail
and by sums of positive terms only: right to rounding, but quadratic in the summed length of the
supports. What remains: errors are relative to the largest value of a marginal, so with Fourier
transforms small values have fewer correct digits (some nine at 1e-8 of the largest); and with
many steps, tilt and check are those of the heaviest step, so a step that adds nothing to the
total may have a log normaliser of few correct digits, or -inf.

A problem may have many steps, whose joint weights are added up: T stays, and at each step a few
components change their weights. Only the nodes above a changed leaf are convolved again,
and downward messages wait at a node until something below it changes, so that a step costs
O(log S) convolutions, marginals included.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.kernels.compilation import reading
from countwise.kernels.jointdraws import sample
from countwise.kernels.jointmode import find_mode, losses_by_sum
from countwise.kernels.solution import LEAST_OVERLAP, TAIL, solve, solve_many, solve_whole
from countwise.kernels.tilting import CoupledProblem


def checked(
    weights: FloatArray,
    offsets: IntArray,
    lows: IntArray,
    coupling: FloatArray | None,
    coupling_low: int,
) -> CoupledProblem:
    """A problem of one step; without a coupling, T = 1 on the whole range of the sum."""
    size = len(lows)
    if size == 0 or len(offsets) != size + 1 or offsets[0] != 0 or offsets[-1] != len(weights):
        raise InputError(
            f"offsets must run from 0 to len(weights)={len(weights)} with one entry more than "
            f"lows and at least one component, got {len(offsets)} offsets and {size} lows"
        )
    if coupling is None:
        coupling, coupling_low = np.ones(len(weights) - size + 1), int(np.sum(lows))
    return CoupledProblem(
        reading(weights, np.float64),
        np.array(offsets, np.int64),
        reading(lows, np.int64),
        np.arange(size),
        np.array([0, size]),
        reading(coupling, np.float64),
        int(coupling_low),
    )


def marginals(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
) -> FloatArray:
    """P(X_s = x) for every component and value, in the layout of the weights."""
    problem = checked(weights, offsets, lows, coupling, coupling_low)
    result, messages = np.empty((2, problem.weights.size))
    solve(
        problem, True, LEAST_OVERLAP, result, messages, np.empty(problem.coupling.size), np.empty(1)
    )
    return result


def upward(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
) -> tuple[int, FloatArray, float]:
    """The message to whatever the sum is a component of: lowest value, law, log normaliser.

    The message is T(t)·Σ Π w_s(x_s) over all x with sum t. As a law it is scaled to add up to 1,
    and the log normaliser is its scale. It has the layout of T; without a coupling it starts at
    the lowest sum that carries mass, tails cut at 1e-15. Pass what is known about the sum as the
    coupling, rather than multiply it on afterwards: only then are far tails accurate.
    """
    problem = checked(weights, offsets, lows, coupling, coupling_low)
    unused, law = np.empty(problem.weights.size), np.empty(problem.coupling.size)
    log = solve(problem, False, LEAST_OVERLAP, unused, unused.copy(), law, np.empty(1))
    if coupling is None and log > -np.inf:
        first, last = np.nonzero(law)[0][[0, -1]]
        return problem.coupling_low + int(first), law[first : last + 1], log
    return problem.coupling_low, law, log


def sum_law(
    weights: FloatArray, offsets: IntArray, *, lows: IntArray, tails: bool
) -> tuple[int, FloatArray, float]:
    """As `upward` without a coupling; with `tails` nothing is cut, at a quadratic cost.

    That is for sums which are yet to meet a coupling that may lie far out in a tail.
    """
    problem = checked(weights, offsets, lows, None, 0)
    unused, law = np.empty(problem.weights.size), np.empty(problem.coupling.size)
    tail = 0.0 if tails else TAIL
    log = solve_whole(problem, False, tail, unused, unused.copy(), law, np.empty(1))
    if log == -np.inf:
        return problem.coupling_low, law, log
    first, last = np.nonzero(law)[0][[0, -1]]
    return problem.coupling_low + int(first), law[first : last + 1], log


def log_normaliser(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
) -> float:
    """log Σ_x Π w_s(x_s)·T(Σ x_s), -inf when no vector has positive weight."""
    return upward(weights, offsets, lows=lows, coupling=coupling, coupling_low=coupling_low)[2]


def downward(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
) -> tuple[FloatArray, float]:
    """The message to every component, in the layout of the weights, and the log normaliser.

    The message to component s is m_s(x) = Σ Π_{r≠s} w_r(x_r)·T(x + Σ_{r≠s} x_r) over the other
    components, divided by the normaliser; so w_s·m_s is the marginal of X_s, and it is in w_s·m_s
    that the error is small: where w_s is next to nothing, m_s has fewer correct digits. Values
    beyond e^700, which matter only where w_s is below e^-700, are cut to that.
    """
    problem = checked(weights, offsets, lows, coupling, coupling_low)
    unused, messages = np.empty((2, problem.weights.size))
    sums = np.empty(problem.coupling.size)
    log = solve(problem, True, LEAST_OVERLAP, unused, messages, sums, np.empty(1))
    return messages, log


class LevelSolutions(NamedTuple):
    """Solutions of many problems: a row of a hierarchy's parents, say."""

    marginals: FloatArray
    messages: FloatArray
    sums: FloatArray
    log_normalisers: FloatArray


def level(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    groups: IntArray,
    couplings: FloatArray,
    coupling_offsets: IntArray,
    coupling_lows: IntArray,
    downward: bool = True,
) -> LevelSolutions:
    """Many problems at once: problem g couples the components groups[g] to groups[g + 1] - 1.

    Its coupling is ``couplings[coupling_offsets[g]:coupling_offsets[g + 1]]``, from
    ``coupling_lows[g]`` on. Marginals and messages have the layout of the weights, sums (see
    `upward`) that of the couplings. An upward pass alone leaves marginals and messages zero.
    """
    marginals, messages = np.zeros((2, len(weights)))
    sums = np.zeros(len(couplings))
    every = CoupledProblem(
        reading(weights, np.float64),
        np.array(offsets, np.int64),
        reading(lows, np.int64),
        np.arange(len(lows)),
        np.array([0, len(lows)]),
        reading(couplings, np.float64),
        0,
    )
    groups, starts = np.array(groups, np.int64), np.array(coupling_offsets, np.int64)
    bottoms = np.array(coupling_lows, np.int64)
    logs = solve_many(every, groups, starts, bottoms, downward, marginals, messages, sums)
    return LevelSolutions(marginals, messages, sums, logs)


def draws(
    count: int,
    weights: FloatArray,
    *,
    offsets: IntArray,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
    rng: np.random.Generator,
) -> IntArray:
    """Independent draws of (X_1, …, X_S), one a row."""
    problem = checked(weights, offsets, lows, coupling, coupling_low)
    low, law, log = upward(
        weights, offsets, lows=lows, coupling=problem.coupling, coupling_low=problem.coupling_low
    )
    require_possible(log)
    return sample(problem, low + rng.choice(law.size, count, p=law), rng)


def require_possible(log: float) -> None:
    """Refuse to go on when no vector has positive weight."""
    if log == -np.inf:
        raise InputError("some vector must have positive joint weight, got none")


def mode(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    coupling: FloatArray | None = None,
    coupling_low: int = 0,
) -> tuple[IntArray, float]:
    """A vector of largest joint weight, and its log weight; any of them when there are several.

    Exact up to the rounding of logarithms. The time grows with the square of the number of sums
    within reach of the best: small for peaked weights, large for many flat ones.
    """
    problem = checked(weights, offsets, lows, coupling, coupling_low)
    require_possible(
        log_normaliser(weights, offsets, lows=lows, coupling=coupling, coupling_low=coupling_low)
    )
    found = find_mode(problem)
    chosen = problem.weights[problem.offsets[:-1] + found - problem.lows]
    at_sum = problem.coupling[int(found.sum()) - problem.coupling_low]
    return found, float(np.log(chosen).sum() + np.log(at_sum))


def best_by_sum(
    weights: FloatArray,
    offsets: IntArray,
    *,
    lows: IntArray,
    sum_low: int,
    sums: int,
    bound: float = 300.0,
) -> FloatArray:
    """The largest weight of a vector with each sum from sum_low on, relative to the largest of all.

    The message of `upward` with maxima in place of sums. Weights below exp(-bound) of the product
    of the separate maxima count as zero.
    """
    problem = checked(weights, offsets, lows, np.ones(sums), sum_low)
    losses = losses_by_sum(problem, bound)
    least = losses.min()
    return np.exp(least - losses) if np.isfinite(least) else np.zeros(sums)
