"""The parts of a text as data: for pages, for workbooks, and for whoever shows them otherwise."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

Line = tuple[bool, list[str]]
"""Cells side by side, and whether they are a heading."""


@dataclass(frozen=True)
class Span:
    """A piece of text, and how it is set: plain, as `code`, `strong`, or with `powers` raised."""

    text: str
    style: str = ""


Words = tuple[Span, ...]


def words(*parts: str | Span) -> Words:
    """Pieces of text one after another, those without a style plain."""
    return tuple(Span(each) if isinstance(each, str) else each for each in parts)


def code(text: str) -> Span:
    """What a program knows by this name."""
    return Span(text, "code")


def strong(text: str) -> Span:
    """What must not be passed over."""
    return Span(text, "strong")


def plain(spans: Words) -> str:
    """The text alone."""
    return "".join(each.text for each in spans)


class TextBlock(Protocol):
    """One part; `kind` says which, to those who set it."""

    kind: ClassVar[str]

    def lines(self) -> Iterator[Line]:
        """As lines of plain cells."""
        ...


@dataclass(frozen=True)
class Heading:
    """The title of a text at level 1, or of a part of it at level 2."""

    kind: ClassVar[str] = "heading"
    text: str
    level: int = 2

    def lines(self) -> Iterator[Line]:
        """One line."""
        yield True, [self.text]


@dataclass(frozen=True)
class Paragraph:
    """Sentences; `role` is `lead` where the text begins and `footer` where it ends."""

    kind: ClassVar[str] = "paragraph"
    words: Words
    role: str = ""

    def lines(self) -> Iterator[Line]:
        """One line."""
        yield False, [plain(self.words)]


@dataclass(frozen=True)
class FactList:
    """What is the case, by its name."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]

    def lines(self) -> Iterator[Line]:
        """A line a fact."""
        for pair in self.pairs:
            yield False, list(pair)


@dataclass(frozen=True)
class Figures:
    """A table with a name: the first column heads the rows, the others are numbers."""

    kind: ClassVar[str] = "figures"
    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def lines(self) -> Iterator[Line]:
        """The titles, then a line a row."""
        yield True, list(self.columns)
        for row in self.rows:
            yield False, list(row)


@dataclass(frozen=True)
class Items:
    """Sentences that stand for themselves, in a list."""

    kind: ClassVar[str] = "items"
    items: Sequence[Words]

    def lines(self) -> Iterator[Line]:
        """A line an item."""
        for each in self.items:
            yield False, [plain(each)]
