"""Which adjustment and which mechanism suit a table, by simulated releases of a stand-in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import exp, fsum, log, sqrt

import numpy as np

from countwise.adjust.adjustments import ADJUSTMENTS
from countwise.arrays import IntArray
from countwise.errors import PlanError
from countwise.margins.shares import NORMAL
from countwise.noise.count_noise import MECHANISMS
from countwise.noise.numbers import written
from countwise.progress import Tell, silent
from countwise.release.plan import Plan
from countwise.risk.monte_carlo import simulate_plan
from countwise.risk.promised_margins import LevelMargins, level_margins
from countwise.tables.hierarchy import Hierarchy

# Gaussian noise is never ε-private, so at one ε it has no place beside the others.
PURE = tuple(name for name, each in MECHANISMS.items() if each.unit == "epsilon")
# One that chooses takes one of those that are ranked themselves.
RANKED = tuple(name for name, each in ADJUSTMENTS.items() if not each.chooses)
LEAST = sqrt(1 / 12)  # the error of rounding to whole numbers
SPOILING, SURE = 1.5, 2.0  # times least squares, beyond so many standard errors
WARNING = (
    "Run this on public or made-up counts only. The ranking is computed from the counts in the "
    "file without any noise: if they are confidential, publishing it, or choosing a method by "
    "it, leaks. No privacy loss was spent or accounted for here."
)


@dataclass(frozen=True, kw_only=True)
class Option:
    """One way to release: expected squared error of the cells and of all levels together."""

    adjustment: str
    mechanism: str
    cells_sse: float
    cells_error: float
    all_sse: float
    level_rmse: tuple[float, ...]
    price: str = ""
    spoiled: tuple[str, ...] = ()
    """Levels above the cells whose error is 1.5 times that of least squares or more."""

    @property
    def overall(self) -> float:
        """The geometric mean over levels of their errors: what options are ranked by.

        That of whole numbers at the least, as a level without noise has none.
        """
        return exp(fsum(log(max(each, LEAST)) for each in self.level_rmse) / len(self.level_rmse))

    def cell_rmse(self, cells: int) -> float:
        """Root of the mean squared error of a cell."""
        return sqrt(max(self.cells_sse, 0.0) / cells)


def advise(
    hierarchy: Hierarchy,
    cells: IntArray,
    base: Plan,
    *,
    rng: np.random.Generator,
    repetitions: int,
    adjustments: Sequence[str] = RANKED,
    mechanisms: Sequence[str] = PURE,
    tell: Tell = silent,
) -> tuple[list[Option], list[tuple[str, str]]]:
    """Options from best to worst by the errors of all levels, and what could not be simulated.

    An option is the base plan with another adjustment and mechanism. Every option is simulated
    from the same start of the generator, so they differ by method more than by luck.
    """
    seed = int(rng.integers(2**63))
    options, refused = [], []
    for mechanism in mechanisms:
        for adjustment in adjustments:
            tell(f"{adjustment} with {mechanism} noise")
            try:
                plan = replace(base, mechanism=mechanism, adjust=adjustment)
                results = simulate_plan(
                    hierarchy,
                    cells,
                    plan,
                    repetitions=repetitions,
                    rng=np.random.default_rng(seed),
                )
            except PlanError as problem:
                refused.append((f"{adjustment}, {mechanism}", str(problem)))
                continue
            fitted = level_margins(hierarchy, plan.budget(hierarchy))
            options.append(_option(plan, results, hierarchy, fitted))
    return sorted(options, key=lambda option: option.overall), refused


def _option(
    plan: Plan,
    results: Sequence[tuple[float, float]],
    hierarchy: Hierarchy,
    fitted: Sequence[LevelMargins],
) -> Option:
    spoiled = [
        level
        for level, (mean, error), size, margin in zip(
            hierarchy.levels[:-1], results[:-1], hierarchy.sizes[:-1], fitted[:-1], strict=True
        )
        if (mean - SURE * error) / size > (SPOILING * margin.fitted / NORMAL) ** 2 + LEAST**2
    ]
    return Option(
        spoiled=tuple(spoiled),
        price=_price(plan),
        adjustment=plan.adjust,
        mechanism=plan.mechanism,
        cells_sse=results[-1][0],
        cells_error=results[-1][1],
        all_sse=sum(mean for mean, _ in results),
        level_rmse=tuple(
            sqrt(max(mean, 0.0) / size)
            for (mean, _), size in zip(results, hierarchy.sizes, strict=True)
        ),
    )


def _price(plan: Plan) -> str:
    """The loss in words: of a loss stated by level, its sum is nobody's question here."""
    return f"ε = {written(plan.epsilon)}" if isinstance(plan.epsilon, Fraction) else "ε by level"
