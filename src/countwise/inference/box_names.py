"""Finding sums of counts by their names: county=Wake|Durham, age=65+.

    sum          = "total" | choice { "," choice }
    choice       = level "=" alternative { "|" alternative }
    alternative  = label, perhaps with a `*` at its start or end for any letters

Levels that are left out may have any label, and the name of a variable stands for its finest level.
A label of several nodes stands for all of them; a coarser level of the same variable says which.
Labels with commas, strokes or stars of their own go in double quotes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from countwise.arrays import BoolArray, IntArray
from countwise.errors import InputError
from countwise.margins.boxes import Box
from countwise.tables.hierarchy import ROOT
from countwise.tables.variable import Variable
from countwise.tables.workload import Margin, Workload

Labels = Mapping[str, str | Sequence[str]]
PIECE = re.compile(r'"[^"]*"|.', re.DOTALL)
MOST_COMPARED = 5_000  # labels among which near ones are looked for
EVERY = "*"


@dataclass(frozen=True, kw_only=True, eq=False)
class NamedBox:
    """A sum of counts as it was asked for; `twice` are the labels that were named more than once.

    A count is in a sum once, however often it is named.
    """

    name: str
    box: Box
    twice: tuple[str, ...] = ()


def find_box(workload: Workload, text: str) -> NamedBox:
    """The sum with this name."""
    if text.strip() == ROOT:
        return box_of(workload, text.strip(), {})
    chosen: dict[str, list[str]] = {}
    for part in split(text, ","):
        level, sign, labels = part.partition("=")
        level, alternatives = level.strip(), [each.strip() for each in split(labels, "|")]
        if not sign or not level or not all(alternatives):
            raise InputError(
                f"{text!r} names no counts. To fix, write labels by level, such as "
                f"{_example(workload)}, or {ROOT}."
            )
        if level in chosen:
            raise InputError(
                f"{text!r} names level {level!r} twice. To fix, put a stroke between its labels: "
                f"{level}={'|'.join((*chosen[level], *alternatives))}"
            )
        chosen[level] = alternatives
    return box_of(workload, text.strip(), chosen)


def box_of(workload: Workload, name: str, chosen: Labels) -> NamedBox:
    """The sum with these labels, one or several for each level; levels left out have any."""
    places = dict(_places(workload, chosen))
    levels, categories, twice = [], [], list[str]()
    for variable in workload.variables:
        depth, inside = 0, np.ones(1, dtype=np.bool_)
        for own, labels in sorted(places.get(variable.name, {}).items()):
            found, named = _matching(variable, own, labels, name)
            twice += named
            inside = inside[variable.parents(own, of=depth)] & found
            depth = own
        if not inside.any():
            raise InputError(f"{name!r}: no category of {variable.name} has all of these labels.")
        depth, kept = _coarsest(variable, depth, inside)
        levels.append(depth)
        categories.append(kept)
    box = Box(margin=Margin(tuple(levels)), categories=tuple(categories))
    return NamedBox(name=name, box=box, twice=tuple(twice))


def split(text: str, sign: str) -> list[str]:
    """The parts of a text between signs that are not in double quotes."""
    parts = [""]
    for piece in PIECE.findall(text):
        if piece == sign:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _places(workload: Workload, chosen: Labels) -> Iterator[tuple[str, dict[int, Sequence[str]]]]:
    """For each variable its levels that are named, with their labels."""
    left = dict(chosen)
    for variable in workload.variables:
        own: dict[int, Sequence[str]] = {}
        for depth, level in enumerate(variable.levels, start=1):
            last = depth == len(variable.levels)
            for word in (level, variable.name) if last else (level,):
                if word in left:
                    labels = left.pop(word)
                    own[depth] = [labels] if isinstance(labels, str) else labels
        yield variable.name, own
    if left:
        word = next(iter(left))
        near = get_close_matches(word, workload.by, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(workload.by)}."
        raise InputError(f"there is no level {word!r}. {hint}")


def _matching(
    variable: Variable, depth: int, alternatives: Sequence[str], name: str
) -> tuple[BoolArray, list[str]]:
    """The categories of a level that have one of some labels, and the labels named twice."""
    labels = variable.tree.labels[depth - 1]
    times: IntArray = np.zeros(len(labels), dtype=np.int64)
    for each in alternatives:
        found = [i for i, label in enumerate(labels) if _fits(label, each)]
        if not found:
            raise InputError(f"{name!r}: {_no_such(variable.levels[depth - 1], each, labels)}")
        times[found] += 1
    twice = [labels[i] for i in np.flatnonzero(times > 1)]
    return times[variable.tree.codes[depth - 1]] > 0, twice


def _fits(label: str, asked: str) -> bool:
    """Whether a label is one that is asked for."""
    if len(asked) > 1 and asked[0] == asked[-1] == '"':
        return label == asked[1:-1]
    if asked == label:
        return True
    before, after = asked.startswith(EVERY), asked.endswith(EVERY)
    inner = asked.strip(EVERY)
    if before and after:
        return inner in label
    if before:
        return label.endswith(inner)
    return after and label.startswith(inner)


def _no_such(level: str, asked: str, labels: Sequence[str]) -> str:
    """That a level has no such label, and those that are near to it."""
    inner = asked.strip(EVERY + '"')
    near = get_close_matches(inner, labels[:MOST_COMPARED], n=3)
    if not near:
        folded = inner.casefold()
        near = [each for each in labels[:MOST_COMPARED] if folded and folded in each.casefold()][:3]
    hint = f"Did you mean {', '.join(map(repr, near))}?" if near else f"One is {labels[0]!r}."
    return f"level {level!r} has no {asked!r}. {hint}"


def _coarsest(variable: Variable, depth: int, inside: BoolArray) -> tuple[int, IntArray | None]:
    """The same set of leaves at the coarsest level at which it is whole categories."""
    while depth > 0:
        starts = variable.starts(depth - 1, within=depth)
        above = np.logical_and.reduceat(inside, starts)
        if not np.array_equal(above[variable.parents(depth, of=depth - 1)], inside):
            return depth, np.flatnonzero(inside)
        depth, inside = depth - 1, above
    return 0, None


def _example(workload: Workload) -> str:
    """A name that would do."""
    variable = workload.variables[0]
    return f"{variable.levels[0]}={variable.tree.labels[0][0]}"
