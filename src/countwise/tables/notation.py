"""Which tables are wanted, in the notation of offices: `county*age*sex, tract:race`.

A word is a level, or a variable, which stands for its finest level. `a:b` is the table of every
category of a with every category of b; `a*b` is that with its totals: everyone, a, b and a:b.
`a + b` is both tables, and parentheses group: `geography*(band + year)`. Two levels of one variable
cross to the finer of the two, because its categories lie within those of the other. A comma or
semicolon ends one wish and begins the next. The notation is that of model formulas, as in Langsrud
and Lupp, SSBtools.
"""

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations, product
from typing import NoReturn

from countwise.errors import TableError
from countwise.tables.hierarchy import ROOT, check_level_names
from countwise.tables.workload import Margin

Names = Mapping[str, tuple[str, ...]]
"""Variables by name, each with its levels from coarse to fine."""
SIGNS = "*:+(),;±>="
TOKEN = re.compile(r"\s*([*:+()]|[^*:+()]+)")
MOST_CROSSED = 2  # variables beside the first that tables cross by default


def read_variables(text: str | Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The variables in `age: band > year, sex, race`, or in a mapping of names to levels."""
    if not isinstance(text, str):
        return {name: tuple(levels) for name, levels in text.items()}
    found: dict[str, tuple[str, ...]] = {}
    for part in text.split(","):
        name, colon, below = (each.strip() for each in part.partition(":"))
        levels = tuple(each.strip() for each in below.split(">")) if colon else (name,)
        if not colon and ">" in name:
            apart = ", ".join(each.strip() for each in name.split(">"))
            raise TableError(
                f"variable {name!r} has levels and no name. To fix, name it, such as age: {name}, "
                f"or, where these cross each other, write {apart}."
            )
        if not name or not all(levels):
            raise TableError(
                f"variable {part.strip()!r} can not be read. A variable is a column, such as sex, "
                "or a name with its levels from coarse to fine, such as age: band > year."
            )
        if name in found:
            raise TableError(f"variable {name!r} is named twice.")
        found[name] = levels
    return found


def check_names(names: Names) -> None:
    """Each level belongs to one variable, and every name can be written in the notation."""
    levels = [level for each in names.values() for level in each]
    for variable, own in names.items():
        if not own:
            raise TableError(f"variable {variable!r} has no levels. To fix, name one or more.")
        if variable in levels and variable not in own:
            raise TableError(
                f"{variable!r} names a variable, and a level of another one. To fix, rename one."
            )
    for level in levels:
        holders = [variable for variable, own in names.items() if level in own]
        if len(holders) > 1:
            raise TableError(
                f"level {level!r} belongs to two variables, {' and '.join(map(repr, holders))}. To "
                "fix, give it to one of them."
            )
    for name in (*levels, *names):
        if any(sign in name for sign in SIGNS):
            raise TableError(
                f"{name!r} can not be written in a list of tables, where {' '.join(SIGNS)} are "
                "signs. To fix, rename the column."
            )
        if name == ROOT and name not in levels:
            raise TableError(f"a variable can not be called {ROOT!r}, the word for everyone.")
    check_level_names(tuple(levels))


def margins_of(text: str, names: Names) -> tuple[Margin, ...]:
    """The margins that one wish stands for, coarse before fine."""
    reader = _Wish(text, names)
    found = reader.either()
    reader.end()
    return tuple(Margin(levels) for levels in found)


def margin_of(text: str, names: Names) -> Margin:
    """The one margin that a table's name stands for, such as `county*sex` or `total`."""
    return margins_of(text.replace("*", ":"), names)[-1]


def name_of(margin: Margin, names: Names) -> str:
    """A margin as it is written: the levels it crosses, or the word for the grand total."""
    pairs = zip(names.values(), margin.levels, strict=True)
    return "*".join(levels[level - 1] for levels, level in pairs if level) or ROOT


def wanted(tables: Sequence[str], names: Names) -> list[tuple[Margin, ...]]:
    """For each wish the margins that those before it did not name; the default for no wish.

    Totals may be shared. A wish that adds nothing is a table listed twice. Every level is there to
    be published, so the finest of each variable is in some table.
    """
    if not tables:
        return [default_margins(names)]
    found: list[tuple[Margin, ...]] = []
    seen: set[Margin] = set()
    for text in tables:
        new = [each for each in margins_of(text, names) if each not in seen]
        if not new:
            raise TableError(
                f"table {text.strip()!r} is listed twice: those before it have all its counts. To "
                "fix, leave it out, or list it first if its target or weight is its own."
            )
        seen.update(new)
        found.append(tuple(new))
    for axis, (variable, levels) in enumerate(names.items()):
        finest = max(each.levels[axis] for each in seen)
        if finest < len(levels):
            raise TableError(
                f"level {levels[-1]!r} of variable {variable!r} is in no table. To fix, count "
                f"people without it, or add a table with it, such as {levels[-1]!r} alone."
            )
    return found


def default_margins(names: Names) -> tuple[Margin, ...]:
    """Every level of the first variable with up to two of the others, and the cells."""
    first, *others = (range(len(levels) + 1) for levels in names.values())
    found = []
    for size in range(min(MOST_CROSSED, len(others)) + 1):
        for chosen in combinations(range(len(others)), size):
            crossed = [others[i][1:] if i in chosen else range(1) for i in range(len(others))]
            found += [Margin(levels) for levels in product(first, *crossed)]
    cells = Margin(tuple(len(levels) for levels in names.values()))
    return tuple(dict.fromkeys((*found, cells)))


class _Wish:
    """Reads one wish from left to right; `:` binds before `*`, and `*` before `+`."""

    def __init__(self, text: str, names: Names) -> None:
        self.text, self.names = text.strip(), names
        self.tokens = [token for each in TOKEN.findall(text) if (token := each.strip())]
        self.place = 0

    @property
    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def took(self, sign: str) -> bool:
        found = self.next == sign
        self.place += found
        return found

    def either(self) -> list[tuple[int, ...]]:
        found = self.totalled()
        while self.took("+"):
            found = [*found, *self.totalled()]
        return list(dict.fromkeys(found))

    def totalled(self) -> list[tuple[int, ...]]:
        found = self.crossed()
        everyone = (0,) * len(self.names)
        while self.took("*"):
            right = self.crossed()
            found = [everyone, *found, *right, *_cross(found, right)]
        return list(dict.fromkeys(found))

    def crossed(self) -> list[tuple[int, ...]]:
        found = self.word()
        while self.took(":"):
            found = _cross(found, self.word())
        return found

    def word(self) -> list[tuple[int, ...]]:
        if self.took("("):
            found = self.either()
            if not self.took(")"):
                self.refuse("a parenthesis is not closed")
            return found
        word = self.next
        if not word or word in SIGNS:
            behind = f" after {self.tokens[self.place - 1]!r}" if self.place else ""
            self.refuse(f"a level is missing{behind}")
        self.place += 1
        return [self.levels(word)]

    def levels(self, word: str) -> tuple[int, ...]:
        if word == ROOT:
            return (0,) * len(self.names)
        for axis, (variable, levels) in enumerate(self.names.items()):
            if word in levels or word == variable:
                level = levels.index(word) + 1 if word in levels else len(levels)
                return tuple(level if i == axis else 0 for i in range(len(self.names)))
        known = [*dict.fromkeys((*self.names, *(lv for own in self.names.values() for lv in own)))]
        near = get_close_matches(word, known, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
        raise TableError(f"table {self.text!r}: there is no level {word!r}. {hint}")

    def end(self) -> None:
        if self.next == ")":
            self.refuse("a parenthesis is closed that was not opened")
        if self.next:
            self.refuse(f"a sign is missing before {self.next!r}")

    def refuse(self, why: str) -> NoReturn:
        raise TableError(f"table {self.text!r}: {why}.")


def _cross(left: list[tuple[int, ...]], right: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Every table of the one with every table of the other."""
    return [tuple(map(max, a, b)) for a in left for b in right]
