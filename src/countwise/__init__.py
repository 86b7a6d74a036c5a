"""Counts that protect people, add up, and can be reasoned about.

Confidential rows are tabulated into a confidential table, measured into noisy counts,
adjusted into a release, and a release is what inference starts from. Nothing after
`measure` sees a true count.

Every command is a function here, by the same words: `countwise risk certify` is `risk_certify`.
A name is loaded with its room when it is first used, so that importing this takes no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from countwise.errors import BudgetError, CountwiseError, InputError

if TYPE_CHECKING:
    from countwise.front_door.adjust_function import adjust
    from countwise.front_door.advice_function import risk_advise
    from countwise.front_door.audit_functions import audit_noise, audit_release
    from countwise.front_door.demo_function import demo, reproduce, warm_up
    from countwise.front_door.exchange_functions import compare, convert, records
    from countwise.front_door.explore_function import explore
    from countwise.front_door.infer_function import infer
    from countwise.front_door.ledger_functions import (
        ledger_check,
        ledger_grant,
        ledger_show,
        ledger_upgrade,
    )
    from countwise.front_door.plan_function import plan
    from countwise.front_door.release_function import release
    from countwise.front_door.risk_functions import (
        risk_certify,
        risk_losses,
        risk_mechanisms,
        risk_search,
    )
    from countwise.front_door.server_functions import backup, serve
    from countwise.front_door.tabulate_function import tabulate
    from countwise.front_door.verify.schema_functions import verify_schema, verify_synthetic
    from countwise.front_door.verify.verify_functions import (
        receipt_check,
        verify,
        verify_example,
        verify_recompute,
    )
    from countwise.front_door.verify.verify_plan_function import verify_plan
    from countwise.inference.paper_tables import infer_counts
    from countwise.inference.routes import infer_measurements
    from countwise.release.crossed_release import CrossedRelease, read_release
    from countwise.release.document import Release
    from countwise.release.plan import Plan, read_plan
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
    "adjust",
    "audit_noise",
    "audit_release",
    "backup",
    "compare",
    "convert",
    "demo",
    "explore",
    "infer",
    "infer_counts",
    "infer_measurements",
    "ledger_check",
    "ledger_grant",
    "ledger_show",
    "ledger_upgrade",
    "plan",
    "plan_for_targets",
    "read_counts",
    "read_domain",
    "read_plan",
    "read_release",
    "read_schema",
    "receipt_check",
    "records",
    "release",
    "reproduce",
    "risk_advise",
    "risk_certify",
    "risk_losses",
    "risk_mechanisms",
    "risk_search",
    "serve",
    "tabulate",
    "verify",
    "verify_example",
    "verify_plan",
    "verify_recompute",
    "verify_schema",
    "verify_synthetic",
    "warm_up",
]

_ROOMS = {
    "CrossedRelease": "release.crossed_release",
    "Plan": "release.plan",
    "Release": "release.document",
    "Schema": "verification.schema",
    "adjust": "front_door.adjust_function",
    "audit_noise": "front_door.audit_functions",
    "audit_release": "front_door.audit_functions",
    "backup": "front_door.server_functions",
    "compare": "front_door.exchange_functions",
    "convert": "front_door.exchange_functions",
    "demo": "front_door.demo_function",
    "explore": "front_door.explore_function",
    "infer": "front_door.infer_function",
    "infer_counts": "inference.paper_tables",
    "infer_measurements": "inference.routes",
    "ledger_check": "front_door.ledger_functions",
    "ledger_grant": "front_door.ledger_functions",
    "ledger_show": "front_door.ledger_functions",
    "ledger_upgrade": "front_door.ledger_functions",
    "plan": "front_door.plan_function",
    "plan_for_targets": "risk.tree_targets",
    "read_counts": "tables.reading",
    "read_domain": "tables.reading",
    "read_plan": "release.plan",
    "read_release": "release.crossed_release",
    "read_schema": "verification.schema",
    "receipt_check": "front_door.verify.verify_functions",
    "records": "front_door.exchange_functions",
    "release": "front_door.release_function",
    "reproduce": "front_door.demo_function",
    "risk_advise": "front_door.advice_function",
    "risk_certify": "front_door.risk_functions",
    "risk_losses": "front_door.risk_functions",
    "risk_mechanisms": "front_door.risk_functions",
    "risk_search": "front_door.risk_functions",
    "serve": "front_door.server_functions",
    "tabulate": "front_door.tabulate_function",
    "verify": "front_door.verify.verify_functions",
    "verify_example": "front_door.verify.verify_functions",
    "verify_plan": "front_door.verify.verify_plan_function",
    "verify_recompute": "front_door.verify.verify_functions",
    "verify_schema": "front_door.verify.schema_functions",
    "verify_synthetic": "front_door.verify.schema_functions",
    "warm_up": "front_door.demo_function",
}

# An import gives a room's name to the package, once. Here these are the functions.
for _name in ("adjust", "release", "reproduce"):
    import_module(f"countwise.{_name}")
    globals().pop(_name)


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
