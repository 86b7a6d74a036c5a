"""A statistical audit of the noise samplers, on the machine where they will be used.

A sampler passes at a scale when its draws fit the exact law and clearly do not fit laws of 0.9
and 1.1 times that scale: the second half shows that the test could have failed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.special import chdtrc

from countwise.arrays import IntArray
from countwise.noise.laws import IntegerLaw

SCALES = tuple(Fraction(text) for text in ("1/2", "1", "3/2", "7/3", "3", "10"))
WRONG = (Fraction(9, 10), Fraction(11, 10))  # scales that a mistake of a tenth would have
ACCEPT, REJECT = 1e-6, 1e-12
"""A right law is refused once in a million; a wrong one has to be beyond all doubt."""

Sampler = Callable[[IntegerLaw, int], IntArray]


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """p-values against the true law and two wrong ones, and whether they are as they should be."""

    law: IntegerLaw
    p_true: float
    p_wrong: tuple[float, ...]

    @property
    def passed(self) -> bool:
        """The true law fits and the wrong ones do not."""
        return self.p_true > ACCEPT and max(self.p_wrong) < REJECT


def p_value(law: IntegerLaw, draws: IntArray) -> float:
    """Chi-square test of draws against a law, in cells with at least 25 expected draws."""
    least = 25 / len(draws)
    low, high = int(law.isf(1 - least)), int(law.isf(least))
    edges = np.arange(low, high + 1, max((high - low) // 400, 1))
    cdf = np.concatenate([[0.0], law.cdf(edges), [1.0]])
    expected = np.diff(cdf) * len(draws)
    observed = np.bincount(np.searchsorted(edges, draws), minlength=len(expected))
    keep = expected > 0
    statistic = float(((observed[keep] - expected[keep]) ** 2 / expected[keep]).sum())
    return float(chdtrc(keep.sum() - 1, statistic))


def audit(
    kinds: tuple[type[IntegerLaw], ...], *, sampler: Sampler, draws: int
) -> Iterator[AuditResult]:
    """A verdict for each kind of law at each scale."""
    for kind in kinds:
        for scale in SCALES:
            law = kind(scale=scale)
            sample = sampler(law, draws)
            yield AuditResult(
                law=law,
                p_true=p_value(law, sample),
                p_wrong=tuple(p_value(kind(scale=scale * wrong), sample) for wrong in WRONG),
            )
