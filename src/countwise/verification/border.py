"""The border of a verdict: in how many partitions a claim holds that is just at its threshold.

If the whole data's estimate is exactly at the threshold, half of the partitions fall on either
side only where their estimates are symmetric about it. One row that weighs as much as all others
together lifts one partition of M and the whole, and leaves M - 1 below. So a verdict about the
whole data needs a bound on that, from outside the answer: a least share b, such that a claim at its
threshold holds in a share between b and 1 - b of partitions. Three ways to one:

* a largest skewness γ of what single persons add to the estimate. The estimate of a partition of
  n/M persons then has a skewness of s = γ·√(M/n), and `by_skewness` gives the share of the most
  lopsided law with it, that of one value on either side: b = ½·(1 - s/√(s² + 4)).
  It knows nothing of ties: where few persons count and partitions' estimates are often equal, as
  with rare events in two groups of one size, rehearse;
* a rehearsal on synthetic rows (`planner.synthetic_lean`), which sees ties and bias as well;
* 1/2, for estimates known to be symmetric.

Where nothing is stated there is no border, and no verdict about the whole data. It can not be
otherwise: adding or changing one person, who may weigh that much, makes a false claim true and
changes the chance of any answer by a factor of e^ε at most. A rule that is wrong in at most 5% of
answers for *every* data set says "contradicted" in at most 5%·e^ε of answers for any.

(A smooth law's share is Φ(-s/6) to first order (Cornish & Fisher 1938), nearer to one half, and
that is no bound: Poisson numbers of equal costs go down to about ½ - s/4, as the two-point law
does, and one cost among all persons to 1/M, where s = √M.)
"""

from math import sqrt

from countwise.errors import RequestError

SYMMETRIC = 0.5  # where estimates fall on either side of the truth alike


def by_skewness(skewness: float, *, persons: int, partitions: int) -> float:
    """The border where what a person adds to the estimate has at most this skewness."""
    s = skewness * sqrt(partitions / persons)
    return SYMMETRIC * (1 - s / sqrt(s * s + 4))


def skewness_of(border: float, *, persons: int, partitions: int) -> float:
    """The largest skewness a border allows: that of the two-point law, of a person's share."""
    return (1 - 2 * border) / sqrt(border * (1 - border)) * sqrt(persons / partitions)


def rehearsed_border(lean: float | None) -> float | None:
    """A border twice as far from one half as the lean of partitions of synthetic rows.

    Data can be more skewed than rows made to be like them: the heaviest tails differ most between
    two samples of one law. None where nothing above 0 is left.
    """
    border = None if lean is None else 2 * lean - SYMMETRIC
    return None if border is None or border <= 0 else min(border, SYMMETRIC)


def stated_border(
    border: float | None, skewness: float | None, *, persons: int | None, partitions: int
) -> float | None:
    """The border a request or schema states, if it does."""
    if border is not None:
        if skewness is not None:
            raise RequestError("state a border or a skewness, not both.")
        return checked_border(border)
    if skewness is None:
        return None
    if not 0 <= skewness <= 1e6:
        raise RequestError(f"skewness must be from 0 to 1e6, got {skewness:g}.")
    if persons is None:
        raise RequestError(
            "what a skewness does depends on the persons of a partition, and the schema does not "
            "say how many there are. To fix, state count in [person], or a border."
        )
    return by_skewness(skewness, persons=persons, partitions=partitions)


def checked_border(border: float) -> float:
    """A share above 0 and up to one half."""
    if not 0 < border <= SYMMETRIC:
        raise RequestError(
            f"a border is the least share of partitions in which a claim at its threshold holds, "
            f"above 0 and at most 0.5; got {border:g}."
        )
    return border
