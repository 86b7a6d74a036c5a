"""ResidualPlanner's closed form beside the best noise of whole margins, on flat variables.

Root mean squared errors a count after least squares at ρ = ½, of all margins of so many variables.
ResidualPlanner (Xiao et al. 2023) measures each part of the margins alone, the contrasts of a set
of variables, which takes no loss for what other parts say.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod, sqrt

import numpy as np
import polars as pl

from countwise.margins.crossing import crossing
from countwise.margins.meanvariances import MeanVariances
from countwise.margins.spending import Spending
from countwise.tables.variable import make_variable
from countwise.tables.workload import Margin, Workload

SIZES = (50, 100, 7, 4, 2)
WAYS = {"1-way": (1,), "2-way": (2,), "3-way": (3,), "up to 3-way": (0, 1, 2, 3)}


def closed_form(sizes: Sequence[int], ways: Sequence[int]) -> float:
    """The least Σ v/p over parts where Σ p·Π(1 - 1/n) is the loss: (Σ √(v·Π(1 - 1/n)))²."""
    every = list(product((0, 1), repeat=len(sizes)))
    wanted = [margin for margin in every if sum(margin) in ways]
    root = 0.0
    for part in every:
        variance = sum(
            prod(
                n - 1 if t else 1 / n if q else 1
                for t, q, n in zip(part, margin, sizes, strict=True)
            )
            for margin in wanted
            if all(t <= q for t, q in zip(part, margin, strict=True))
        )
        cost = prod(1 - 1 / n if t else 1 for t, n in zip(part, sizes, strict=True))
        root += sqrt(variance * cost)
    return root / sqrt(sum(prod(n**q for q, n in zip(m, sizes, strict=True)) for m in wanted))


def whole_margins(sizes: Sequence[int], ways: Sequence[int]) -> float:
    """The same with noise on the counts of whole margins, at the best shares of the loss."""
    variables = []
    for i, size in enumerate(sizes):
        labels = pl.DataFrame({f"v{i}": [f"{k:04}" for k in range(size)]})
        variables.append(make_variable(f"v{i}", labels)[0])
    margins = tuple(Margin(each) for each in product((0, 1), repeat=len(sizes)))
    wanted = tuple(each for each in margins if sum(each.levels) in ways)
    workload = Workload(variables=tuple(variables), margins=wanted)
    counts = np.array([workload.size(each) for each in wanted], dtype=float)
    parts = counts / counts.sum()

    def score(variances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean = variances @ parts
        return np.log(mean), parts / np.expand_dims(mean, -1)

    mean = MeanVariances(crossing=crossing(workload), measured=margins, wanted=wanted)
    reach = np.ones(len(margins))
    spending = Spending(mean=mean, unit="rho", loss=0.5, reach=reach, score=score)
    shares, _ = spending.settle(reach / len(margins))
    return float(np.exp(spending.worth(shares[None])[0] / 2))


def lines() -> Iterator[str]:
    """The two beside each other, as a table of a page."""
    yield "| margins | ResidualPlanner | whole margins | ratio |"
    yield "|---|---|---|---|"
    for name, ways in WAYS.items():
        one, other = closed_form(SIZES, ways), whole_margins(SIZES, ways)
        yield f"| {name} | {one:.3f} | {other:.3f} | {other / one:.3f} |"
