"""Claims about a fitted model; each gives every partition one of K outcomes, the last an error.

    claim    = part { and part } | quantity cut at number, number, …
    part     = quantity < number | quantity > number | number < quantity < number   (also <=, >=)
             | quantity in [number, number] | quantity in (number, number)
             | quantity within number of number | quantity within number % of number
             | significant(quantity > number, level) | significant(…, level, partition)
             | significant(…, level, robust) | significant(…, level, clustered)
    quantity = a coefficient or linear combination of coefficients: x, 2*x - C(f)[b], a:C(f)[b]
             | predict(column = value, …) | trend(quantity over period from first to last)

`trend` is the slope of the least-squares line through the quantity's values in each period.
`significant(x > c, level)` holds where √M·(estimate - c)/standard error exceeds the two-sided
normal critical value: a partition's t-statistic is about 1/√M of the whole data's, so this asks
whether the whole data would be significant. With `partition` there is no √M: the partition must
be significant by itself. `robust` takes the standard error of type HC1, and `clustered` that
clustered by person (`robust_errors`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from math import inf, sqrt
from typing import cast

import numpy as np
from scipy.special import ndtri, stdtrit

from countwise.arrays import BoolArray, FloatArray, IntArray
from countwise.errors import RequestError
from countwise.verification.fits import Errors, Fits
from countwise.verification.grammar import Parser
from countwise.verification.quantities import Periods, Quantities, Quantity

RELATIONS = ("<", "<=", ">", ">=")
HOLDS, FAILS, ERROR = "holds", "fails", "error"
LARGEST_CUTS = 20  # each is an outcome, and noise is added to every one
ROBUST = ("robust", "clustered")

FitsOf = Callable[[Periods | None], Fits]


@dataclass(frozen=True, kw_only=True)
class Within:
    """A quantity lies in an interval."""

    quantity: Quantity
    low: float
    high: float
    low_open: bool
    high_open: bool

    def test(self, fits: FitsOf, partitions: int, scale: int) -> tuple[BoolArray, BoolArray]:  # noqa: ARG002
        """Where it holds, and where it could be tested."""
        values, fitted = self.statistic(fits, partitions)
        above = values > self.low if self.low_open else values >= self.low
        below = values < self.high if self.high_open else values <= self.high
        return above & below, fitted

    def statistic(self, fits: FitsOf, partitions: int) -> tuple[FloatArray, BoolArray]:
        """The quantity, and where it could be fitted."""
        return self.quantity.values(fits, partitions)

    def whole(self, statistic: float, partitions: int) -> float:  # noqa: ARG002
        """Where the whole data's statistic is among those of so many partitions."""
        return statistic

    @property
    def one_sided(self) -> bool:
        """Whether there is a single threshold."""
        return self.low == -inf or self.high == inf


