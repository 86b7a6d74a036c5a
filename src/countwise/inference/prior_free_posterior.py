"""Ranges that need no prior, and a posterior with one for statements about many counts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from countwise.arrays import FloatArray, IntArray
from countwise.errors import InputError
from countwise.inference.combinations import Combination
from countwise.inference.draws import Draws
from countwise.inference.node_pairs import joint_law
from countwise.inference.posterior import Posterior
from countwise.inference.statement_probabilities import Probability, holds
from countwise.inference.statements import Linear, parse, parse_linear
from countwise.progress import Tell, silent
from countwise.sumproduct.families import EDGE
from countwise.sumproduct.measured_nodes import MeasuredTies
from countwise.sumproduct.prior_free_laws import FreeLaws
from countwise.sumproduct.priors import Prior
from countwise.sumproduct.summaries import Law, Summaries, check_interval
from countwise.sumproduct.tree import Solved, solve
from countwise.tables.hierarchy import Hierarchy

MOST_VALUES = 2e7  # in the windows of a tree, for the joint law of two of its nodes
MOST_PLACES = 2e7  # that a multiple of a count can be at


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PriorFreePosterior(Posterior):
    """As `Posterior`: one count, or two, without a prior; more of them by `joint`.

    Of two counts both are taken as 0 or more, and every other one as any whole number.
    """

    free: FreeLaws
    signed: MeasuredTies
    joint_belief: Prior
    make_joint: Callable[[Prior], Posterior]

    @property
    def hierarchy(self) -> Hierarchy:
        """The tree of counts."""
        return self.free.hierarchy

    @cached_property
    def joint(self) -> Posterior:
        """The posterior that joint draws and statements about many counts rest on."""
        return self.make_joint(self.joint_belief)

    @property
    def joint_prior(self) -> str:
        """Its prior."""
        return self.joint_belief.words()

    def _law(self, level: int, place: int) -> tuple[int, FloatArray]:
        return self.free.law(level, place)

    def summaries(
        self, level: int, *, probability: float = 0.95, interval: str = "highest"
    ) -> Summaries:
        """Mean, mode, deviation and interval of every node of a level."""
        check_interval(probability, interval)
        return self.free.summaries(level, probability, interval)

    def law(self, expression: str, *, rng: np.random.Generator | None = None) -> Law:
        """The law of a sum such as "A + B", without a prior where it is about one or two nodes."""
        linear = parse_linear(expression, self.hierarchy)
        if any(value.denominator > 1 for value in (*linear.terms.values(), linear.constant)):
            raise InputError(f"{expression!r} must have whole multiples to have a law.")
        found = self._linear(linear)
        return self.joint.law(expression, rng=rng) if found is None else found

    def probability(self, statement: str, *, rng: np.random.Generator | None = None) -> Probability:
        """The probability of a statement such as "A > B", without a prior about up to two nodes."""
        said = parse(statement, self.hierarchy)
        law = None if said.ranked else self._linear(said.linear)
        if law is None:
            return self.joint.probability(statement, rng=rng)
        share = float(law.chances[holds(said.relation, law.values, 0)].sum())
        return Probability(min(share, 1.0), prior=self.prior)

    def _linear(self, linear: Linear) -> Law | None:
        """The law of a sum of multiples, times what makes them whole; None of many nodes."""
        scale, nodes = linear.scale, list(linear.terms)
        multiples = [int(linear.terms[node] * scale) for node in nodes]
        constant = int(linear.constant * scale)
        found: tuple[int, FloatArray] | None = None
        if not nodes:
            found = 0, np.ones(1)
        elif len(nodes) == 1:
            found = self._multiple(nodes[0], multiples[0])
        elif len(nodes) == 2:
            found = self._of_two((nodes[0], nodes[1]), (multiples[0], multiples[1]))
        if found is None:
            return None
        chances = found[1] / found[1].sum()
        return Law(low=found[0] + constant, chances=chances, prior=self.prior)

    def _multiple(self, node: tuple[int, int], multiple: int) -> tuple[int, FloatArray] | None:
        low, chances = self._law(*node)
        if abs(multiple) * len(chances) > MOST_PLACES:
            return None
        spread = np.zeros(abs(multiple) * (len(chances) - 1) + 1)
        spread[:: abs(multiple)] = chances if multiple > 0 else chances[::-1]
        return min(multiple * low, multiple * (low + len(chances) - 1)), spread

    def _of_two(
        self, nodes: tuple[tuple[int, int], tuple[int, int]], multiples: tuple[int, int]
    ) -> tuple[int, FloatArray] | None:
        solved = self._solved
        joint = None if solved is None else joint_law(solved, *nodes)
        if joint is None or np.dot(np.abs(multiples), joint.chances.shape) > MOST_PLACES:
            return None
        possible = joint.of_zero_or_more()
        return None if possible is None else possible.combined(multiples)

    @cached_property
    def _solved(self) -> Solved | None:
        """Messages on the whole tree, where its windows are not too many values."""
        values = sum(
            float((high - low + 1.0).sum())
            for low, high in zip(self.signed.lows, self.signed.highs, strict=True)
        )
        if values > MOST_VALUES:
            return None
        try:
            return solve(self.signed, edge=EDGE)
        except InputError:
            return None

    def draws(self, count: int, *, rng: np.random.Generator) -> Draws:
        """Joint draws of all counts, by `joint`."""
        return self.joint.draws(count, rng=rng)

    def top(
        self, count: int = 10, *, parent: str = "total", rng: np.random.Generator | None = None
    ) -> list[Combination]:
        """The most probable combinations of a parent's children, by `joint`."""
        return self.joint.top(count, parent=parent, rng=rng)

    def joint_mode(self, *, tell: Tell = silent) -> tuple[IntArray, ...]:
        """The most probable combination of all counts, by `joint`."""
        return self.joint.joint_mode(tell=tell)
