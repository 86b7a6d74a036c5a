"""What a plan would do to tables that cross: simulated releases of public stand-in counts.

Errors are those of the table before it is rounded to whole numbers, which takes far longer than all
else and adds about 1/12 to a squared error.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from time import monotonic
from typing import Any

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.margins.measurement import Measurement
from countwise.margins.reconstruction import Reconstruction
from countwise.margins.shares import NORMAL
from countwise.margins.whole import Method, real_cells
from countwise.progress import Tell, silent
from countwise.release.budget import Budget
from countwise.release.measure import exact_counts
from countwise.risk.simulation import simulate_noise
from countwise.tables.notation import margin_of
from countwise.tables.workload import Margin, Workload

ROUNDING = 1 / 12  # variance of rounding to whole numbers
FEWEST = 2  # releases tell how far the next may be from their mean
SECONDS = 8.0  # that a simulation may take
MANY = 50_000  # cells


@dataclass(frozen=True, kw_only=True)
class SimulatedError:
    """The root mean squared error of a table's counts, and its standard error over releases."""

    table: str
    counts: int
    rmse: float
    uncertain: float


@dataclass(frozen=True, kw_only=True)
class SimulatedTables:
    """Errors of every published table, and over how many releases."""

    errors: list[SimulatedError]
    releases: int

    def to_dict(self) -> dict[str, Any]:
        """As data: what 95 of 100 errors stay within, and its standard error."""
        found = [
            {
                "table": each.table,
                "error95_adjusted": NORMAL * each.rmse,
                "uncertain": NORMAL * each.uncertain,
            }
            for each in self.errors
        ]
        return {"stand_in": found, "releases": self.releases}


def simulate_tables(
    workload: Workload, cells: IntArray, budget: Budget, *, rng: np.random.Generator
) -> tuple[Measurement, ...]:
    """One set of noisy margins of these cells."""
    found = []
    for i, each in enumerate(budget.levels):
        margin = margin_of(each.level, workload.names)
        true = workload.sums(cells, margin)
        noise = simulate_noise(each.law, true.size, rng=rng).reshape(true.shape)
        exact = exact_counts(budget, i, true.shape)
        noisy = true + (noise if exact is None else np.where(exact, 0, noise))
        found.append(Measurement(margin=margin, law=each.law, noisy=noisy, exact=exact))
    return tuple(found)


def table_errors(
    workload: Workload,
    cells: IntArray,
    budget: Budget,
    *,
    method: Method,
    repetitions: int,
    rng: np.random.Generator,
    tell: Tell = silent,
) -> SimulatedTables:
    """Errors of every published table in releases with the noise of a budget.

    Of many cells, `auto` takes in all releases what it took in the first: to choose costs more than
    all else, and many cells leave little to chance.
    """
    taken: Method | None = None

    def table() -> FloatArray:
        nonlocal taken
        drawn = simulate_tables(workload, cells, budget, rng=rng)
        seen = Reconstruction(workload=workload, measurements=drawn)
        if taken == "auto":
            return seen.shrunken(seen.learned_shapes(rng))
        found, chosen, _ = real_cells(seen, taken or method, rng)
        taken = chosen if workload.cells > MANY else None
        return found

    return repeated(workload, cells, table, repetitions=repetitions, tell=tell)


def repeated(
    workload: Workload,
    cells: IntArray,
    table: Callable[[], FloatArray | IntArray],
    *,
    repetitions: int,
    rounding: float = ROUNDING,
    tell: Tell = silent,
) -> SimulatedTables:
    """Errors of tables made again and again: at least twice, then as often as asked for and as fits
    into the time. `rounding` is what rounding is still to add to squared errors.
    """
    squared: list[list[float]] = []
    started = monotonic()
    while len(squared) < max(repetitions, FEWEST):
        used, done = monotonic() - started, len(squared)
        if done >= FEWEST and used * (done + 1) > SECONDS * done:
            break
        tell(f"simulated release {done + 1}", done, max(repetitions, FEWEST))
        errors = np.asarray(table() - cells, dtype=np.float64)
        squared.append([_squared(workload, errors, each) for each in workload.margins])
    errors_ = _summary(workload, np.array(squared), rounding)
    return SimulatedTables(errors=errors_, releases=len(squared))


def _squared(workload: Workload, errors: FloatArray, margin: Margin) -> float:
    return float((workload.sums(errors, margin) ** 2).mean())


def _summary(workload: Workload, squared: FloatArray, rounding: float) -> list[SimulatedError]:
    """Figures of squared errors, a row a release and a column a table."""
    means = squared.mean(axis=0) + rounding
    spread = squared.std(axis=0, ddof=1) / sqrt(len(squared))
    return [
        SimulatedError(
            table=workload.name(margin),
            counts=workload.size(margin),
            rmse=sqrt(mean),
            uncertain=0.0 if mean == 0 else float(error) / (2 * sqrt(mean)),
        )
        for margin, mean, error in zip(workload.margins, means, spread, strict=True)
    ]


def overall(errors: Sequence[SimulatedError]) -> float:
    """The geometric mean over tables of their errors, that of whole numbers at the least."""
    return float(np.exp(np.mean([np.log(max(each.rmse, sqrt(ROUNDING))) for each in errors])))
