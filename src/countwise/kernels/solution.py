"""Solving a problem: sweep through its steps, collect sums, messages and marginals."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner
from countwise.kernels.sumtree import Tree, add_scaled, advance, planted, push, take
from countwise.kernels.tilting import Problem, Tilted, impossible, prepare

TAIL = 1e-15  # share of a node's mass that is cut off, both ends together
LEAST_OVERLAP = 1e-3  # below this share the law and T hardly meet, and tails are kept


@inner
def meet(tree: Tree, problem: Problem, product: FloatArray, message: FloatArray) -> float:
    """Product of the law of the sum and T, on T's support; the message T sends to the root.

    Returns the share of the smaller of the two bounds max(T)·Σlaw and max(law)·ΣT that the sum
    of the product reaches: near zero when the two hardly meet.
    """
    product[:] = 0.0
    message[:] = 0.0
    law, coupling = tree.values[: tree.lengths[0]], problem.coupling
    if law.size == 0:
        return 1.0
    gap = problem.coupling_low - tree.lows[0]
    for i in range(max(0, -gap), min(product.size, law.size - gap)):
        message[i + gap] = coupling[i]
        product[i] = coupling[i] * law[i + gap]
    return float(product.sum() / min(coupling.max(), law.max() * coupling.sum()))


@inner
def sweep(
    tilted: Tilted,
    tail: float,
    downward: bool,
    told: FloatArray,
    scales: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> float:
    """Go through all steps; returns how well law and T meet at the step of largest weight."""
    tree, active = planted(tilted)
    product = np.empty(sums.size)
    scale, best, overlap = -np.inf, -np.inf, 0.0
    for step in range(step_logs.size):
        advance(tree, tilted, step, active, told, scales, tail)
        message = np.empty(tree.lengths[0])
        share = meet(tree, tilted.problem, product, message)
        mass = product.sum()
        step_logs[step] = tree.scales[0] + np.log(mass) if mass > 0.0 else -np.inf
        if step_logs[step] >= best:
            best, overlap = step_logs[step], share
        if mass > 0.0:
            scale = add_scaled(sums, scale, product, tree.scales[0])
        if mass > 0.0 and downward:
            waiting = tree.messages[: message.size]
            tree.message_scales[0] = add_scaled(waiting, tree.message_scales[0], message, 0.0)
    for p in range(active.size - 1):
        push(tree, p, tail)
    for q in active:
        take(tree, tilted.problem, q, told, scales)
    return overlap


@inner
def finish(
    tilted: Tilted, total: float, scales: FloatArray, marginals: FloatArray, messages: FloatArray
) -> None:
    """Marginals and untilted messages, relative to the normaliser exp(total)."""
    problem, reference = tilted.problem, total - tilted.coupling_factor
    for q in range(scales.size):
        if scales[q] == -np.inf:
            continue
        factor = np.exp(scales[q] + tilted.factors[q] - reference)
        first = problem.offsets[q]
        if tilted.theta == 0.0 and scales[q] - reference < 700.0:
            here = slice(first, problem.offsets[q + 1])
            marginals[here] = problem.weights[here] * messages[here] * factor
            messages[here] *= np.exp(scales[q] - reference)
            continue
        for i in range(problem.offsets[q + 1] - first):
            marginals[first + i] = problem.weights[first + i] * messages[first + i] * factor
            level = scales[q] - reference + tilted.theta * (problem.lows[q] + i)
            if messages[first + i] > 0.0:
                messages[first + i] = np.exp(min(700.0, level + np.log(messages[first + i])))


@compiled
def solve(
    problem: Problem,
    downward: bool,
    least_overlap: float,
    marginals: FloatArray,
    messages: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> tuple[float, float]:
    """Fill the last four arrays; returns the log normaliser and the tail that was cut.

    Where law and T meet in less than the least overlap, tails are kept; else the error is at most
    the tail that was cut over the overlap.

    ``marginals`` and ``messages`` have the layout of the weights, ``sums`` that of T, and
    ``step_logs`` gets the log normaliser of every step.
    """
    marginals[:], messages[:], sums[:], step_logs[:] = 0.0, 0.0, 0.0, -np.inf
    if impossible(problem):
        return -np.inf, TAIL
    tilted = prepare(problem)
    scales, tail = np.full(problem.lows.size, -np.inf), TAIL
    if sweep(tilted, tail, downward, messages, scales, sums, step_logs) < least_overlap:
        tail = 0.0
        sweep(tilted, tail, downward, messages, scales, sums, step_logs)
    largest = step_logs.max() + tilted.coupling_factor
    if largest == -np.inf:
        return -np.inf, tail
    step_logs += tilted.coupling_factor
    total = largest + np.log(np.exp(step_logs - largest).sum())
    sums /= sums.sum()
    finish(tilted, total, scales, marginals, messages)
    return total, tail


@compiled
def solve_many(
    every: Problem,
    groups: IntArray,
    coupling_offsets: IntArray,
    coupling_lows: IntArray,
    downward: bool,
    marginals: FloatArray,
    messages: FloatArray,
    sums: FloatArray,
) -> FloatArray:
    """`solve` for every group of components; returns the log normalisers."""
    logs = np.empty(groups.size - 1)
    for g in range(logs.size):
        first, last = groups[g], groups[g + 1]
        here = slice(every.offsets[first], every.offsets[last])
        there = slice(coupling_offsets[g], coupling_offsets[g + 1])
        offsets = every.offsets[first : last + 1] - every.offsets[first]
        bounds = np.array([0, last - first])
        problem = Problem(
            every.weights[here],
            offsets,
            every.lows[first:last],
            np.arange(last - first),
            bounds,
            every.coupling[there],
            coupling_lows[g],
        )
        logs[g], _ = solve(
            problem,
            downward,
            LEAST_OVERLAP,
            marginals[here],
            messages[here],
            sums[there],
            np.empty(1),
        )
    return logs
