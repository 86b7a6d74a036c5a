"""A balanced binary tree of laws: sums are pulled up, messages are pushed down."""

from typing import NamedTuple

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import inner
from countwise.kernels.convolution import Circle, convolve, correlate, empty_circle
from countwise.kernels.tilting import CoupledProblem, Tilted


class Tree(NamedTuple):
    """A binary tree in flat arrays: node p has children 2p+1 and 2p+2, leaf s is node S-1+s.

    ``values[starts[p]:][:lengths[p]]`` is the law of the sum below p, up to exp(scales[p]), from
    ``lows[p]`` on; ``messages`` in the same place is what the rest of the tree says about it, up
    to exp(message_scales[p]), where -inf stands for no message.
    """

    starts: IntArray
    lengths: IntArray
    lows: IntArray
    scales: FloatArray
    values: FloatArray
    message_scales: FloatArray
    messages: FloatArray
    circle: Circle


@inner
def plant(capacities: IntArray) -> Tree:
    """An empty tree whose leaves hold up to the given numbers of values."""
    leaves = capacities.size
    nodes = 2 * leaves - 1
    starts = np.zeros(nodes + 1, np.int64)
    starts[leaves:] = capacities
    for p in range(leaves - 2, -1, -1):
        starts[p + 1] = starts[2 * p + 2] + starts[2 * p + 3] - 1
    longest = starts[1]
    starts = np.cumsum(starts)
    return Tree(
        starts,
        np.zeros(nodes, np.int64),
        np.zeros(nodes, np.int64),
        np.full(nodes, -np.inf),
        np.empty(starts[-1]),
        np.full(nodes, -np.inf),
        np.empty(starts[-1]),
        empty_circle(longest),
    )


@inner
def planted(tilted: Tilted) -> tuple[Tree, IntArray]:
    """An empty tree with room for every piece, and the list of active pieces: none."""
    offsets, components = tilted.problem.offsets, tilted.problem.components
    capacities = np.ones(tilted.bases.size, np.int64)
    for q in range(components.size):
        capacities[components[q]] = max(capacities[components[q]], offsets[q + 1] - offsets[q])
    return plant(capacities), np.full(tilted.bases.size, -1)


@inner
def trim(tree: Tree, p: int, tail: float) -> None:
    """Cut a node's tails, scale its mass to one; a node without mass becomes empty."""
    values = tree.values[tree.starts[p] :][: tree.lengths[p]]
    mass = values.sum()
    if not mass > 0.0:
        tree.lengths[p], tree.scales[p] = 0, -np.inf
        return
    first, last = 0, values.size - 1
    lost = values[first]
    while lost <= 0.5 * tail * mass:
        first += 1
        lost += values[first]
    lost = values[last]
    while lost <= 0.5 * tail * mass:
        last -= 1
        lost += values[last]
    for i in range(last - first + 1):
        values[i] = values[first + i] / mass
    tree.lengths[p] = last - first + 1
    tree.lows[p] += first
    tree.scales[p] += np.log(mass)


@inner
def pull(tree: Tree, p: int, tail: float) -> None:
    """Compute the law of node p from its children."""
    a, b = 2 * p + 1, 2 * p + 2
    tree.lengths[p] = max(0, tree.lengths[a] + tree.lengths[b] - 1)
    if tree.lengths[a] == 0 or tree.lengths[b] == 0:
        tree.lengths[p], tree.scales[p] = 0, -np.inf
        return
    tree.lows[p] = tree.lows[a] + tree.lows[b]
    tree.scales[p] = tree.scales[a] + tree.scales[b]
    law_a = tree.values[tree.starts[a] :][: tree.lengths[a]]
    law_b = tree.values[tree.starts[b] :][: tree.lengths[b]]
    convolve(tree.circle, law_a, law_b, tree.values[tree.starts[p] :][: tree.lengths[p]], tail)
    trim(tree, p, tail)