@dataclass(frozen=True, kw_only=True)
class Significant:
    """A combination of coefficients is beyond a threshold by more than its uncertainty."""

    quantity: Quantity
    threshold: float
    above: bool
    level: float
    scaled: bool
    errors: Errors = "usual"

    def test(self, fits: FitsOf, partitions: int, scale: int) -> tuple[BoolArray, BoolArray]:
        """Where it holds, and where it could be tested; √M is that of `scale`."""
        statistic, fitted = self.statistic(fits, partitions)
        found = fits(None)
        if self.scaled:
            critical = np.full(partitions, -ndtri(self.level / 2) / sqrt(scale))
        else:
            critical = np.where(
                np.isinf(found.freedom),
                -ndtri(self.level / 2),
                stdtrit(np.minimum(found.freedom, 1e9), 1 - self.level / 2),
            )
        return np.asarray(statistic > critical), fitted

    def statistic(self, fits: FitsOf, partitions: int) -> tuple[FloatArray, BoolArray]:
        """The distance from the threshold in standard errors, and where it could be fitted."""
        values, fitted = self.quantity.values(fits, partitions)
        distance = values - self.threshold if self.above else self.threshold - values
        with np.errstate(all="ignore"):
            return distance / fits(None).error(self.quantity.contrast, self.errors), fitted

    def whole(self, statistic: float, partitions: int) -> float:
        """The whole data's is √M times as large as that of a typical partition."""
        return statistic / sqrt(partitions)

    @property
    def one_sided(self) -> bool:
        """The √M scaling makes the critical value a threshold on the scale of whole data."""
        return self.scaled


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Parts that must all hold, or a quantity cut into ranges; and the names of the outcomes."""

    text: str
    parts: tuple[Within | Significant, ...]
    outcomes: tuple[str, ...]
    cuts: tuple[float, ...] = ()

    @property
    def one_sided(self) -> bool:
        """Whether the share of partitions translates to a distance from one threshold."""
        return not self.cuts and len(self.parts) == 1 and self.parts[0].one_sided

    @property
    def periods(self) -> frozenset[Periods]:
        """The period columns its quantities need."""
        found = (part.quantity.periods for part in self.parts)
        return frozenset(each for each in found if each is not None)

    @property
    def robust(self) -> bool:
        """Whether any part needs standard errors that need the rows."""
        return any(isinstance(part, Significant) and part.errors != "usual" for part in self.parts)

    def judge(self, fits: FitsOf, partitions: int, *, scale: int) -> IntArray:
        """The outcome of every partition, each 1/scale of the data, as a place in `outcomes`."""
        error = len(self.outcomes) - 1
        if self.cuts:
            values, fitted = self.parts[0].quantity.values(fits, partitions)
            return np.where(fitted, np.searchsorted(self.cuts, values, side="right"), error)
        tests = [part.test(fits, partitions, scale) for part in self.parts]
        holds = np.logical_and.reduce([held for held, _ in tests])
        fitted = np.logical_and.reduce([fitted for _, fitted in tests])
        return np.where(fitted, np.where(holds, 0, 1), error).astype(np.int64)


def sides(claim: Claim, parts: FitsOf, whole: FitsOf, partitions: int) -> IntArray | None:
    """Of each part of a claim, how many partitions are above and below the whole's value, and all.

    With it in the threshold's place these are the partitions in which a claim at its threshold
    holds, and its opposite. None where the whole can not be fitted.
    """
    found = []
    for part in claim.parts:
        values, fitted = part.statistic(parts, partitions)
        value, known = part.statistic(whole, 1)
        if not known[0]:
            return None
        middle = part.whole(float(value[0]), partitions)
        above, below = values > middle, values < middle
        found.append([(fitted & above).sum(), (fitted & below).sum(), fitted.sum()])
    return np.array(found, dtype=np.int64)


def parse_claim(text: str, quantities: Quantities) -> Claim:
    """The claim a text makes about a model, or a refusal that knows text, model and schema."""
    if not text.strip():
        raise RequestError('the claim is empty. To fix, write one such as "education_years > 1".')
    parser = Parser(text, what="claim")
    first = _side(parser, quantities)
    if parser.accept("cut"):
        return _cut(parser, first, text)
    parts = [_relation(parser, first, quantities)]
    while parser.accept("and"):
        parts.append(_relation(parser, _side(parser, quantities), quantities))
    parser.end()
    return Claim(text=text.strip(), parts=tuple(parts), outcomes=(HOLDS, FAILS, ERROR))


Side = Quantity | Significant


def _side(parser: Parser, quantities: Quantities) -> Side:
    """One side of a comparison, or a whole significance claim."""
    if parser.token.text == "significant" and parser.tokens[parser.next + 1].text == "(":
        return _significant(parser, quantities)
    return quantities.parse(parser)


def _cut(parser: Parser, quantity: Side, text: str) -> Claim:
    parser.expect("at")
    cuts = [parser.signed()]
    while parser.accept(","):
        cuts.append(parser.signed())
    parser.end()
    if isinstance(quantity, Significant) or quantity.is_constant:
        raise RequestError("claim: only a coefficient, prediction or trend can be cut.")
    rising = all(a < b for a, b in pairwise(cuts))
    if not rising or len(cuts) > LARGEST_CUTS or inf in map(abs, cuts):
        raise RequestError(f"claim: cut at 1 to {LARGEST_CUTS} rising numbers.")
    low, shifted = quantity.constant, quantity.without_constant()
    ends = [f"{cut:g}" for cut in cuts]
    middle = [f"{a} to {b}" for a, b in pairwise(ends)]
    names = (f"below {ends[0]}", *middle, f"{ends[-1]} or more", ERROR)
    whole = Within(quantity=shifted, low=-inf, high=inf, low_open=False, high_open=False)
    points = tuple(cut - low for cut in cuts)
    return Claim(text=text.strip(), parts=(whole,), outcomes=names, cuts=points)


def _relation(parser: Parser, left: Side, quantities: Quantities) -> Within | Significant:
    if isinstance(left, Significant):
        return left
    if parser.at("in", "within"):
        low, high, low_open, high_open = _interval(parser)
        if left.is_constant:
            raise RequestError("claim: there is no coefficient in it.")
        return Within(
            quantity=left.without_constant(),
            low=low - left.constant,
            high=high - left.constant,
            low_open=low_open,
            high_open=high_open,
        )
    if parser.at("=", "==", "!="):
        raise RequestError(
            "claim: an estimate never equals a number exactly. To fix, write within 0.1 of it."
        )
    sign = parser.expect(*RELATIONS, "in", "within")
    middle = quantities.parse(parser)
    if not parser.at(*RELATIONS):
        return _compared(left, sign, middle)
    second = parser.expect(*RELATIONS)
    right = quantities.parse(parser)
    if second[0] != sign[0] or not (left.is_constant and right.is_constant):
        raise RequestError("claim: a double comparison reads number < quantity < number.")
    turned = (">" if sign[0] == "<" else "<") + sign[1:]
    one, two = _compared(middle, turned, left), _compared(middle, second, right)
    return _nonempty(
        Within(
            quantity=one.quantity,
            low=max(one.low, two.low),
            high=min(one.high, two.high),
            low_open=one.low_open if one.low > -inf else two.low_open,
            high_open=one.high_open if one.high < inf else two.high_open,
        )
    )


def _compared(left: Quantity, sign: str, right: Quantity) -> Within:
    """left < right, as an interval of the quantity left - right without its constant."""
    difference = left.minus(right)
    if difference.is_constant:
        raise RequestError("claim: there is no coefficient in it.")
    bound, above = -difference.constant, sign[0] == ">"
    quantity = difference.without_constant()
    if quantity.reversed:  # 1 < predict(…) is kept as predict(…) > 1
        quantity, bound, above = quantity.minus_itself(), -bound, not above
    return Within(
        quantity=quantity,
        low=bound if above else -inf,
        high=inf if above else bound,
        low_open=above and "=" not in sign,
        high_open=not above and "=" not in sign,
    )


def _interval(parser: Parser) -> tuple[float, float, bool, bool]:
    if parser.expect("in", "within") == "within":
        size = parser.signed()
        percent = parser.accept("%")
        parser.expect("of")
        centre = parser.signed()
        size = abs(centre) * size / 100 if percent else size
        if not 0 < size < inf or abs(centre) == inf:
            raise RequestError("claim: a tolerance must be positive and finite.")
        return centre - size, centre + size, False, False
    low_open = parser.expect("[", "(") == "("
    low = parser.signed()
    parser.expect(",")
    high = parser.signed()
    high_open = parser.expect("]", ")") == ")"
    if not low < high:
        raise RequestError(f"claim: the interval from {low:g} to {high:g} is empty.")
    if (low, high) == (-inf, inf):
        raise RequestError("claim: the interval is everything.")
    return low, high, low_open, high_open


def _nonempty(within: Within) -> Within:
    if not within.low < within.high:
        raise RequestError("claim: no number is in the interval.")
    return within


def _significant(parser: Parser, quantities: Quantities) -> Significant:
    parser.take()
    parser.expect("(")
    compared = _relation(parser, quantities.parse(parser), quantities)
    parser.expect(",")
    level = parser.number()
    if parser.accept("%"):
        level /= 100
    words = []
    while parser.accept(","):
        words.append(parser.take().text)
    errors = [word for word in words if word in ROBUST]
    if len(set(words)) < len(words) or set(words) - {"partition", *ROBUST} or len(errors) > 1:
        raise RequestError(
            "claim: after its level significant takes partition, and robust or clustered, each "
            "once."
        )
    parser.expect(")")
    if not isinstance(compared, Within) or not compared.one_sided or compared.quantity.special:
        raise RequestError(
            "claim: significant takes a coefficient beyond one number, as in "
            "significant(x > 0, 0.05)."
        )
    if not 0 < level < 1:
        raise RequestError(f"claim: a level of significance is between 0 and 1, got {level:g}.")
    above = compared.high == inf
    return Significant(
        quantity=compared.quantity,
        threshold=compared.low if above else compared.high,
        above=above,
        level=level,
        scaled="partition" not in words,
        errors=cast(Errors, errors[0]) if errors else "usual",
    )
