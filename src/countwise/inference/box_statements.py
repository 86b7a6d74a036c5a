"""Statements about sums of counts: "race=Asian > race=Black", "sex=F > 2 * race=Asian + 10".

    statement  = side [ " / " term ] relation side
    side       = [ "-" ] term { (" + " | " - ") term }
    term       = number | [ number "*" ] sum
    relation   = ">" | ">=" | "<" | "<="

Sums are named as in `box_names`, and signs stand between spaces, because labels have signs too:
65+, 10-19. "A / B > c" means A > c·B.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import gcd

from countwise.errors import InputError
from countwise.inference.box_names import NamedBox, find_box
from countwise.tables.workload import Workload

QUOTED = r'"[^"]*"'
RELATION = re.compile(rf"({QUOTED})|(?<=\s)(>=|<=|==|!=|>|<)(?=\s)")
SIGN = re.compile(rf"({QUOTED})|(?:^|(?<=\s))([+-])(?=\s)|(?:^)(-)(?=\S)")
RATIO = re.compile(rf"({QUOTED})|(?<=\s)(/)(?=\s)")
NUMBER = re.compile(r"\d+(\.\d*)?([eE]\d+)?|\.\d+")
MULTIPLE = re.compile(rf"({NUMBER.pattern})\s*\*\s*(?=[^\s|,])(.+)")
LARGEST = 10**12  # beyond, a number is a slip of the pen


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxTerm:
    """A sum of counts times a whole number."""

    multiple: int
    named: NamedBox


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxSum:
    """Sums of counts times whole numbers, plus a whole number."""

    terms: tuple[BoxTerm, ...]
    constant: int


@dataclass(frozen=True, kw_only=True, eq=False)
class BoxStatement:
    """That a sum is above a number it can not be, or, if not `above`, below it."""

    sum: BoxSum
    cut: float
    above: bool


Side = tuple[list[tuple[Fraction, NamedBox]], Fraction]


def parse_statement(text: str, workload: Workload) -> BoxStatement:
    """The statement in a text."""
    parts = _divided(RELATION, text)
    if len(parts) != 3:
        raise _wrong(text, "one relation such as > or >= is needed, between spaces")
    left, relation, right = parts
    if relation in ("==", "!="):
        raise _wrong(text, f"{relation} has no probability under a normal law")
    terms, constant = _difference(text, left, right, workload)
    if not terms:
        raise _wrong(text, "it names no counts")
    numbers = [*(multiple for multiple, _ in terms), constant]
    scale = 1
    for each in numbers:
        scale = scale * each.denominator // gcd(scale, each.denominator)
    if max(abs(each * scale) for each in numbers) > LARGEST:
        raise _wrong(text, "a number in it is too large, or has too many digits")
    whole = tuple(BoxTerm(multiple=int(each * scale), named=named) for each, named in terms)
    found = BoxSum(terms=whole, constant=int(constant * scale))
    strict, above = relation in (">", "<="), relation.startswith(">")
    return BoxStatement(sum=found, cut=_cut(found, strict=strict), above=above)


def _cut(asked: BoxSum, *, strict: bool) -> float:
    """The middle between the values of a sum that are above 0, or 0 if not strict, and the others.

    Its values are the constant plus multiples of what divides all factors.
    """
    step = reduce(gcd, (abs(each.multiple) for each in asked.terms), 0)
    least = (asked.constant - strict) % step + strict
    return least - step / 2


def _difference(text: str, left: str, right: str, workload: Workload) -> Side:
    """The left side minus the right one; of a ratio A / B > c, A minus c·B."""
    ratio = _divided(RATIO, left)
    other, number = _side(text, right, workload)
    if len(ratio) == 1:
        terms, constant = _side(text, left, workload)
        return [*terms, *((-each, named) for each, named in other)], constant - number
    if other or len(ratio) != 3:
        raise _wrong(text, "a ratio of two sums is compared with a number")
    terms, constant = _side(text, ratio[0], workload)
    below, no_sum = _side(text, ratio[2], workload)
    if not below:
        raise _wrong(text, "a ratio is divided by a sum of counts, not by a number")
    named = [(-number * each, name) for each, name in below if number]
    return [*terms, *named], constant - number * no_sum


def _side(text: str, side: str, workload: Workload) -> Side:
    """The terms and the number of one side."""
    parts, terms, constant = _divided(SIGN, side), list[tuple[Fraction, NamedBox]](), Fraction(0)
    if parts[0].strip():
        parts = ["+", *parts]
    elif len(parts) > 1:
        parts = parts[1:]
    if len(parts) < 2 or any(not each.strip() for each in parts):
        raise _wrong(text, "a sum of counts or a number is missing")
    for sign, term in zip(parts[::2], parts[1::2], strict=True):
        factor, name = Fraction(1 if sign == "+" else -1), term.strip()
        if NUMBER.fullmatch(name):
            constant += factor * Fraction(name)
            continue
        multiple = MULTIPLE.fullmatch(name)
        if multiple:
            factor, name = factor * Fraction(multiple[1]), multiple[4]
        if factor:
            terms.append((factor, find_box(workload, name)))
    return terms, constant


def _divided(sign: re.Pattern[str], text: str) -> list[str]:
    """A text cut at signs that are not in quotes: parts and signs in turn."""
    parts = [""]
    at = 0
    for found in sign.finditer(text):
        if found[1] is not None:
            continue
        parts[-1] += text[at : found.start()]
        parts += [next(each for each in found.groups()[1:] if each), ""]
        at = found.end()
    parts[-1] += text[at:]
    return parts


def _wrong(text: str, what: str) -> InputError:
    return InputError(
        f"statement {text!r}: {what}. Statements read like 'sex=F > sex=M', "
        "'sex=F, age=65+ > 2 * sex=M + 100' or 'sex=F / total >= 0.5', with spaces around signs."
    )
