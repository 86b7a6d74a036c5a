"""The chances of the verdicts before a claim is paid for, by simulation without data."""

import numpy as np

from countwise.verification.border import SYMMETRIC
from countwise.verification.exchange import Power
from countwise.verification.planner import Setting, power
from countwise.verification.request import Request

DISTANCES = (1.0, 2.0, 4.0, 8.0)  # standard errors: from hardly to far from the threshold


def chances(request: Request) -> tuple[Power, ...]:
    """The chances at some distances from the threshold; none for a claim with cuts."""
    if request.claim.cuts:
        return ()
    setting = Setting(
        partitions=request.partitions,
        epsilon=request.epsilon,
        mechanism=request.mechanism,
        alpha=request.alpha,
        border=SYMMETRIC if request.border is None else request.border,
    )
    repetitions = max(100, min(1000, 100_000 // request.partitions))
    found = (
        power(setting, distance=each, repetitions=repetitions, rng=np.random.default_rng(0))
        for each in DISTANCES
    )
    return tuple(
        Power(
            distance=each.distance,
            supported=each.supported,
            contradicted=each.contradicted,
            undecided=each.undecided,
        )
        for each in found
    )
