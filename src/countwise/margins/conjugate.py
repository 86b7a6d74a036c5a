"""Least squares where several variables are trees that are not balanced, by conjugate gradients.

The normal equations are sums along levels and back. They are preconditioned by the one-pass
solution with categories of mean size, which is near, so that few steps are needed.
docs/explain/crossed-least-squares.md, section 4.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from countwise.arrays import FloatArray
from countwise.errors import CountwiseError
from countwise.tables.workload import Margin, Workload

# An error of this size in the norm of the equations moves a sum of cells by at most so many of its
# own standard deviations, and one of a thousandth of it is far below rounding to whole numbers.
TOLERANCE = 1e-8
ROUNDING = 1e-13  # of the size of the right side: about what doubles leave after its sums
MOST_STEPS = 500  # each is a pass over all counts

Linear = Callable[[FloatArray], FloatArray]


def normal_equations(workload: Workload, precisions: Mapping[Margin, float]) -> Linear:
    """The operator Σ A'A·precision over the margins, A the sums of cells to a margin."""

    if not precisions:
        return np.zeros_like

    def along(values: FloatArray, axis: int, margins: Sequence[Margin]) -> FloatArray:
        if axis == len(workload.variables):
            return precisions[margins[0]] * values
        variable, sums = workload.variables[axis], values
        found: dict[int, FloatArray] = {}
        coarsest = min(each.levels[axis] for each in margins)
        for level in range(len(variable.levels), coarsest - 1, -1):
            if level < len(variable.levels):
                sums = np.add.reduceat(sums, variable.tree.offsets[level][:-1], axis=axis)
            chosen = [each for each in margins if each.levels[axis] == level]
            if chosen:
                found[level] = along(sums, axis + 1, chosen)
        total = found[coarsest]
        for level in range(coarsest + 1, len(variable.sizes)):
            total = np.take(total, variable.parents(level, of=level - 1), axis=axis)
            if level in found:
                total += found[level]
        return total

    return lambda cells: along(cells, 0, list(precisions))


def conjugate_gradients(
    operator: Linear, near: Linear, right: FloatArray, start: FloatArray
) -> tuple[FloatArray, int]:
    """The solution of operator(x) = right, and the steps it took. Hestenes & Stiefel 1952.

    `near` is about the inverse of the operator. Stops when the error in the norm of the equations
    is about 1e-8 for each square root of the number of cells.
    """
    cells = start.copy()
    residual = right - operator(cells)
    improved = near(residual)
    direction, size = improved.copy(), float(np.vdot(residual, improved))
    scale = float(np.vdot(right, near(right)))
    enough = max(TOLERANCE**2 * cells.size, ROUNDING**2 * scale)
    for steps in range(MOST_STEPS):
        if size <= enough:
            return cells, steps
        moved = operator(direction)
        length = size / float(np.vdot(direction, moved))
        cells += length * direction
        residual -= length * moved
        improved = near(residual)
        before, size = size, float(np.vdot(residual, improved))
        direction = improved + size / before * direction
    raise CountwiseError(
        f"least squares did not settle in {MOST_STEPS} steps. To fix, measure fewer margins "
        "of trees that cross, or shares that differ less."
    )
