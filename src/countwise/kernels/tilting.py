"""The problem, and the exponential tilt that makes its sum and its coupling meet.

w_s(x)·exp(θx) and T(t)·exp(-θt) have the same joint weight for every θ; θ is chosen so that the
mean of the tilted sum and the mean of the tilted T agree.
"""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import inner

STEEPEST = 1500.0  # largest tilt: turns the range of a float64 upside down, twice
FINEST = 1e-9  # tilts are not told apart further


class CoupledProblem(NamedTuple):
    """Ragged weights and T; the weights of step c are pieces bounds[c] to bounds[c + 1] - 1.

    Piece q serves component ``components[q]`` from its step on, until the next piece of that
    component. A problem of one step has a piece for each component and ``bounds`` (0, S).
    """

    weights: FloatArray
    offsets: IntArray
    lows: IntArray
    components: IntArray
    bounds: IntArray
    coupling: FloatArray
    coupling_low: int


class Tilted(NamedTuple):
    """A problem with values counted from ``bases``, weights and T tilted by θ and scaled to 1.

    The true weights of piece q are exp(factors[q] - θx) times those of ``problem``.
    """

    problem: CoupledProblem
    bases: IntArray
    theta: float
    factors: FloatArray
    coupling_factor: float


@inner
def tilt(source: FloatArray, theta: float, first: int, target: FloatArray) -> float:
    """target·exp(factor) = source(x)·exp(θx), x from first on, largest 1; returns the factor."""
    if theta == 0.0 and source.max() > 0.0:
        target[:] = source / source.max()
        return float(np.log(source.max()))
    factor = -np.inf
    for i in range(source.size):
        target[i] = np.log(source[i]) + theta * (first + i) if source[i] > 0.0 else -np.inf
        factor = max(factor, target[i])
    for i in range(source.size):
        target[i] = np.exp(target[i] - factor) if target[i] > -np.inf else 0.0
    return factor


@inner
def moments(weights: FloatArray, first: int) -> tuple[float, float, float]:
    """Mass, mean and variance of weights on first, first + 1, …"""
    mass, mean, square = 0.0, 0.0, 0.0
    for i in range(weights.size):
        mass += weights[i]
        mean += weights[i] * i
        square += weights[i] * i * i
    if not mass > 0.0:
        return 0.0, float(first), 0.0
    mean /= mass
    return mass, first + mean, max(0.0, square / mass - mean * mean)


@inner
def imbalance(problem: CoupledProblem, active: IntArray, theta: float) -> tuple[float, float]:
    """Mean of the tilted sum minus mean of the tilted T, and the derivative of that in θ."""
    scratch = np.empty(problem.coupling.size)
    tilt(problem.coupling, -theta, problem.coupling_low, scratch)
    _, mean, slope = moments(scratch, problem.coupling_low)
    gap = -mean
    for q in active:
        source = problem.weights[problem.offsets[q] : problem.offsets[q + 1]]
        target = np.empty(source.size)
        tilt(source, theta, problem.lows[q], target)
        _, mean, variance = moments(target, problem.lows[q])
        gap += mean
        slope += variance
    return gap, slope


@inner
def central(problem: CoupledProblem) -> tuple[IntArray, float, float]:
    """The pieces of the step with most weight, were all laws normal; `imbalance` there, untilted.

    Pieces without mass count as e^-1000000000, so that a step without them is preferred.
    """
    _, centre, width = moments(problem.coupling, problem.coupling_low)
    state, total = np.zeros((problem.bounds[1], 3)), np.zeros(3)
    active = np.zeros(problem.bounds[1], np.int64)
    chosen, best, best_gap, best_slope = active.copy(), -np.inf, 0.0, 0.0
    for step in range(problem.bounds.size - 1):
        for q in range(problem.bounds[step], problem.bounds[step + 1]):
            s, here = problem.components[q], slice(problem.offsets[q], problem.offsets[q + 1])
            mass, mean, variance = moments(problem.weights[here], problem.lows[q])
            fresh = np.array([np.log(mass) if mass > 0.0 else -1e9, mean, variance])
            total += fresh - state[s]
            state[s], active[s] = fresh, q
        gap, slope = total[1] - centre, max(0.0, total[2]) + width
        score = total[0] - 0.5 * gap * gap / slope if slope > 0.0 else total[0]
        if step == 0 or score > best:
            best, best_gap, best_slope = score, gap, slope
            chosen[:] = active
    return chosen, best_gap, best_slope


@inner
def balance(problem: CoupledProblem) -> float:
    """The tilt θ at which sum and T have about the same mean, by safeguarded Newton steps.

    It minimises the convex bound log Σ_x Π w(x)e^{θx} + log Σ_t T(t)e^{-θt} of the log normaliser;
    half a standard deviation off is near enough.
    """
    active, gap, slope = central(problem)
    theta, below, above = 0.0, -STEEPEST, STEEPEST
    for _ in range(200):
        if gap * gap <= 0.25 * slope or above - below <= FINEST:
            break
        if gap > 0.0:
            above = theta
        else:
            below = theta
        theta = theta - gap / slope if slope > 0.0 else STEEPEST
        if not below < theta < above:
            theta = 0.5 * (below + above)
        gap, slope = imbalance(problem, active, theta)
    return theta


@inner
def rebased(problem: CoupledProblem) -> tuple[CoupledProblem, IntArray]:
    """The problem with each component counted from its lowest value, and these values."""
    weights, offsets, lows, components, bounds, coupling, coupling_low = problem
    bases = np.full(bounds[1], np.iinfo(np.int64).max)
    for q in range(lows.size):
        bases[components[q]] = min(bases[components[q]], lows[q])
    shifts = lows.copy()
    for q in range(lows.size):
        shifts[q] -= bases[components[q]]
    low = coupling_low - bases.sum()
    return CoupledProblem(
        weights.copy(), offsets, shifts, components, bounds, coupling.copy(), low
    ), bases


@inner
def prepare(problem: CoupledProblem) -> Tilted:
    """Count from each component's lowest value, and tilt."""
    shifted, bases = rebased(problem)
    theta = balance(shifted)
    factors = np.zeros(shifted.lows.size)
    for q in range(factors.size):
        here = slice(problem.offsets[q], problem.offsets[q + 1])
        factors[q] = tilt(problem.weights[here], theta, shifted.lows[q], shifted.weights[here])
    factor = tilt(problem.coupling, -theta, shifted.coupling_low, shifted.coupling)
    return Tilted(shifted, bases, theta, factors, factor)


@inner
def impossible(problem: CoupledProblem) -> bool:
    """Whether T is zero, or (with a single step) lies outside the range of the sum."""
    sizes = problem.offsets[1:] - problem.offsets[:-1]
    if problem.coupling.size == 0 or not problem.coupling.max() > 0.0 or sizes.min() == 0:
        return True
    gap = problem.coupling_low - problem.lows.sum()
    outside = gap > (sizes - 1).sum() or gap + problem.coupling.size <= 0
    return bool(problem.bounds.size == 2 and outside)
