"""How little is left out. Each number d stands for the factor exp(-d).

A law on the whole numbers is computed on a window, and what is outside is left out. There are five
reasons for a width, and these are they; no room has another of its own.
"""

SAMPLED = 30.0
"""1e-13, of steps of a sampler: a run makes some 10^8 of them, and none so unlikely is expected."""

WIDENED = 33.0
"""5e-15, of windows that are made wider when a marginal has mass at an end. Mass at an end is seen
from 1e-13 on (`sumproduct.tree.EDGE`), so that windows that are wide enough are left alone."""

ROUNDING = 37.0
"""8e-17, less than 2^-53: added to 1, it changes nothing in a float64."""

LEFT_OUT = 42.0
"""6e-19, of what is left out often: a hundred such shares together are still below the rounding."""

WINDOW = 45.0
"""3e-20, of likelihoods before the rest of a tree is known: that may raise an end by 10^6 against
the peak before it has the 1e-13 from which on windows are made wider."""

SMALLEST = 700.0
"""1e-304, near the smallest number that a float64 holds in full: no window goes further."""
