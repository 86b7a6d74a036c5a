"""Cells moved, one margin at a time, until their sums meet targets: exact block ascent of a dual.

Cells x ≥ 0 stay near their centres and their sums near targets; each node has a multiplier λ, and
the optimum has sum + slack·λ = target. Given the multipliers every cell is known by itself:
max(0, centre + spread·Σλ) under squared distance (Hildreth 1957), and centre·exp(Σλ·spread) under
relative entropy (raking, Deming & Stephan 1940, with soft targets). A visit to a margin solves for
all of its multipliers, each node by itself, by Newton steps on a convex function of one number.
"""

import numpy as np

from countwise.arrays import FloatArray, Int32Array
from countwise.kernels.compilation import compiled

MOST_STEPS = 40  # Newton steps at a visit; a few suffice but where most cells leave zero at once
MOST_EXPONENT = 40.0  # exp of it is more people than there are; keeps first steps finite


@compiled
def meet_clipped(
    values: FloatArray,
    spreads: FloatArray,
    nodes: Int32Array,
    targets: FloatArray,
    slacks: FloatArray,
    multipliers: FloatArray,
    near: float,
) -> float:
    """Solve one margin's multipliers where cells are max(0, values); what was missing before.

    What is missing is a root mean square in roots of slacks, solved for until it is below `near`.

    `nodes` has the node of every cell; slacks are positive. `values` and `multipliers` change.
    """
    change = np.zeros(targets.size)
    first = 0.0
    for step in range(MOST_STEPS):
        sums, slopes = np.zeros(targets.size), slacks.copy()
        for c in range(values.size):
            value = values[c] + spreads[c] * change[nodes[c]]
            if value > 0.0:
                sums[nodes[c]] += value
                slopes[nodes[c]] += spreads[c]
        left = targets - sums - slacks * (multipliers + change)
        missing = np.sqrt(np.mean(left**2 / slacks))
        first = missing if step == 0 else first
        if missing < near:
            break
        change += left / slopes
    multipliers += change
    for c in range(values.size):
        values[c] += spreads[c] * change[nodes[c]]
    return float(first)


@compiled
def meet_tilted(
    values: FloatArray,
    spreads: FloatArray,
    nodes: Int32Array,
    targets: FloatArray,
    slacks: FloatArray,
    multipliers: FloatArray,
    near: float,
) -> float:
    """As `meet_clipped` where cells are exp(values) and values move by spreads·λ.

    A Newton step of a sum of exponentials overshoots upwards only, and is held to one e-fold of
    the fastest cell there.
    """
    change = np.zeros(targets.size)
    first = 0.0
    fastest = np.full(targets.size, 1e-300)
    for c in range(values.size):
        fastest[nodes[c]] = max(fastest[nodes[c]], spreads[c])
    for step in range(MOST_STEPS):
        sums, slopes = np.zeros(targets.size), slacks.copy()
        for c in range(values.size):
            node = nodes[c]
            value = np.exp(min(values[c] + spreads[c] * change[node], MOST_EXPONENT))
            sums[node] += value
            slopes[node] += value * spreads[c]
        left = targets - sums - slacks * (multipliers + change)
        missing = np.sqrt(np.mean(left**2 / slacks))
        first = missing if step == 0 else first
        if missing < near:
            break
        change += np.minimum(left / slopes, 1.0 / fastest)
    multipliers += change
    for c in range(values.size):
        values[c] += spreads[c] * change[nodes[c]]
    return float(first)
