"""The grammar that models, filters and claims share: text to tokens, tokens to a tree.

A tree is data. Nothing here, and nothing that reads a tree, evaluates code.

    sum      = [-] product { (+ | -) product }
    product  = inter { (* | /) inter }
    inter    = power { : power }
    power    = [-] atom [ (^ | **) atom ]
    atom     = number | "text" | name { [label] } | name ( arguments ) { [label] } | ( sum )
    argument = sum | name = sum

A name with other characters than letters, digits, `_` and `.` is written between backticks.
"""

import re
from dataclasses import dataclass
from math import isfinite

from countwise.errors import RequestError

MAX_LENGTH, MAX_DEPTH = 4000, 32
MOST_MARKS = 250
"""Operators and picked levels of a text; a tree that leans to one side is as deep as it has."""
WORDS = frozenset(
    ("and", "or", "not", "in", "where", "within", "of", "over", "from", "to", "cut", "at", "inf")
)
TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)"
    r"|`(?P<quoted>[^`]+)`"
    r"|(?P<text>\"[^\"]*\"|'[^']*')"
    r"|(?P<mark>\*\*|==|!=|<=|>=|[-+*/:^()\[\],=<>~%]))"
)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A piece of the text; `kind` is number, name, quoted, text, mark, word or end."""

    kind: str
    text: str
    place: int


@dataclass(frozen=True)
class Number:
    """A constant."""

    value: float


@dataclass(frozen=True)
class Text:
    """A label between quotation marks."""

    value: str


@dataclass(frozen=True)
class Name:
    """A column, as far as the grammar knows."""

    value: str


@dataclass(frozen=True)
class Call:
    """A function with its arguments, some of them named."""

    name: str
    arguments: tuple["Node", ...]
    named: tuple[tuple[str, "Node"], ...] = ()


@dataclass(frozen=True)
class Index:
    """A level or a power picked out of a factor: C(sex)[Male], poly(age, 2)[2]."""

    base: "Node"
    label: str


@dataclass(frozen=True)
class Binary:
    """Two operands of one of + - * / : ^."""

    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Negative:
    """The opposite of a term."""

    inner: "Node"


@dataclass(frozen=True)
class Group:
    """What stands between parentheses."""

    inner: "Node"


Node = Number | Text | Name | Call | Index | Binary | Negative | Group


def tokens(text: str, *, what: str) -> list[Token]:
    """The tokens of a text, the last of kind `end`."""
    if len(text) > MAX_LENGTH:
        raise RequestError(f"the {what} must have at most {MAX_LENGTH} characters.")
    found: list[Token] = []
    text, place = text.rstrip(), 0
    while place < len(text):
        match = TOKEN.match(text, place)
        if match is None or match.lastgroup is None:
            odd = text[place:].lstrip()[:1]
            raise RequestError(
                f"{what}, character {place + 1}: {odd!r} has no meaning here. Write columns, "
                'numbers, "labels" and the marks + - * / : ^ ( ) [ ] , = < > only.'
            )
        kind, value = match.lastgroup, match.group(match.lastgroup)
        if kind == "name" and value in WORDS:
            kind = "word"
        found.append(Token(kind=kind, text=value, place=match.start(match.lastgroup) + 1))
        place = match.end()
    return [*found, Token(kind="end", text="the end", place=len(text) + 1)]


class Parser:
    """Reads a list of tokens from left to right; the methods are the rules of the grammar."""

    def __init__(self, text: str, *, what: str) -> None:
        self.what = what
        self.tokens = tokens(text, what=what)
        self.next = 0
        self.depth = 0
        marks = sum(each.kind == "mark" and each.text in "+-*/:[^**" for each in self.tokens)
        if marks > MOST_MARKS:
            raise RequestError(f"the {what} has more than {MOST_MARKS} operators.")

    @property
    def token(self) -> Token:
        """The token in front."""
        return self.tokens[self.next]

    def at(self, *texts: str) -> bool:
        """Whether one of these marks or words is in front."""
        return self.token.kind in ("mark", "word") and self.token.text in texts

    def take(self) -> Token:
        """The token in front, passed."""
        token = self.token
        self.next += token.kind != "end"
        return token

    def accept(self, *texts: str) -> str | None:
        """One of these marks or words if it is in front, passed; else None."""
        return self.take().text if self.at(*texts) else None

    def expect(self, *texts: str) -> str:
        """One of these marks or words, or a refusal."""
        found = self.accept(*texts)
        if found is None:
            raise self.refusal(" or ".join(repr(text) for text in texts))
        return found

    def refusal(self, wanted: str) -> RequestError:
        """What was wanted where the reader stands, and what stands there."""
        token = self.token
        got = token.text if token.kind == "end" else repr(token.text)
        return RequestError(f"{self.what}, character {token.place}: expected {wanted}, got {got}.")

    def end(self) -> None:
        """Nothing may follow."""
        if self.token.kind != "end":
            raise self.refusal("the end")

    def sum(self) -> Node:
        """Terms joined by + and -."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise RequestError(f"the {self.what} is nested deeper than {MAX_DEPTH} levels.")
        node = Negative(self.product()) if self.accept("-") else self.product()
        while mark := self.accept("+", "-"):
            node = Binary(mark, node, self.product())
        self.depth -= 1
        return node

    def product(self) -> Node:
        """Factors joined by * and /."""
        node = self.inter()
        while mark := self.accept("*", "/"):
            node = Binary(mark, node, self.inter())
        return node

    def inter(self) -> Node:
        """Factors joined by the colon of an interaction."""
        node = self.power()
        while self.accept(":"):
            node = Binary(":", node, self.power())
        return node

    def power(self) -> Node:
        """An atom, perhaps raised; a sign is allowed before a number."""
        if self.at("-") and self.tokens[self.next + 1].kind == "number":
            self.take()
            return Number(-self.number())
        node = self.atom()
        return Binary("^", node, self.atom()) if self.accept("^", "**") else node

    def atom(self) -> Node:
        """A number, label, column, call or group."""
        token = self.token
        if token.kind == "number":
            return Number(self.number())
        if token.kind == "text":
            return Text(self.take().text[1:-1])
        if self.accept("("):
            inner = self.sum()
            self.expect(")")
            return Group(inner)
        if token.kind not in ("name", "quoted"):
            raise self.refusal("a column, a number or '('")
        self.take()
        node: Node = Name(token.text)
        if token.kind == "name" and self.at("("):
            node = self.call(token.text)
        while self.accept("["):
            node = Index(node, self.label())
            self.expect("]")
        return node

    def call(self, name: str) -> Call:
        """The arguments of a function whose name was read."""
        self.expect("(")
        arguments: list[Node] = []
        named: list[tuple[str, Node]] = []
        while not self.at(")"):
            if arguments or named:
                self.expect(",")
            second = self.tokens[min(self.next + 1, len(self.tokens) - 1)]
            if self.token.kind in ("name", "quoted") and second.text == "=":
                key = self.take().text
                self.take()
                named.append((key, self.sum()))
            else:
                arguments.append(self.sum())
        self.expect(")")
        return Call(name, tuple(arguments), tuple(named))

    def label(self) -> str:
        """A level, in quotation marks or as it is: 2004, Male, Never-married."""
        if self.token.kind == "text":
            return self.take().text[1:-1]
        parts: list[str] = []
        while self.token.kind in ("name", "number", "quoted") or self.at("-", "/"):
            parts.append(self.take().text)
        if not parts:
            raise self.refusal('a level such as Male or "Never-married"')
        return "".join(parts)

    def number(self) -> float:
        """A finite number."""
        if self.token.kind != "number":
            raise self.refusal("a number")
        value = float(self.token.text)
        if not isfinite(value):
            raise self.refusal("a number of at most 1.7e308")
        self.take()
        return value

    def signed(self) -> float:
        """A number with an optional sign, or inf."""
        sign = -1.0 if self.accept("-") else 1.0
        return sign * (float("inf") if self.accept("inf") else self.number())
