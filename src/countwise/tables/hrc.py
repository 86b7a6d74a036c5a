"""Hierarchy files of τ-ARGUS (`.hrc`).

One code a line, outer before inner, each line led by as many indentation characters as the code
is deep below the total; the total itself is not a line:

    North
    @N1
    @N2
    South
    @S1

Branches may end at different depths.
"""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from countwise.errors import TableError

INDENT = "@"


@dataclass(frozen=True, kw_only=True)
class CodeTree:
    """Every code with its path from the outermost ancestor to itself, and whether it is a leaf."""

    paths: dict[str, tuple[str, ...]]
    leaves: tuple[str, ...]

    @property
    def depth(self) -> int:
        """Codes on the longest path."""
        return max(map(len, self.paths.values()))

    def cells(self, columns: tuple[str, ...], *, code: str) -> pl.DataFrame:
        """One row a leaf: its code and its label in each level column.

        A leaf that ends early is its own only descendant: its code fills the columns below it.
        """
        rows = [(leaf, *self._filled(leaf, len(columns))) for leaf in self.leaves]
        return pl.DataFrame(rows, schema=dict.fromkeys((code, *columns), pl.String), orient="row")

    def inner(self, columns: tuple[str, ...], *, code: str) -> pl.DataFrame:
        """One row an inner code: its labels, and null in the level columns below it."""
        leaves = frozenset(self.leaves)
        rows = [
            (name, *path, *(None for _ in range(len(columns) - len(path))))
            for name, path in self.paths.items()
            if name not in leaves
        ]
        return pl.DataFrame(rows, schema=dict.fromkeys((code, *columns), pl.String), orient="row")

    def _filled(self, leaf: str, depth: int) -> tuple[str, ...]:
        path = self.paths[leaf]
        return path + (leaf,) * (depth - len(path))


def read_hrc(path: str | Path, *, indent: str = INDENT) -> CodeTree:
    """The tree of codes in a hierarchy file."""
    path = Path(path)
    if not indent:
        raise TableError(f"{path}: the indentation can not be empty; τ-ARGUS uses @ or a space.")
    paths: dict[str, tuple[str, ...]] = {}
    above: tuple[str, ...] = ()
    parents: set[str] = set()
    for row, line in enumerate(_lines(path), start=1):
        code, depth = _code(line.rstrip(), indent)
        if not line.strip():
            continue
        _check(path, row, code, depth, above, paths)
        above = (*above[:depth], code)
        paths[code] = above
        parents.update(above[:-1])
    if not paths:
        raise TableError(f"{path}: the hierarchy file has no codes; it needs one a line.")
    return CodeTree(paths=paths, leaves=tuple(code for code in paths if code not in parents))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        raise TableError(f"{path}: there is no such hierarchy file.") from None
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8. To fix, save the file as UTF-8.") from None


def _code(line: str, indent: str) -> tuple[str, int]:
    depth = 0
    while line.startswith(indent):
        line, depth = line[len(indent) :], depth + 1
    return line.strip(), depth


def _check(
    path: Path,
    row: int,
    code: str,
    depth: int,
    above: tuple[str, ...],
    paths: dict[str, tuple[str, ...]],
) -> None:
    if not code:
        raise TableError(f"{path}, row {row}: indentation without a code.")
    if depth > len(above):
        raise TableError(
            f"{path}, row {row}: code {code!r} is indented {depth} times below a code that is "
            f"indented {max(len(above) - 1, 0)} times. A code is at most one step deeper than the "
            "line above it."
        )
    if code in paths:
        raise TableError(f"{path}, row {row}: code {code!r} stands in the file twice.")
