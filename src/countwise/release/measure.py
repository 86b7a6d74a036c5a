"""The privacy boundary: true counts go in, noisy counts come out, and nothing else does."""

from countwise.arrays import frozen
from countwise.privacy import opendp_backend, sampling
from countwise.privacy.measurements import Measurements
from countwise.release.budget import Budget
from countwise.tables.confidential import Confidential

SAMPLERS = {"exact": sampling.sample, "opendp": opendp_backend.sample}


def measure(table: Confidential, budget: Budget, *, noise: str = "exact") -> Measurements:
    """A noisy count of every node of every level, each with fresh noise of its level's law."""
    sample = SAMPLERS[noise]
    true = table.hierarchy.sums(table.reveal())
    noisy = tuple(
        frozen(counts + sample(law, len(counts)))
        for counts, law in zip(true, budget.laws, strict=True)
    )
    return Measurements(hierarchy=table.hierarchy, laws=budget.laws, noisy=noisy)
