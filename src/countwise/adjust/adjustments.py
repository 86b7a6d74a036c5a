"""The adjustments there are: what each is called, what it needs, and how it is made.

A new one is a class in a module of its own and an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from countwise.adjust.auto import Auto
from countwise.adjust.bayes import EmpiricalBayes
from countwise.adjust.draw import MultinomialDraw
from countwise.adjust.histogram import ESTIMATORS, SIGNED, FromCells
from countwise.adjust.mode import Mode, Total
from countwise.adjust.protocol import Adjustment
from countwise.adjust.tree_least_squares import LeastSquares


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What a run decides for its adjustment: random choices, and what the plan says of it."""

    tie_key: int | None
    rng: np.random.Generator
    total: Total = "independent"
    pool: str = ""


@dataclass(frozen=True, kw_only=True)
class AdjustmentKind:
    """An adjustment as a plan knows it."""

    make: Callable[[Choices], Adjustment]
    words: str = "every cell for itself, and sums of those"
    """What it does, for people who do not know its name."""
    fits: bool = False
    """Weighs the noisy counts of all levels, so that a split can count on it."""
    learns: bool = False
    """Fits a prior to all cells, which takes more memory."""
    chooses: bool = False
    """Takes one of the others."""
    crosses: bool = False
    """Is there for tables that cross as well."""
    in_pieces: str = ""
    """What is done where the table is in pieces: the same, another one, or nothing if it looks at
    all cells at once. What is the same is a `SubtreeAdjustment`."""


def _draw(choices: Choices, *, algorithm: Literal[1, 2]) -> Adjustment:
    return MultinomialDraw(rng=choices.rng, algorithm=algorithm, total=choices.total)


def _from_cells(_: Choices, *, estimator: str) -> Adjustment:
    return FromCells(estimator=ESTIMATORS[estimator])


ADJUSTMENTS: dict[str, AdjustmentKind] = {
    "mode": AdjustmentKind(
        make=lambda choices: Mode(tie_key=choices.tie_key, total=choices.total),
        words="the most probable whole numbers that add up",
        in_pieces="mode",
    ),
    "least-squares": AdjustmentKind(
        make=lambda choices: LeastSquares(tie_key=choices.tie_key),
        words="least squares over all noisy counts, then whole numbers",
        fits=True,
        crosses=True,
        in_pieces="least-squares",
    ),
    "bayes": AdjustmentKind(
        make=lambda choices: EmpiricalBayes(tie_key=choices.tie_key, pool=choices.pool),
        words="what similar noisy counts let expect, then whole numbers",
        fits=True,
        learns=True,
    ),
    "auto": AdjustmentKind(
        make=lambda choices: Auto(tie_key=choices.tie_key, pool=choices.pool),
        words="what similar noisy counts let expect, then whole numbers",
        fits=True,
        chooses=True,
        crosses=True,
        in_pieces="least-squares",
    ),
    "draw-1": AdjustmentKind(
        make=partial(_draw, algorithm=1),
        words="a random draw of whole numbers that add up",
        in_pieces="draw-1",
    ),
    "draw-2": AdjustmentKind(
        make=partial(_draw, algorithm=2),
        words="a random draw of whole numbers that add up to the noisy total",
        in_pieces="draw-2",
    ),
    **{
        name: AdjustmentKind(
            make=partial(_from_cells, estimator=name),
            in_pieces=name if name == "clipped" else "",
        )
        for name in ESTIMATORS
        if name != SIGNED
    },
}
