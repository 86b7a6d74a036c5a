"""An answer in words: the verdict, what r is and is not, and what was spent."""

from typing import TYPE_CHECKING

import numpy as np

from countwise.privacy.epsilon import written
from countwise.verification.claims import HOLDS
from countwise.verification.rules import SUPPORTED

if TYPE_CHECKING:
    from countwise.verification.answer import Answer

LEVEL = 0.95
WIDE = 0.7  # without any answer the interval is 0.95 wide
MEANING = (
    "r is the probability that {event} in a random partition with 1/M of the persons{errors}. It "
    "is not the probability that the claim is true, and not a share of persons: in a part of the "
    "data estimates scatter √M times as widely as in the whole, so a claim that is true by a "
    "small margin has an r only a little above 1/2."
)
RANGES = (
    "r is the probability that {event} in a random partition with 1/M of the persons{errors}. It "
    "is not the probability that the whole data's value is in that range, and not a share of "
    "persons: in a part of the data estimates scatter √M times as widely as in the whole, so "
    "partitions spread over more ranges than the doubt about the whole does."
)
TWO_ENDS = (
    " This claim is not about one threshold: where it leaves less room than a partition's "
    "estimate scatters, it fails in most partitions even if it is true of the whole data. So it "
    "can be supported, and never contradicted."
)


def meaning(given: "Answer") -> str:
    """What r is, and is not."""
    name = given.outcomes[given.leading]
    event = "the claim holds" if name == HOLDS else f"the value is {name}"
    fitted = len(given.fitted) < len(given.outcomes)
    errors = (
        ", among partitions that can be fitted"
        if fitted
        else " (one that can not be fitted counts as failing)"
    )
    if len(given.fitted) > 2:
        return RANGES.format(event=event, errors=errors)
    text = MEANING.format(event=event, errors=errors)
    return text if given.one_sided else text + TWO_ENDS


def privacy(given: "Answer") -> str:
    """What was spent, in a sentence."""
    if given.rehearsal:
        return "A rehearsal on synthetic data: nothing was spent."
    return (
        f"ε = {written(given.epsilon)} was spent: adding, removing or changing one person's "
        f"rows changes the chance of any answer by a factor of at most "
        f"{np.exp(float(given.epsilon)):.4g}. Other answers from the same data add theirs."
    )


def sentences(given: "Answer") -> list[str]:
    """The answer in words."""
    r, name = given.r, given.outcomes[given.leading]
    what = "the claim holds" if name == HOLDS else f"the value is {name}"
    found = [
        _ruling(given, what),
        _estimate(given, what),
        f"The probability that r, that share, is above 1/2 is {in_words(r.above_half)}.",
    ]
    if given.error_rate is not None:
        errors = given.posterior.share([len(given.outcomes) - 1]).summary(LEVEL)
        found.append(
            f"With {LEVEL:.0%} probability {errors.lower:.0%} to {errors.upper:.0%} of "
            "partitions can not be fitted."
        )
    if given.one_sided:
        low, middle, high = (given.distance(each) for each in (r.lower, r.median, r.upper))
        found.append(
            f"On the scale of the whole data the estimate is about {middle:+.1f} standard "
            f"errors from the threshold, towards the claim ({low:+.1f} to {high:+.1f})."
        )
    return found


def _ruling(given: "Answer", what: str) -> str:
    if len(given.fitted) == 2:
        return f"The claim is {given.verdict}."
    if given.verdict == SUPPORTED:
        return f"Supported: in most partitions {what}."
    return "Not decided at this ε: no range is sure to have most of the partitions."


def _estimate(given: "Answer", what: str) -> str:
    r = given.r
    interval = f"with {LEVEL:.0%} probability in {r.lower:.0%} to {r.upper:.0%}"
    if r.upper - r.lower > WIDE:
        return (
            f"The answer says next to nothing about the share of partitions where {what}: "
            f"{interval}."
        )
    return f"Most likely {what} in {r.mode:.0%} of partitions; {interval}."


def probability(value: float) -> str:
    """A probability to four places; one next to 0 or 1 is never said to be 0 or 1."""
    if value > 0.9999:
        return "> 0.9999"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def in_words(value: float) -> str:
    """The same inside a sentence."""
    return probability(value).replace(">", "more than").replace("<", "less than")
