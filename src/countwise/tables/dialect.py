"""How a text file of a table is written: its encoding, its separator, the line of its header.

All of it is found out from marks at the beginning and from the line of the header, never from the
rows below it, so what is said of a file says nothing of its counts.
"""

import codecs
import csv
import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from countwise.errors import TableError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "space": " ",
         "point": ".", "dot": ".", "apostrophe": "'"}  # fmt: skip
THOUSANDS = (",", ".", " ", "'")
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""The longer marks first: that of UTF-16 begins that of UTF-32."""
UTF8 = "utf-8"
HEAD = 65_536
"""Bytes in which a header is looked for, title lines above it included."""
MOST_TITLES = 100  # lines: no file has more titles above its header


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the user says of a file where it can not be seen, or is not as it is found out.

    `skip` is the number of lines above the header, `thousands` what stands between the digits of
    large counts, `sheet` the name or number of a sheet.
    """

    separator: str | None = None
    encoding: str | None = None
    thousands: str | None = None
    skip: int = 0
    sheet: str | None = None

    def __post_init__(self) -> None:
        for name in ("separator", "thousands"):
            given = getattr(self, name)
            object.__setattr__(self, name, NAMED.get(given, given))
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\n\r'):
            raise TableError(
                f"--separator must be one character, such as ; or tab; got {self.separator!r}."
            )
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise TableError(
                f"--thousands must be comma, point, space or apostrophe; got {self.thousands!r}."
            )
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _codec(self.encoding))
        if self.skip < 0:
            raise TableError(f"--skip must be 0 lines or more; got {self.skip}.")


PLAIN = Reading()


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The encoding and separator of a file, and the number of lines above its header."""

    encoding: str
    separator: str
    skip: int

    @property
    def in_words(self) -> str:
        """What is not as in most files; empty where all is."""
        found = []
        if self.separator != ",":
            found.append(f"columns separated by {SEPARATORS.get(self.separator, self.separator)}")
        if self.encoding != UTF8:
            found.append(f"encoding {self.encoding.upper()}")
        return ", ".join(found)


def _codec(name: str) -> str:
    try:
        found = codecs.lookup(name).name
        "".encode(found)
    except (LookupError, TypeError):
        raise TableError(
            f"encoding {name!r} is not known. To fix, give one such as latin-1, cp1252 or utf-16."
        ) from None
    return found


def find_dialect(path: Path, reading: Reading = PLAIN, wanted: Sequence[str] = ()) -> Dialect:
    """The dialect of a text file with the columns `wanted`, as far as the user did not say it."""
    head = _head(path)
    encoding = reading.encoding or _encoding(head)
    lines = _lines(head, encoding)
    skip = _first_line(lines, reading.skip, SEPARATORS)
    header = lines[skip] if skip < len(lines) else ""
    separator = reading.separator or _separator(header, wanted)
    return Dialect(encoding=encoding, separator=separator, skip=skip)


def lines_above(path: Path, reading: Reading, wanted: Sequence[str]) -> int | None:
    """The number of lines above the first that has all `wanted` names; None if there is none."""
    head = _head(path)
    lines = _lines(head, reading.encoding or _encoding(head))
    separators = [reading.separator] if reading.separator else list(SEPARATORS)
    for i, line in enumerate(lines[:MOST_TITLES]):
        if any(set(wanted) <= set(fields(line, mark)) for mark in separators):
            return i
    return None


def fields(line: str, separator: str) -> list[str]:
    """The fields of one line, without the spaces around them."""
    try:
        rows = list(csv.reader([line], delimiter=separator))
    except csv.Error:
        return []
    return [field.strip() for field in rows[0]] if rows else []


def decoded(path: Path, encoding: str) -> bytes:
    """The whole of a file in UTF-8."""
    try:
        return _whole(path).decode(encoding).encode(UTF8)
    except UnicodeError:
        raise TableError(
            f"{path}: not {encoding.upper()}. To fix, save the file as UTF-8, or name its encoding "
            "with --encoding."
        ) from None


def _open_bytes(path: Path, size: int = -1) -> bytes:
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as packed:
            return packed.read(size)
    with path.open("rb") as file:
        return file.read(size)


def _whole(path: Path) -> bytes:
    return _open_bytes(path)


def _head(path: Path) -> bytes:
    return _open_bytes(path, HEAD)


def _encoding(head: bytes) -> str:
    """By its mark, or by the zero bytes that UTF-16 has beside the letters of a header."""
    for mark, name in MARKS:
        if head.startswith(mark):
            return name
    zeros = [byte == 0 for byte in head[:4]]
    if zeros == [False, True, False, True]:
        return "utf-16-le"
    if zeros == [True, False, True, False]:
        return "utf-16-be"
    return UTF8


def _lines(head: bytes, encoding: str) -> list[str]:
    text = head.decode(encoding, "replace").removeprefix("\ufeff")
    return re.split(r"\r\n|\n|\r", text)


def _first_line(lines: Sequence[str], skip: int, separators: Sequence[str] | dict[str, str]) -> int:
    """The first line from `skip` on that has more than separators and spaces in it."""
    blank = "".join(separators) + '" '
    for i, line in enumerate(lines[skip:], start=skip):
        if line.strip(blank):
            return i
    return skip


def _separator(header: str, wanted: Sequence[str]) -> str:
    """The mark that makes columns of all wanted names, or else the one that makes most columns."""
    found = {mark: fields(header, mark) for mark in SEPARATORS}
    whole = [mark for mark in found if wanted and set(wanted) <= set(found[mark])]
    return max(whole or found, key=lambda mark: len(found[mark]))
