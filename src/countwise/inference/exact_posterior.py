"""A posterior that is known exactly, from messages on a tree."""

from dataclasses import dataclass, replace

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.adjusted_mode import tree_mode
from countwise.inference.combinations import Combination, most_probable
from countwise.inference.draws import Draws, draw
from countwise.inference.joint_mode import joint_mode
from countwise.inference.linear import linear_law
from countwise.inference.node_names import find
from countwise.inference.posterior import Posterior
from countwise.inference.statement_probabilities import (
    Probability,
    estimate,
    evaluated,
    holds,
    judged,
)
from countwise.inference.statements import parse, parse_linear
from countwise.progress import Tell, silent
from countwise.sumproduct.summaries import Law, Summaries, summarise_all
from countwise.sumproduct.tree import Solved
from countwise.tables.hierarchy import Hierarchy

DRAWS = 20_000  # for what has to be estimated


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ExactPosterior(Posterior):
    """As `Posterior`, from solved messages; only statements across families need draws."""

    solved: Solved

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree of counts."""
        return self.solved.hierarchy

    def _law(self, level: int, place: int) -> tuple[int, FloatArray]:
        if level == 0:
            return self.solved.root.one(0)
        parent = self.hierarchy.parent(level, place)
        family = self.solved.family(level - 1, parent, parent + 1)
        return family.marginals.one(place - self.hierarchy.children(level - 1, parent).start)

    def summaries(
        self, level: int, *, probability: float = 0.95, interval: str = "highest"
    ) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        laws = self.solved.marginals(level)
        return summarise_all(laws, level=probability, interval=interval)

    def draws(self, count: int, *, rng: np.random.Generator) -> Draws:
        """Joint draws of all counts; in every draw, children add up to their parents."""
        return draw(self.solved, count, rng=rng)

    def law(self, expression: str, *, rng: np.random.Generator | None = None) -> Law:
        """The law of a sum such as "A + B - 2*C", exact for siblings and for two nodes."""
        linear = parse_linear(expression, self.hierarchy)
        if any(value.denominator > 1 for value in (*linear.terms.values(), linear.constant)):
            raise InputError(f"{expression!r} must have whole multiples to have a law.")
        found = linear_law(self.solved, linear)
        if found is not None:
            return replace(found[0], prior=self.prior)
        values = evaluated(linear, self._needed(rng, expression, linear.deepest))
        chances = np.bincount(values - values.min()) / len(values)
        return Law(
            low=int(values.min()),
            chances=chances,
            error=0.5 / np.sqrt(len(values)),
            prior=self.prior,
        )

    def probability(self, statement: str, *, rng: np.random.Generator | None = None) -> Probability:
        """The probability of a statement such as "A > B": exact where the kernel allows."""
        said = parse(statement, self.hierarchy)
        found = None if said.ranked else linear_law(self.solved, said.linear)
        if found is not None:
            law = found[0]
            share = float(law.chances[holds(said.relation, law.values, 0)].sum())
            return Probability(share, prior=self.prior)
        drawn = self._needed(rng, statement, said.deepest)
        return estimate(judged(said, drawn), DRAWS, prior=self.prior)

    def _needed(self, rng: np.random.Generator | None, what: str, deepest: int) -> Draws:
        if rng is None:
            raise InputError(
                f"{what!r} can not be computed exactly. To fix, estimate it from draws: give "
                "rng=numpy.random.default_rng()."
            )
        return draw(self.solved, DRAWS, deepest=deepest, rng=rng)

    def top(
        self, count: int = 10, *, parent: str = "total", rng: np.random.Generator | None = None
    ) -> list[Combination]:
        """The most probable combinations of the true counts of a parent's children."""
        del rng
        level, place = find(self.hierarchy, parent)
        return most_probable(self.solved, level, place, count)

    def joint_mode(self, *, tell: Tell = silent) -> tuple[IntArray, ...]:
        """The most probable combination of all counts, level by level.

        Exact from published noisy counts, and from adjusted counts where the children of every
        parent have few combinations; elsewhere the best that a search finds.
        """
        if self.solved.ties.additive:
            return joint_mode(self.solved)
        return tree_mode(self.solved, tell=tell)
