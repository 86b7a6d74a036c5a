"""Claims that one estimator is never worse than another."""

import re
from dataclasses import dataclass
from fractions import Fraction

from countwise.choices import one_of
from countwise.errors import InputError
from countwise.noise.numbers import exact, written
from countwise.risk.closed import CLOSED

PATTERN = re.compile(r"\s*([\w-]+)\s*(?:<=|≤)\s*(?:([\d./]+)\s*\*\s*)?([\w-]+)\s*")


@dataclass(frozen=True, kw_only=True)
class EstimatorClaim:
    """risk(left) ≤ factor·risk(right) for every histogram and every ε."""

    left: str
    right: str
    factor: Fraction = Fraction(1)

    @property
    def pair(self) -> tuple[str, str]:
        """Left and right."""
        return self.left, self.right

    def __str__(self) -> str:
        times = "" if self.factor == 1 else f"{written(self.factor)}*"
        return f"{self.left} <= {times}{self.right}"


def parse_claim(text: str) -> EstimatorClaim:
    """A claim such as `resized <= identity` or `noisefirst <= 1.3*identity`."""
    match = PATTERN.fullmatch(text)
    if match is None:
        raise InputError(
            f"can not read the claim {text!r}. To fix, write it as 'resized <= identity' or "
            f"'noisefirst <= 1.3*identity', with two of {', '.join(CLOSED)}."
        )
    left, factor, right = match.groups()
    for name in (left, right):
        one_of(name, CLOSED, what="an estimator of a claim")
    return EstimatorClaim(
        left=left, right=right, factor=exact(factor or "1", what="the factor of the claim")
    )
