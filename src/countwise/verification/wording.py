"""An answer in words: the verdict, what r is and is not, and what was spent."""

from collections.abc import Mapping
from math import floor, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from countwise.noise.numbers import written
from countwise.verification.border import SYMMETRIC, rehearsed_border
from countwise.verification.claims import HOLDS
from countwise.verification.rules import CONTRADICTED, MOSTLY_FAILS, MOSTLY_HOLDS, SUPPORTED

if TYPE_CHECKING:
    from countwise.verification.answer import Answer
    from countwise.verification.planner import Setting

LEVEL = 0.95  # probability of every interval that is printed
EVEN = 0.48  # a share this near to one half is called half
WIDE = 0.7  # without any answer the interval is 0.95 wide
MEANING = (
    "r is the probability that {event} in a random partition with 1/M of the persons{errors}. It "
    "is not the probability that the claim is true, and not a share of persons: in a part of the "
    "data estimates scatter √M times as widely as in the whole, so a claim that is true by a "
    "small margin has an r near 1/2; and below 1/2 where a few rows weigh so much that most "
    "partitions miss them."
)
RANGES = (
    "r is the probability that {event} in a random partition with 1/M of the persons{errors}. It "
    "is not the probability that the whole data's value is in that range, and not a share of "
    "persons: in a part of the data estimates scatter √M times as widely as in the whole, so "
    "partitions spread over more ranges than the doubt about the whole does."
)
EXAMPLES = "a normal law has 0, an exponential one 2, a log-normal one with σ = 1 has 6.2"
REMEDY = "A rehearsal on synthetic rows shows what to state: countwise verify plan --rehearse."
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
        *_reliance(given),
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
            "If the estimates of partitions scatter evenly about that of the whole data, it is "
            f"about {middle:+.1f} of its standard errors from the threshold, towards the claim "
            f"({low:+.1f} to {high:+.1f}); skewness moves this."
        )
    return found


def _ruling(given: "Answer", what: str) -> str:
    verdict = given.verdict
    if verdict == MOSTLY_HOLDS:
        return f"In most partitions {what}. Whether that supports it for the whole data is open."
    if verdict == MOSTLY_FAILS:
        return (
            "The claim is not supported: it fails in most partitions. Whether that contradicts it "
            "for the whole data is open."
        )
    if len(given.fitted) == 2:
        return f"The claim is {verdict}."
    if verdict == SUPPORTED:
        return f"Supported: in most partitions {what}."
    return "Not decided at this ε: no range is sure to have most of the partitions."


def _reliance(given: "Answer") -> list[str]:
    """What a verdict on the whole data takes for granted, or would have to."""
    verdict, border = given.verdict, given.border
    if verdict in (SUPPORTED, CONTRADICTED) and border is not None:
        if border == SYMMETRIC:
            return ["This takes for granted that the estimates of partitions are symmetric."]
        return [
            "This takes for granted that a claim just at its threshold holds in "
            f"{border:.0%} to {1 - border:.0%} of partitions."
        ]
    if given.needed_border is None:
        return []
    word = SUPPORTED if verdict == MOSTLY_HOLDS else CONTRADICTED
    return [
        f"It would be {word} if a claim just at its threshold were known to hold in at least "
        f"{given.needed_border:.1%} and at most {1 - given.needed_border:.1%} of partitions; "
        f"{_stated(border)}. {_allowed(given)}"
    ]


def _stated(border: float | None) -> str:
    if border is None:
        return "nothing is stated about that"
    return f"what is stated is {border:.1%} to {1 - border:.1%}"


def _allowed(given: "Answer") -> str:
    """The same as a skewness, and what to do."""
    skewness, persons = given.needed_skewness, given.persons
    if skewness is None or persons is None:
        return REMEDY
    return (
        f"With about {persons / given.partitions:.0f} persons in a partition that is so where what "
        f"single persons add to the estimate has a skewness of at most {skewness:.2g} "
        f"({EXAMPLES}). With a larger one the partitions are too small for a verdict. {REMEDY}"
    )


def _estimate(given: "Answer", what: str) -> str:
    r = given.r
    interval = f"with {LEVEL:.0%} probability in {r.lower:.0%} to {r.upper:.0%}"
    if r.upper - r.lower > WIDE:
        return (
            f"The answer says next to nothing about the share of partitions where {what}: "
            f"{interval}."
        )
    return f"Most likely {what} in {r.mode:.0%} of partitions; {interval}."


def border_words(
    borders: Mapping[int, float | None], *, skewness: float | None, persons: int | None
) -> list[str]:
    """What the planner says about borders, for each number of partitions M."""
    if None in borders.values():
        return [
            "The chances are those of estimates that scatter evenly about the whole data's. "
            "Nothing is stated about that, so an answer will say in how many partitions the claim "
            "holds, and neither that it is supported nor that it is contradicted. To fix, state "
            f"--skewness or --border, or 0.5 as the border of symmetric estimates. {REMEDY}"
        ]
    found = []
    for partitions, border in borders.items():
        if border is None or border == SYMMETRIC:
            continue
        text = (
            f"M = {partitions}: verdicts reckon with a claim at its threshold holding in "
            f"{border:.1%} to {1 - border:.1%} of partitions, as if the estimate were up to "
            f"{-sqrt(partitions) * float(ndtri(border)):.1f} standard errors nearer to it."
        )
        if skewness and persons and skewness**2 * partitions > persons:
            most = floor(persons / skewness**2)
            text += (
                f" Its partitions of about {persons / partitions:.0f} persons are too small for a "
                f"skewness of {skewness:g}: "
                + (f"choose M = {most} or less." if most >= 2 else "no M is small enough.")
            )
        found.append(text)
    return found


def lean_words(lean: float | None, setting: "Setting") -> str:
    """What a rehearsal shows of a claim at its threshold."""
    if lean is None:
        return "All synthetic rows together can not be fitted, so no border follows from them."
    text = (
        f"At the threshold itself the claim, or its opposite, holds in as little as {lean:.0%} of "
        f"such partitions{'' if lean > EVEN else ', not in half'}. "
    )
    border = rehearsed_border(lean)
    if border is None:
        return text + (
            "The partitions are too small: no verdict on the whole data is safe. To fix, choose "
            "fewer."
        )
    used = setting.border
    rest = "" if used == border else f" The chances above are those of --border {used:g}."
    return text + (
        f"A verdict may rely on --border {floor(100 * border) / 100:g}, twice as far from one half."
        f"{rest}"
    )


def probability(value: float) -> str:
    """A probability to four places; one next to 0 or 1 is never said to be 0 or 1."""
    if value > 0.9999:
        return "> 0.9999"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def in_words(value: float) -> str:
    """The same inside a sentence."""
    return probability(value).replace(">", "more than").replace("<", "less than")
