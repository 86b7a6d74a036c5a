"""Counts that protect people, add up, and can be reasoned about.

Confidential rows are tabulated into a confidential table, measured into noisy counts,
adjusted into a release, and a release is what inference starts from. Nothing after
`measure` sees a true count.

A name is loaded with its room when it is first used, so that importing this takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from countwise.errors import BudgetError, CountwiseError, InputError

if TYPE_CHECKING:
    from countwise.inference.changes import compare
    from countwise.inference.paper_tables import infer_counts
    from countwise.inference.routes import infer, infer_measurements
    from countwise.release.crossed_release import CrossedRelease, read_release
    from countwise.release.document import Release
    from countwise.release.person_rows import records
    from countwise.release.plan import Plan, read_plan
    from countwise.release.run import release
    from countwise.risk.tree_targets import plan_for_targets
    from countwise.tables.reading import read_counts, read_domain
    from countwise.verification.schema import Schema, read_schema

__all__ = [
    "BudgetError",
    "CountwiseError",
    "CrossedRelease",
    "InputError",
    "Plan",
    "Release",
    "Schema",
    "compare",
    "infer",
    "infer_counts",
    "infer_measurements",
    "plan_for_targets",
    "read_counts",
    "read_domain",
    "read_plan",
    "read_release",
    "read_schema",
    "records",
    "release",
]

_ROOMS = {
    "CrossedRelease": "release.crossed_release",
    "Plan": "release.plan",
    "Release": "release.document",
    "Schema": "verification.schema",
    "compare": "inference.changes",
    "infer": "inference.routes",
    "infer_counts": "inference.paper_tables",
    "infer_measurements": "inference.routes",
    "plan_for_targets": "risk.tree_targets",
    "read_counts": "tables.reading",
    "read_domain": "tables.reading",
    "read_plan": "release.plan",
    "read_release": "release.crossed_release",
    "read_schema": "verification.schema",
    "records": "release.person_rows",
    "release": "release.run",
}

# An import gives a room's name to the package, once. Here `release` is the function.
import_module("countwise.release")
globals().pop("release")


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