@inner
def add_scaled(target: FloatArray, scale: float, source: FloatArray, other: float) -> float:
    """target·e^scale += source·e^other, in place; returns the new scale of target."""
    if other == -np.inf:
        return scale
    if scale == -np.inf:
        target[:] = source
    elif other <= scale:
        target += source * np.exp(other - scale)
        return scale
    else:
        target *= np.exp(scale - other)
        target += source
    return other


@inner
def push(tree: Tree, p: int, tail: float) -> None:
    """Pass the message waiting at node p on to both children."""
    scale = tree.message_scales[p]
    tree.message_scales[p] = -np.inf
    if scale == -np.inf:
        return
    message = tree.messages[tree.starts[p] :][: tree.lengths[p]]
    spread = np.zeros(tree.lengths[2 * p + 1] + tree.lengths[2 * p + 2] - 1)
    spread[tree.lows[p] - tree.lows[2 * p + 1] - tree.lows[2 * p + 2] :][: message.size] = message
    for a in (2 * p + 1, 2 * p + 2):
        b = 4 * p + 3 - a
        law = tree.values[tree.starts[b] :][: tree.lengths[b]]
        message = np.empty(tree.lengths[a])
        correlate(tree.circle, spread, law, message, tail)
        largest = message.max()
        if largest > 0.0:
            tree.message_scales[a] = add_scaled(
                tree.messages[tree.starts[a] :][: message.size],
                tree.message_scales[a],
                message / largest,
                scale + tree.scales[b] + np.log(largest),
            )


@inner
def place(tree: Tree, tilted: Tilted, q: int) -> None:
    """Put piece q on its leaf, whole: a leaf's message is wanted on all of its support."""
    problem = tilted.problem
    leaf = (tree.lengths.size - 1) // 2 + problem.components[q]
    weights = problem.weights[problem.offsets[q] : problem.offsets[q + 1]]
    mass = weights.sum()
    tree.lows[leaf] = problem.lows[q]
    if mass > 0.0:
        tree.values[tree.starts[leaf] :][: weights.size] = weights / mass
        tree.lengths[leaf], tree.scales[leaf] = weights.size, tilted.factors[q] + np.log(mass)
    else:
        tree.lengths[leaf], tree.scales[leaf] = 0, -np.inf


@inner
def take(
    tree: Tree, problem: CoupledProblem, q: int, messages: FloatArray, scales: FloatArray
) -> None:
    """Collect the message that has come to the leaf of piece q, and its scale."""
    leaf = (tree.lengths.size - 1) // 2 + problem.components[q]
    scales[q] = tree.message_scales[leaf]
    tree.message_scales[leaf] = -np.inf
    if scales[q] > -np.inf:
        source = tree.messages[tree.starts[leaf] :][: tree.lengths[leaf]]
        messages[problem.offsets[q] : problem.offsets[q + 1]] = source


@inner
def above(leaves: int, components: IntArray) -> IntArray:
    """The inner nodes above the given leaves, each once, parents before children."""
    seen = np.zeros(leaves, np.bool_)
    for s in components:
        p = (leaves - 1 + s - 1) // 2
        while leaves > 1 and not seen[p]:
            seen[p] = True
            p = max(0, (p - 1) // 2)
    return np.nonzero(seen)[0]


@inner
def advance(
    tree: Tree,
    tilted: Tilted,
    step: int,
    active: IntArray,
    messages: FloatArray,
    scales: FloatArray,
    tail: float,
) -> None:
    """Bring the tree to a step: collect the messages to the leaves that change, then change."""
    problem = tilted.problem
    first, last = problem.bounds[step], problem.bounds[step + 1]
    nodes = above(active.size, problem.components[first:last])
    for p in nodes:
        push(tree, p, tail)
    for q in range(first, last):
        s = problem.components[q]
        if active[s] >= 0:
            take(tree, problem, active[s], messages, scales)
        active[s] = q
        place(tree, tilted, q)
    for p in nodes[::-1]:
        pull(tree, p, tail)
