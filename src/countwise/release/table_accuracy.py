"""How near to the truth each published table will be, from the plan and public shapes alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, log

from countwise.margins.measurement import noise_variance
from countwise.margins.shares import NORMAL
from countwise.margins.variances import variances
from countwise.release.budget import Budget
from countwise.tables.notation import margin_of
from countwise.tables.workload import Workload


@dataclass(frozen=True, kw_only=True)
class TableAccuracy:
    """What 95 of 100 errors of a table's counts stay within: as drawn, and after least squares.

    A table without noise of its own is nothing as drawn: it is made from those that are measured.
    """

    table: str
    counts: int
    noise: int | None
    fitted: float

    def in_words(self) -> tuple[str, str, str, str]:
        """The table, its counts, and both margins."""
        drawn = "not measured" if self.noise is None else f"±{self.noise:,}"
        return self.table, f"{self.counts:,}", drawn, f"±{self.fitted:,.1f}"


def table_accuracy(workload: Workload, budget: Budget) -> list[TableAccuracy]:
    """The accuracy of every published table under the noise of a budget."""
    laws = {margin_of(each.level, workload.names): each.law for each in budget.levels}
    fitted = variances(workload, {margin: noise_variance(law) for margin, law in laws.items()})
    return [
        TableAccuracy(
            table=workload.name(margin),
            counts=workload.size(margin),
            noise=laws[margin].margin(0.95) if margin in laws else None,
            fitted=NORMAL * fitted.mean_variance(margin) ** 0.5,
        )
        for margin in workload.margins
    ]


def overall(accuracy: Sequence[TableAccuracy]) -> float:
    """The geometric mean over tables with noise of what their errors stay within."""
    fitted = [each.fitted for each in accuracy if each.fitted > 0]
    return exp(fsum(map(log, fitted)) / len(fitted)) if fitted else 0.0
