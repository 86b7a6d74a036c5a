"""Whether statements are true in draws, and the probabilities that follow."""

import numpy as np

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.inference.draws import Draws
from countwise.inference.statements import Linear, Relation, Statement


class Probability(float):
    """A probability, with the standard error it has when it was estimated from draws.

    `prior` says which prior it rests on.
    """

    error: float
    prior: str

    def __new__(cls, value: float, error: float = 0.0, prior: str = "") -> "Probability":
        """A number with an error and a prior."""
        made = super().__new__(cls, value)
        made.error, made.prior = error, prior
        return made

    @property
    def exact(self) -> bool:
        """Whether it was computed rather than estimated."""
        return self.error == 0.0


def holds(relation: Relation, left: FloatArray | IntArray, right: float) -> BoolArray:
    """Where a relation is true."""
    answers = {
        ">": np.greater,
        ">=": np.greater_equal,
        "<": np.less,
        "<=": np.less_equal,
        "==": np.equal,
        "!=": np.not_equal,
    }
    return np.asarray(answers[relation](left, right))


def evaluated(linear: Linear, draws: Draws) -> IntArray:
    """The value of a sum of counts in every draw, times a whole number that makes it whole."""
    scale = linear.scale
    total = np.full(len(draws), int(linear.constant * scale))
    for (level, node), multiple in linear.terms.items():
        total += int(multiple * scale) * draws.levels[level][:, node]
    return total


def judged(said: Statement, draws: Draws) -> BoolArray:
    """Whether a statement is true in each draw."""
    if said.ranked is None:
        return holds(said.relation, evaluated(said.linear, draws), 0.0)
    level, node = said.ranked
    if level == 0:
        rank = np.ones(len(draws))
    else:
        parent = draws.hierarchy.parent(level, node)
        siblings = draws.levels[level][:, draws.hierarchy.children(level - 1, parent)]
        rank = 1 + (siblings > draws.levels[level][:, [node]]).sum(axis=1)
    return holds(said.relation, rank, float(said.linear.constant))


def estimate(true: BoolArray, effective: float, *, prior: str) -> Probability:
    """The share of draws that are true, with its standard error for so many independent draws."""
    share = float(true.mean())
    error = float(np.sqrt((share * (1 - share) + 1 / effective) / effective))
    return Probability(share, error, prior)
