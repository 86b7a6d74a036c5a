"""Solving a problem: sweep through its steps, collect sums, messages and marginals."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, inner
from countwise.kernels.sumtree import Tree, add_scaled, advance, planted, push, take
from countwise.kernels.tilting import CoupledProblem, Tilted, impossible, prepare

TAIL = 1e-15  # share of a node's mass that is cut off, both ends together
LEAST_OVERLAP = 1e-3  # below this share the law and T hardly meet, and tails are kept


@inner
def meet(tree: Tree, problem: CoupledProblem, product: FloatArray, message: FloatArray) -> float:
    """Product of the law of the sum and T, on T's support; the message T sends to the root.

    Returns a bound on the sum of the product, the smaller of max(T)·Σlaw and max(law)·ΣT. What
    was cut from the tails of the law can have added no more than a share of about TAIL of it.
    """
    product[:] = 0.0
    message[:] = 0.0
    law, coupling = tree.values[: tree.lengths[0]], problem.coupling
    if law.size == 0:
        return 0.0
    gap = problem.coupling_low - tree.lows[0]
    for i in range(max(0, -gap), min(product.size, law.size - gap)):
        message[i + gap] = coupling[i]
        product[i] = coupling[i] * law[i + gap]
    return float(min(coupling.max() * law.sum(), law.max() * coupling.sum()))


@inner
def sweep(
    tilted: Tilted,
    tail: float,
    downward: bool,
    messages: FloatArray,
    scales: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> float:
    """Go through all steps; returns the log of the bounds of all steps together."""
    tree, active = planted(tilted)
    product = np.empty(sums.size)
    scale, bounds = -np.inf, np.full(step_logs.size, -np.inf)
    for step in range(step_logs.size):
        advance(tree, tilted, step, active, messages, scales, tail)
        message = np.empty(tree.lengths[0])
        bound = meet(tree, tilted.problem, product, message)
        mass = product.sum()
        step_logs[step] = tree.scales[0] + np.log(mass) if mass > 0.0 else -np.inf
        bounds[step] = tree.scales[0] + np.log(bound) if bound > 0.0 else -np.inf
        if mass > 0.0:
            scale = add_scaled(sums, scale, product, tree.scales[0])
        if mass > 0.0 and downward:
            waiting = tree.messages[: message.size]
            tree.message_scales[0] = add_scaled(waiting, tree.message_scales[0], message, 0.0)
    for p in range(active.size - 1):
        push(tree, p, tail)
    for q in active:
        take(tree, tilted.problem, q, messages, scales)
    return log_sum(bounds)


@inner
def log_sum(logs: FloatArray) -> float:
    """log Σ e^x."""
    largest = logs.max()
    if largest == -np.inf:
        return -np.inf
    return float(largest + np.log(np.exp(logs - largest).sum()))


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


@inner
def portion(problem: CoupledProblem, first: int, last: int) -> tuple[CoupledProblem, IntArray]:
    """The steps first to last - 1 as a problem of their own, and which pieces it has."""
    size, begin = problem.bounds[1], problem.bounds[first + 1]
    pieces = np.empty(size + problem.bounds[last] - begin, np.int64)
    for q in range(begin):
        pieces[problem.components[q]] = q
    pieces[size:] = np.arange(begin, problem.bounds[last])
    offsets = np.zeros(pieces.size + 1, np.int64)
    for i in range(pieces.size):
        q = pieces[i]
        offsets[i + 1] = offsets[i] + problem.offsets[q + 1] - problem.offsets[q]
    weights = np.empty(offsets[-1])
    for i in range(pieces.size):
        q = pieces[i]
        there = slice(problem.offsets[q], problem.offsets[q + 1])
        weights[offsets[i] : offsets[i + 1]] = problem.weights[there]
    bounds = np.zeros(last - first + 1, np.int64)
    bounds[1:] = problem.bounds[first + 1 : last + 1] - begin + size
    return CoupledProblem(
        weights,
        offsets,
        problem.lows[pieces],
        problem.components[pieces],
        bounds,
        problem.coupling,
        problem.coupling_low,
    ), pieces


@inner
def solve_alike(
    problem: CoupledProblem,
    downward: bool,
    tail: float,
    marginals: FloatArray,
    messages: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> tuple[float, float]:
    """Fill the last four arrays under one tilt; the log normaliser, and the log of its bound."""
    marginals[:], messages[:], sums[:], step_logs[:] = 0.0, 0.0, 0.0, -np.inf
    tilted, scales = prepare(problem), np.full(problem.lows.size, -np.inf)
    bound = sweep(tilted, tail, downward, messages, scales, sums, step_logs)
    step_logs += tilted.coupling_factor
    total = log_sum(step_logs)
    if total > -np.inf:
        sums /= sums.sum()
        finish(tilted, total, scales, marginals, messages)
    return total, bound + tilted.coupling_factor


@compiled
def solve(
    problem: CoupledProblem,
    downward: bool,
    least_overlap: float,
    marginals: FloatArray,
    messages: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> float:
    """Fill the last four arrays; returns the log normaliser.

    Steps are solved together, under one tilt, if all that their cut tails could have added is
    negligible: if the least overlap times their bounds is at most the whole. Else each half of
    them gets a tilt of its own, and a single step is solved with every tail kept.

    ``marginals`` and ``messages`` have the layout of the weights, ``sums`` that of T, and
    ``step_logs`` gets the log normaliser of every step.
    """
    marginals[:], messages[:], sums[:], step_logs[:] = 0.0, 0.0, 0.0, -np.inf
    if impossible(problem):
        return -np.inf
    steps, total, slack = step_logs.size, -np.inf, np.log(least_overlap)
    logs, bound = solve_alike(problem, downward, TAIL, marginals, messages, sums, step_logs)
    if bound + slack <= logs:
        return logs
    if steps == 1:
        return solve_alike(problem, downward, 0.0, marginals, messages, sums, step_logs)[0]
    known = logs
    marginals[:], messages[:], sums[:], step_logs[:] = 0.0, 0.0, 0.0, -np.inf
    waiting = [(steps // 2, steps), (0, steps // 2)]
    while len(waiting) > 0:
        first, last = waiting.pop()
        part, pieces = portion(problem, first, last)
        own, partial = np.empty(part.weights.size), np.empty(part.weights.size)
        law, own_logs = np.empty(sums.size), np.empty(last - first)
        logs, bound = solve_alike(part, downward, TAIL, own, partial, law, own_logs)
        known = max(known, logs)
        if bound + slack > known:
            if last - first > 1:
                middle = (first + last) // 2
                waiting.append((middle, last))
                waiting.append((first, middle))
                continue
            logs, bound = solve_alike(part, downward, 0.0, own, partial, law, own_logs)
            known = max(known, logs)
        step_logs[first:last] = own_logs
        if logs == -np.inf:
            continue
        after = max(total, logs) + np.log1p(np.exp(-abs(total - logs))) if total > -np.inf else logs
        kept, share = np.exp(total - after), np.exp(logs - after)
        marginals *= kept
        messages *= kept
        sums *= kept
        sums += law * share
        for i in range(pieces.size):
            here = slice(part.offsets[i], part.offsets[i + 1])
            there = slice(problem.offsets[pieces[i]], problem.offsets[pieces[i] + 1])
            marginals[there] += own[here] * share
            messages[there] += partial[here] * share
        total = after
    return total


@compiled
def solve_whole(
    problem: CoupledProblem,
    downward: bool,
    tail: float,
    marginals: FloatArray,
    messages: FloatArray,
    sums: FloatArray,
    step_logs: FloatArray,
) -> float:
    """As `solve`, all steps under one tilt, cut as asked and not judged."""
    marginals[:], messages[:], sums[:], step_logs[:] = 0.0, 0.0, 0.0, -np.inf
    if impossible(problem):
        return -np.inf
    return solve_alike(problem, downward, tail, marginals, messages, sums, step_logs)[0]


@compiled
def solve_many(
    every: CoupledProblem,
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
        problem = CoupledProblem(
            every.weights[here],
            offsets,
            every.lows[first:last],
            np.arange(last - first),
            bounds,
            every.coupling[there],
            coupling_lows[g],
        )
        logs[g] = solve(
            problem,
            downward,
            LEAST_OVERLAP,
            marginals[here],
            messages[here],
            sums[there],
            np.empty(1),
        )
    return logs
