"""The weight of given numbers under a mixture of independent ones, in the layout of `mixture`."""

from math import exp, log

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.kernels.compilation import compiled, reading
from countwise.kernels.coupled_mixture import StepLayout

BARRED = -np.inf


def combination_logs(rows: IntArray, weights: FloatArray, layout: StepLayout) -> FloatArray:
    """For each row of numbers, log Σ over steps of the product of their weights."""
    with np.errstate(divide="ignore"):
        logs = np.log(weights)
    out = np.empty(len(rows))
    layout = StepLayout(*(reading(each, np.int64) for each in layout))
    _combinations(reading(rows, np.int64), logs, layout, out)
    return out


@compiled
def _combinations(
    rows: IntArray,
    logs: FloatArray,
    layout: StepLayout,
    out: FloatArray,
) -> None:
    """Steps one after another, each changing the few logarithms that its pieces bring."""
    offsets, lows, components, bounds = layout
    size = rows.shape[1]
    own = np.empty(size)
    for r in range(rows.shape[0]):
        own[:] = BARRED
        running, barred = 0.0, size
        largest, total = BARRED, 0.0
        for step in range(bounds.size - 1):
            for q in range(bounds[step], bounds[step + 1]):
                s = components[q]
                if own[s] == BARRED:
                    barred -= 1
                else:
                    running -= own[s]
                at = offsets[q] + rows[r, s] - lows[q]
                own[s] = logs[at] if offsets[q] <= at < offsets[q + 1] else BARRED
                if own[s] == BARRED:
                    barred += 1
                else:
                    running += own[s]
            if barred:
                continue
            if running > largest:
                total = total * exp(largest - running) + 1.0
                largest = running
            else:
                total += exp(running - largest)
        out[r] = largest + log(total) if total > 0.0 else BARRED
