"""What a family's parent says about each of its children that carry the same noise."""

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled


@compiled
def told_by_parents(
    couplings: FloatArray,
    offsets: IntArray,
    lows: IntArray,
    centres: IntArray,
    kinds: IntArray,
    slopes: FloatArray,
    slope_offsets: IntArray,
    reach: int,
) -> FloatArray:
    """Σ_t T(t)·F(t - centre - u) for u = -reach..reach (columns), a row a parent, largest 1.

    T is what is known of the parent's count beside these children, F the law of a sum of noises,
    symmetric and log-concave, given by its log-ratios at 0, 1, … of each kind (zero of them: no
    noise). A parent with reach 0 of F at hand reads T itself.
    """
    result = np.zeros((lows.size, 2 * reach + 1))
    for p in range(lows.size):
        coupling = couplings[offsets[p] : offsets[p + 1]]
        first = slope_offsets[kinds[p]]
        steps = slopes[first : slope_offsets[kinds[p] + 1]]
        # F is needed from low to high, counted from its middle.
        low = lows[p] - centres[p] - reach
        high = lows[p] + coupling.size - 1 - centres[p] + reach
        law = np.empty(high - low + 1)
        fill(law, low, steps)
        row, size = result[p], coupling.size
        for i in range(row.size):
            part = law[row.size - 1 - i : row.size - 1 - i + size]
            row[i] = np.dot(coupling, part)
        largest = row.max()
        if largest > 0.0:
            row /= largest
    return result


@compiled
def fill(law: FloatArray, low: int, steps: FloatArray) -> None:
    """A symmetric law from `low` on by its log-ratios, its largest value within reach 1."""
    if steps.size == 0:
        law[:] = 0.0
        if 0 <= -low < law.size:
            law[-low] = 1.0
        return
    peak = min(max(0, low), low + law.size - 1) - low
    law[peak] = 1.0
    for i in range(peak + 1, law.size):
        k = low + i - 1
        law[i] = law[i - 1] * np.exp(ratio(steps, k))
    for i in range(peak - 1, -1, -1):
        k = low + i
        law[i] = law[i + 1] * np.exp(-ratio(steps, k))


@compiled
def ratio(steps: FloatArray, k: int) -> float:
    """log F(k + 1) - log F(k)."""
    if k >= 0:
        return float(steps[min(k, steps.size - 1)])
    return float(-steps[min(-k - 1, steps.size - 1)])
