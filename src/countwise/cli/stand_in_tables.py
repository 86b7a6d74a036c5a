"""What adjustment adds to least squares in tables that cross, from public stand-in counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from countwise.cli.console import out, print_table, progress
from countwise.margins.whole import Method
from countwise.release.budget import Budget
from countwise.release.plan import Plan
from countwise.release.table_accuracy import NORMAL, TableAccuracy
from countwise.risk.simulated_tables import SimulatedError, table_errors
from countwise.tables.layouts import Layout
from countwise.tables.reading import read_public_cells
from countwise.tables.workload import Workload


@dataclass(frozen=True, kw_only=True)
class StandIn:
    """Errors of simulated releases of a stand-in, and how many there were."""

    errors: list[SimulatedError]
    releases: int

    def to_list(self) -> list[dict[str, Any]]:
        """As data: what 95 of 100 errors stay within, and its standard error."""
        return [
            {
                "table": each.table,
                "error95_adjusted": NORMAL * each.rmse,
                "uncertain": NORMAL * each.uncertain,
            }
            for each in self.errors
        ]


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A public file of counts, and how long releases of it are simulated."""

    file: Path
    count: str
    layout: Layout
    repetitions: int
    seed: int

    def errors(self, plan: Plan, cells: Workload, budget: Budget) -> StandIn:
        """Of releases by a settled plan, some seconds long."""
        _, public = read_public_cells(
            self.file, names=plan.variables, count=self.count, cells=cells, loader=self.layout
        )
        with progress(self.repetitions) as tell:
            errors, releases = table_errors(
                plan.workload(cells),
                public,
                budget,
                method=cast(Method, plan.adjust),
                repetitions=self.repetitions,
                rng=np.random.default_rng(self.seed),
                tell=lambda done: tell(f"simulated release {done + 1}"),
            )
        return StandIn(errors=errors, releases=releases)


def print_stand_in(found: StandIn, accuracy: Sequence[TableAccuracy]) -> None:
    """Each table's margin after least squares, and as adjusted with its standard error."""
    rows = [
        (
            fitted.table,
            f"±{fitted.fitted:,.1f}",
            f"±{NORMAL * each.rmse:,.1f}",
            f"{NORMAL * each.uncertain:,.2g}",
        )
        for fitted, each in zip(accuracy, found.errors, strict=True)
    ]
    out.print(f"\nIn {found.releases} simulated releases of the stand-in:")
    print_table(("table", "fitted", "adjusted", "give or take"), rows)
    out.print(
        "Fitted is least squares, as above; adjusted is what is published, without negative counts "
        "and with what cells share, 1.96 root mean squared errors, and its standard error over "
        "the releases. It holds for counts like those of the stand-in."
    )
