"""The same noise from OpenDP's samplers: a second backend, and an oracle for the first."""

from math import inf, nextafter
from typing import Any

import numpy as np

from countwise.arrays import IntArray
from countwise.errors import PlanError
from countwise.noise.laws import (
    DiscreteGaussian,
    Exact,
    Geometric,
    IntegerLaw,
    RoundedLaplace,
)

KNOWN = (Exact, Geometric, RoundedLaplace, DiscreteGaussian)


def sample(law: IntegerLaw, size: int) -> IntArray:
    """`size` independent draws of the law.

    OpenDP takes its scale as a float; it is rounded up, so privacy is never less than stated.
    """
    if isinstance(law, Exact):
        return np.zeros(size, dtype=np.int64)
    refuse_missing(law)
    dp = _opendp()
    scale = nextafter(float(law.scale), inf)
    whole = dp.vector_domain(dp.atom_domain(T=int))
    if isinstance(law, Geometric):
        draws = dp.m.make_laplace(whole, dp.l1_distance(T=int), scale=scale)([0] * size)
    elif isinstance(law, DiscreteGaussian):
        draws = dp.m.make_gaussian(whole, dp.l2_distance(T=float), scale=scale)([0] * size)
    else:
        real = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        draws = dp.m.make_laplace(real, dp.l1_distance(T=float), scale=scale)([0.0] * size)
    return np.asarray(np.rint(np.array(draws)), dtype=np.int64)


def refuse_missing(law: IntegerLaw) -> None:
    """Refuse to go on without the library, or with noise that it does not have."""
    _opendp()
    if type(law) not in KNOWN:
        raise PlanError(
            f"noise=opendp has no {law.name} noise. To fix, take noise=exact, which draws any law."
        )


def _opendp() -> Any:
    try:
        import opendp.prelude as dp
    except ImportError:
        raise PlanError(
            "noise=opendp needs the OpenDP library. To fix: pip install 'countwise[opendp]'"
        ) from None
    dp.enable_features("contrib")
    return dp
