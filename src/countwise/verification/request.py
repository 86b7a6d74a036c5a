"""A request: everything that is decided before a confidential row is read.

Building one checks it against the schema. Whatever is refused is refused here, with a message
that can depend on the request and the schema only, because nothing else is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np

from countwise.arrays import FloatArray, frozen
from countwise.choices import one_of
from countwise.errors import RequestError
from countwise.noise.numbers import Number, exact
from countwise.verification import outcome_noise
from countwise.verification.arithmetic import bounds
from countwise.verification.border import stated_border
from countwise.verification.claims import Claim, parse_claim
from countwise.verification.design import DesignMatrix, design
from countwise.verification.fits import FAMILIES, Family, check_response
from countwise.verification.formula import Model, parse_model
from countwise.verification.grammar import Name
from countwise.verification.partitions import LARGEST, most_rows
from countwise.verification.quantities import Quantities
from countwise.verification.question import Question
from countwise.verification.rules import refuse_hopeless
from countwise.verification.schema import Schema

SMALLEST_EPSILON, LARGEST_EPSILON = Fraction(1, 1000), Fraction(100)
"""Within reach of the tables of noise; beyond, no verdict or no privacy."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A claim about a model, and the privacy it may cost."""

    schema: Schema
    model: Model
    design: DesignMatrix
    claim: Claim
    family: Family
    epsilon: Fraction
    partitions: int
    mechanism: str
    alpha: FloatArray
    border: float | None = None

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns of the data that are read."""
        return self.model.columns | {period.column for period in self.claim.periods}

    @property
    def most_rows(self) -> int:
        """How many rows a partition may have; one with more is an error."""
        schema = self.schema
        return most_rows(
            partitions=self.partitions, persons=schema.persons, rows=schema.rows_a_person
        )


def make_request(
    schema: Schema,
    question: Question,
    *,
    border: float | None = None,
    skewness: float | None = None,
) -> Request:
    """A question checked against a schema.

    Its `alpha` is the prior, one number for each outcome or one for all. What a verdict about the
    whole data relies on is a `border`, or a `skewness` (`countwise.verification.border`), else what
    the schema states. All three are used after the noise.
    """
    kind = cast(Family, one_of(question.family, FAMILIES, what="family"))
    spent, partitions = checked_epsilon(question.epsilon), question.partitions
    check_partitions(partitions, schema.persons)
    mechanism = one_of(question.mechanism, outcome_noise.MECHANISMS, what="mechanism")
    parsed = parse_model(question.model, schema)
    low, _ = bounds(parsed.response, schema, what="model")
    single = parsed.response.value if isinstance(parsed.response, Name) else None
    check_response(schema.columns[single] if single else None, low, family=kind)
    layout = design(parsed, schema)
    stated = parse_claim(question.claim, Quantities(model=parsed, design=layout, schema=schema))
    if mechanism == "binary" and stated.cuts:
        raise RequestError("the mechanism binary has two outcomes; a claim with cuts has more.")
    kinds = len(outcome_noise.outcomes(stated.outcomes, mechanism=mechanism))
    prior = checked_alpha(question.alpha, kinds)
    refuse_hopeless(partitions=partitions, epsilon=spent, alpha=prior)
    if border is None and skewness is None:
        skewness = schema.skewness
    return Request(
        schema=schema,
        model=parsed,
        design=layout,
        claim=stated,
        family=kind,
        epsilon=spent,
        partitions=partitions,
        mechanism=mechanism,
        alpha=prior,
        border=stated_border(border, skewness, persons=schema.persons, partitions=partitions),
    )


def checked_epsilon(epsilon: Number) -> Fraction:
    """An ε within reach of the noise tables."""
    spent = exact(epsilon)
    if not SMALLEST_EPSILON <= spent <= LARGEST_EPSILON:
        raise RequestError(f"epsilon must be from 0.001 to 100, got {float(spent):g}.")
    return spent


def check_partitions(partitions: int, persons: int | None) -> None:
    """M from 2 to 10,000, and at most half the persons where their number is public."""
    if not 2 <= partitions <= LARGEST:
        raise RequestError(f"partitions must be from 2 to {LARGEST:,}, got {partitions}.")
    if persons is not None and 2 * partitions > persons:
        raise RequestError(
            f"partitions must be at most half the {persons:,} persons of the schema, "
            f"got {partitions}. To fix, choose {persons // 2} or fewer."
        )


def checked_alpha(alpha: Sequence[float], kinds: int) -> FloatArray:
    """Dirichlet parameters, one for each outcome."""
    prior = np.full(kinds, alpha[0]) if len(alpha) == 1 else np.array(alpha, dtype=np.float64)
    if len(prior) != kinds or not np.all((prior >= 0.01) & (prior <= 1000)):
        raise RequestError(
            f"alpha must be one number or {kinds} (one for each outcome), from 0.01 to 1000."
        )
    return frozen(prior.astype(np.float64))
