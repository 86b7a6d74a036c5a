"""Statements about counts: "A > B", "A + B >= 100", "A / total < 0.5", "rank(A) <= 3".

    statement  = sum [ "/" term ] relation sum
    sum        = [ "-" ] term { ("+" | "-") term }
    term       = [ number "*" ] node | number
    relation   = ">" | ">=" | "<" | "<=" | "==" | "!="

A node is a path such as North/A, or a label that occurs once, in quotes if it has spaces or
signs. "A / B > c", with spaces around the stroke, means A > c·B. rank(A) counts from 1, the
largest of A and its siblings; equal counts share the better rank.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Literal

from countwise.errors import InputError
from countwise.inference.node_names import find
from countwise.tables.hierarchy import Hierarchy

Relation = Literal[">", ">=", "<", "<=", "==", "!="]
TOKEN = re.compile(
    r"""\s*(?:(?P<relation>>=|<=|==|!=|>|<)|(?P<quoted>"[^"]*"|'[^']*')"""
    r"""|(?P<sign>[+\-*()]|/(?=\s|$))|(?P<word>[^\s+\-*<>=!()'"]+))"""
)
LARGEST, MOST = 10**17, 10**6  # of constants, and of multiples of counts
NUMBER = re.compile(r"\d+(\.\d*)?([eE]\d+)?|\.\d+")


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Σ coefficient·count over nodes (level, position), plus a constant."""

    terms: dict[tuple[int, int], Fraction]
    constant: Fraction

    @property
    def scale(self) -> int:
        """The smallest number that makes all others whole."""
        return lcm(*(value.denominator for value in (*self.terms.values(), self.constant)))

    @property
    def deepest(self) -> int:
        """The deepest level of a node."""
        return max((level for level, _ in self.terms), default=0)

    def minus(self, other: "Linear", factor: Fraction = Fraction(1)) -> "Linear":
        """This minus factor times the other."""
        terms = dict(self.terms)
        for node, value in other.terms.items():
            terms[node] = terms.get(node, Fraction(0)) - factor * value
        kept = {node: value for node, value in terms.items() if value}
        return Linear(terms=kept, constant=self.constant - factor * other.constant)


@dataclass(frozen=True, kw_only=True)
class Statement:
    """`linear` relation 0, or the rank of a node relation a number."""

    relation: Relation
    linear: Linear
    ranked: tuple[int, int] | None = None

    @property
    def deepest(self) -> int:
        """The deepest level of a node that it names."""
        return self.linear.deepest if self.ranked is None else self.ranked[0]


def parse(text: str, hierarchy: Hierarchy) -> Statement:
    """The statement in a text, its nodes found in a hierarchy.

    >>> import polars as pl
    >>> from countwise.tables.hierarchy import build
    >>> hierarchy, _ = build(pl.DataFrame({"region": ["North", "South"]}))
    >>> found = parse("North > South", hierarchy)
    >>> found.relation, [str(value) for value in found.linear.terms.values()]
    ('>', ['1', '-1'])
    """
    reader = _Reader(text, hierarchy)
    return reader.fitting(reader.statement())


def parse_linear(text: str, hierarchy: Hierarchy) -> Linear:
    """A sum of counts, such as "A + B - 2*C"."""
    reader = _Reader(text, hierarchy)
    found = reader.sum()
    reader.end()
    return reader.fitting(Statement(relation="==", linear=found)).linear


class _Reader:
    """A text read token by token."""

    def __init__(self, text: str, hierarchy: Hierarchy) -> None:
        self.text, self.hierarchy, self.place = text, hierarchy, 0
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                raise self.wrong(f"{text[at:].strip()[0]!r} is not understood")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind)))
            at = match.end()

    def wrong(self, what: str) -> InputError:
        return InputError(
            f"statement {self.text!r}: {what}. Statements read like 'A > B', 'A + B >= 100', "
            "'A / total < 0.5' or 'rank(A) == 1'; a name with spaces or signs goes in quotes."
        )

    def fitting(self, said: Statement) -> Statement:
        """The statement if its numbers, made whole, leave room for counts in 64 bits."""
        scale = said.linear.scale
        largest = max((abs(value) for value in said.linear.terms.values()), default=Fraction(0))
        if abs(said.linear.constant) * scale > LARGEST or largest * scale > MOST:
            raise self.wrong("a number in it is too large, or has too many digits, to compare")
        return said

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.place] if self.place < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.place += 1
        return token

    def end(self) -> None:
        if self.peek()[0] != "end":
            raise self.wrong(f"{self.peek()[1]!r} is not expected there")

    def statement(self) -> Statement:
        if self.peek() == ("word", "rank") and self.tokens[1:2] == [("sign", "(")]:
            return self.rank()
        left = self.sum()
        below = None
        if self.peek() == ("sign", "/"):
            self.take()
            below = self.term()
        kind, relation = self.take()
        if kind != "relation":
            raise self.wrong("a relation such as > or >= is missing")
        right = self.sum()
        self.end()
        if below is None:
            return Statement(relation=relation, linear=left.minus(right))  # type: ignore[arg-type]
        if right.terms:
            raise self.wrong("a ratio is compared with a number")
        difference = left.minus(below, right.constant)
        return Statement(relation=relation, linear=difference)  # type: ignore[arg-type]

    def rank(self) -> Statement:
        self.place = 2
        node = self.node()
        if self.take() != ("sign", ")"):
            raise self.wrong("rank( ) holds one node")
        kind, relation = self.take()
        number = self.sum()
        self.end()
        if kind != "relation" or number.terms:
            raise self.wrong("a rank is compared with a number")
        linear = Linear(terms={}, constant=number.constant)
        return Statement(relation=relation, linear=linear, ranked=node)  # type: ignore[arg-type]

    def sum(self) -> Linear:
        total = Linear(terms={}, constant=Fraction(0))
        sign = Fraction(1)
        if self.peek() == ("sign", "-"):
            self.take()
            sign = Fraction(-1)
        total = total.minus(self.term(), -sign)
        while self.peek() in (("sign", "+"), ("sign", "-")):
            sign = Fraction(1) if self.take()[1] == "+" else Fraction(-1)
            total = total.minus(self.term(), -sign)
        return total

    def term(self) -> Linear:
        kind, text = self.peek()
        if kind == "word" and NUMBER.fullmatch(text):
            self.take()
            factor = Fraction(text)
            if self.peek() != ("sign", "*"):
                return Linear(terms={}, constant=factor)
            self.take()
            return Linear(terms={self.node(): factor}, constant=Fraction(0))
        return Linear(terms={self.node(): Fraction(1)}, constant=Fraction(0))

    def node(self) -> tuple[int, int]:
        kind, text = self.take()
        if kind == "quoted":
            return find(self.hierarchy, text[1:-1])
        if kind != "word":
            raise self.wrong(f"a node is expected, not {text or 'the end'!r}")
        return find(self.hierarchy, text)
