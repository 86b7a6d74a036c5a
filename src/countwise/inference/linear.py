"""The exact law of a sum of multiples of siblings' counts.

Siblings with the same multiple are added first. When at most two different multiples other than
zero remain, the joint law of the two sums Y and Z is w(y)·w(z)·h(y + z), where h is what the
other siblings and the parent say about Y + Z: an exact sum over pairs, for each step. Two nodes
of different families are left to `relatives`.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.inference.node_pairs import MOST_PAIRS, joint_law
from countwise.inference.sibling_sums import NOTHING, SMALL, Sum, step_laws
from countwise.inference.statements import Linear
from countwise.sumproduct.summaries import Law
from countwise.sumproduct.tree import Solved

MOST_PIECES = 3e5  # children times steps, each taken by itself in Python
MOST_VALUES = 2e7  # values of a sum of multiples: 160 MB
LEAST_MEETING = 1e-6  # of the laws' masses: where they meet less, tails that were cut may matter


def linear_law(solved: Solved, linear: Linear) -> tuple[Law, int] | None:
    """The law of `linear` times an integer, and that integer; None where it would cost too much."""
    scale = linear.scale
    constant = int(linear.constant * scale)
    if not linear.terms:
        return Law(low=constant, chances=np.ones(1)), scale
    home = _home(solved, linear)
    if home is None:
        return _of_two(solved, linear, scale)
    level, parent, multiples = home
    numbers = np.array([int(value * scale) for value in multiples])
    found = _group_law(solved, level, parent, numbers)
    if found is None:
        return None
    return Law(low=found[0] + constant, chances=found[1]), scale


def _of_two(solved: Solved, linear: Linear, scale: int) -> tuple[Law, int] | None:
    """The law when only two nodes are named, wherever they are."""
    if len(linear.terms) != 2:
        return None
    (first, a), (second, b) = linear.terms.items()
    joint = joint_law(solved, first, second)
    multiples = int(a * scale), int(b * scale)
    if joint is None or np.dot(np.abs(multiples), joint.chances.shape) > MOST_VALUES:
        return None
    low, chances = joint.combined(multiples)
    return Law(low=low + int(linear.constant * scale), chances=chances), scale


def _home(solved: Solved, linear: Linear) -> tuple[int, int, list[Fraction]] | None:
    """The parent whose children all terms are about, itself their sum; multiples of each."""
    hierarchy = solved.hierarchy
    nodes = list(linear.terms)
    deepest = max(level for level, _ in nodes)
    if deepest == 0 or (len(nodes) == 1 and nodes[0][0] < len(hierarchy.offsets)):
        return _alone(solved, linear)
    homes = set()
    for level, node in nodes:
        if level == deepest:
            homes.add(hierarchy.parent(level, node))
        elif level < deepest - 1:
            return None
        else:
            homes.add(node)
    if len(homes) != 1:
        return None
    parent = homes.pop()
    below = hierarchy.children(deepest - 1, parent)
    whole = linear.terms.get((deepest - 1, parent), Fraction(0))
    multiples = [
        linear.terms.get((deepest, n), Fraction(0)) + whole for n in range(below.start, below.stop)
    ]
    return deepest - 1, parent, multiples


def _alone(solved: Solved, linear: Linear) -> tuple[int, int, list[Fraction]]:
    """One node that has children: the sum of them, all with its multiple."""
    ((level, node), value) = next(iter(linear.terms.items()))
    size = int(np.diff(solved.hierarchy.offsets[level])[node])
    return level, node, [value] * size


def _group_law(
    solved: Solved, level: int, parent: int, multiples: IntArray
) -> tuple[int, FloatArray] | None:
    different = [int(c) for c in np.unique(multiples) if c != 0]
    if not different:  # all of it cancels, as a parent and its only child do
        return 0, np.ones(1)
    if len(different) > 2:
        return None
    children = solved.children(level, parent, parent + 1)
    steps = solved.ties.steps(level, parent, children)
    coupling = steps.tied(*solved.couplings[level].one(parent))
    groups = [np.flatnonzero(multiples == c) for c in different]
    rest = np.flatnonzero(multiples == 0)
    if (len(steps.bounds) - 1) * children.nodes > MOST_PIECES:
        return None
    spans = [int(children.sizes[g].sum()) for g in groups]
    if np.prod(spans) * (len(steps.bounds) - 1) > MOST_PAIRS:
        return None
    if sum(abs(c) * span for c, span in zip(different, spans, strict=True)) > MOST_VALUES:
        return None
    laws = step_laws(steps, children, [*groups, rest])
    least, total, most = _added(laws, different, coupling, steps.unpacked)
    whole = all(int(children.sizes[group].sum()) <= SMALL for group in (*groups, rest))
    met = total.any() and (whole or total.sum() >= LEAST_MEETING * most)
    return (least, total / total.sum()) if met else None


def _added(
    laws: list[list[Sum]],
    multiples: list[int],
    coupling: tuple[int, FloatArray],
    unpacked: Callable[[IntArray], IntArray],
) -> tuple[int, FloatArray, float]:
    """Σ over steps of the law of Σ multiple·sum, and the most that its mass could have been."""
    logs = np.array([sum(law[2] for law in step) for step in laws])
    ends = []
    for number, c in enumerate(multiples):
        low = min(step[number][0] for step in laws)
        high = max(step[number][0] + len(step[number][1]) - 1 for step in laws)
        low, high = unpacked(np.array([low, high])).tolist()
        ends.append((min(c * low, c * high), max(c * low, c * high)))
    least, most = sum(e[0] for e in ends), sum(e[1] for e in ends)
    total, bound = np.zeros(most - least + 1), 0.0
    for log, step in zip(logs, laws, strict=True):
        share = np.exp(log - logs.max())
        bound += share * float(np.prod([law[1].sum() for law in step])) * coupling[1].max()
        if share > 0.0:
            place, mass = _pairs(step, multiples, coupling, unpacked)
            total += np.bincount((place - least).ravel(), mass.ravel(), len(total)) * share
    return least, total, bound


def _pairs(
    step: list[Sum],
    multiples: list[int],
    coupling: tuple[int, FloatArray],
    unpacked: Callable[[IntArray], IntArray],
) -> tuple[IntArray, FloatArray]:
    """The values of c·y + d·z, and the joint weight of every pair y, z."""
    (y_low, y_law, _), (z_low, z_law, _) = step[0], (step[1] if len(multiples) > 1 else NOTHING)
    r_low, r_law, _ = step[-1]
    allowed = np.correlate(coupling[1], r_law, mode="full")  # of Y + Z, what the rest allows
    allowed_low = coupling[0] - r_low - (len(r_law) - 1)
    some_y, some_z = np.flatnonzero(y_law), np.flatnonzero(z_law)
    y, z = y_low + some_y[:, None], z_low + some_z
    at = y + z - allowed_low
    inside = (at >= 0) & (at < len(allowed))
    mass = (
        y_law[some_y, None]
        * z_law[some_z]
        * np.where(inside, allowed[np.clip(at, 0, len(allowed) - 1)], 0.0)
    )
    c, d = multiples[0], multiples[1] if len(multiples) > 1 else 0
    if len(multiples) == 1:
        return c * unpacked(y) + 0 * z, np.maximum(mass, 0.0)
    return c * unpacked(y) + d * unpacked(z), np.maximum(mass, 0.0)
