"""Counts that protect people, add up, and can be reasoned about.

Confidential rows are tabulated into a confidential table, measured into noisy counts,
adjusted into a release, and a release is what inference starts from. Nothing after
`measure` sees a true count.
"""

from countwise.errors import BudgetError, CountwiseError, InputError
from countwise.inference.paper_tables import infer_counts
from countwise.inference.routes import infer, infer_measurements
from countwise.release.document import Release, read_release
from countwise.release.plan import Plan, read_plan
from countwise.release.run import release
from countwise.tables.reading import read_counts, read_domain

__all__ = [
    "BudgetError",
    "CountwiseError",
    "InputError",
    "Plan",
    "Release",
    "infer",
    "infer_counts",
    "infer_measurements",
    "read_counts",
    "read_domain",
    "read_plan",
    "read_release",
    "release",
]
